"""What a training writes while it runs.

Its state, everything that changes, so that a killed training resumes bit by bit; a row for each epoch in curve.csv and in
TensorBoard; snapshots of the weights.
"""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError

import torch
from accelerate import Accelerator
from tensorboardX import SummaryWriter
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from model.checkpoints.native import save_weights
from model.errors import DamagedFile
from model.features.training.recipes import Optimisation

PARTS = ("network", "average", "optimizer", "schedule")
"""What a saved state consists of, beside the numbers of its epoch and step."""


@dataclass
class State:
    """Everything that a resumed training needs. Random numbers need no state, since each epoch begins with its own seed.

    Attributes:
        network: the network that learns.
        trained: the network as accelerate wraps it, for one process or several, with the recipe's precision.
        average: the moving average of the weights.
        optimizer, schedule: the optimizer, and the schedule of its learning rate.
        epoch: number of finished epochs.
        best, best_epoch: the lowest validation loss so far, and its epoch, counted from 1.
        phase_best: the lowest validation loss of each phase.
    """

    network: nn.Module
    trained: nn.Module
    average: AveragedModel
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LambdaLR
    epoch: int = 0
    best: float = math.inf
    best_epoch: int = 0
    phase_best: dict[int, float] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Number of updates of the weights so far."""
        return self.schedule.last_epoch

    @property
    def mean_weights(self) -> dict[str, Tensor]:
        """A copy of the averaged weights."""
        return {name: value.detach().clone() for name, value in self.average.module.state_dict().items()}


def begin(network: nn.Module, how: Optimisation, steps_per_epoch: int, accelerator: Accelerator) -> State:
    """The state before the first step."""
    network.to(accelerator.device)
    # Biases and gains of norms are not pulled towards 0: a gain of 0 would switch its column off.
    matrices = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": how.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    average = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(how.average))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: how.learning_rate(step, steps_per_epoch))
    return State(network, accelerator.prepare(network), average, optimizer, schedule)


def save(state: State, path: Path) -> None:
    """Writes the state atomically: the file is complete, or it is the previous one."""
    parts = {name: getattr(state, name).state_dict() for name in PARTS}
    progress = {"epoch": state.epoch, "best": state.best, "best_epoch": state.best_epoch, "phase_best": state.phase_best}
    # Written beside the old one and then renamed, which is one step for the file system: a training that is killed
    # at any moment leaves a whole file.
    fresh = path.with_suffix(".part")
    torch.save({**parts, **progress}, fresh)
    fresh.replace(path)


def resume(state: State, path: Path, device: torch.device) -> None:
    """Loads the state that `save` wrote, if there is one.

    Raises:
        DamagedFile: the file is not a state of this training.
    """
    if not path.exists():
        return
    try:
        saved = torch.load(path, map_location=device, weights_only=True)
        for name in PARTS:
            getattr(state, name).load_state_dict(saved[name])
        state.epoch, state.best, state.best_epoch = saved["epoch"], saved["best"], saved["best_epoch"]
        state.phase_best = saved["phase_best"]
    except (UnpicklingError, EOFError, LookupError, TypeError, AttributeError, RuntimeError, ValueError, OSError) as error:
        raise DamagedFile(path=path, detail=f"it is no state of this training: {error}") from error


COLUMNS = ("epoch", "step", "train_loss", "validation_loss", "validation_ppl", "learning_rate", "tokens_per_second", "seconds")
"""Columns of curve.csv. Losses are in nats per target token (training with label smoothing and dropout, validation without)."""

SNAPSHOTS, FIRST, COUNT = "snapshots", 512, 14
"""Folder of the snapshots; the first after step 0 is saved at 1/512 of the training; how many there are."""


def board(out: Path, writes: bool) -> SummaryWriter:
    """The TensorBoard writer of OUT/logs; with `writes` False it discards everything."""
    return SummaryWriter(str(out / "logs"), write_to_disk=writes)


def log(out: Path, events: SummaryWriter, row: tuple[int, *tuple[float, ...]]) -> None:
    """Adds one epoch's row. Rows of this and later epochs, left by a training that was killed or by an older one, are replaced."""
    path = out / "curve.csv"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    before = {str(epoch) for epoch in range(1, row[0])}
    kept = [earlier for earlier in csv.reader(lines) if earlier and earlier[0] in before]
    fresh = path.with_suffix(".part")
    with fresh.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([COLUMNS, *kept, row])
    fresh.replace(path)
    for name, value in zip(COLUMNS[1:], row[1:], strict=True):
        events.add_scalar(name, value, row[0])
    events.flush()


def snapshot_steps(total: int) -> frozenset[int]:
    """The steps, out of `total`, after which a snapshot is saved: 0, then at ever longer intervals up to the last.

    They form a geometric sequence from total / 512 to total.
    """
    return frozenset({0, *(max(1, round(total / FIRST ** (1 - i / (COUNT - 2)))) for i in range(COUNT - 1))})


def keep_snapshot(out: Path, step: int, weights: Mapping[str, Tensor]) -> None:
    """Saves a snapshot, the weights after `step` updates: OUT/snapshots/NNNNNN.safetensors, float16.

    The first snapshot of a training deletes those of an older training.
    """
    folder = out / SNAPSHOTS
    folder.mkdir(parents=True, exist_ok=True)
    # Snapshots of an older training in this folder would mix with the new ones, and show one that never was.
    if step == 0:
        for old in folder.glob("[0-9]" * 6 + ".safetensors"):
            old.unlink()
    save_weights(folder / f"{step:06}.safetensors", weights)
