"""The state of a training: everything that changes while it runs. It is saved, so that a killed training resumes bit by bit."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from model.errors import DamagedFile
from model.training.recipes import Optimisation

PARTS = ("network", "average", "optimizer", "schedule")


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
