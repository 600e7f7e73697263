"""The state of a training: everything that changes while it runs, saved whole so that a killed one goes on to the bit."""

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
    """Everything that a resumed training needs. Random numbers need no state: each epoch begins with its own seed.

    Attributes:
        network: the weights that are learned.
        trained: the network as accelerate wraps it, for one process or several, with the recipe's precision.
        average: the running mean of the weights.
        optimizer, schedule: of the weights and of the learning rate.
        epoch: how many are done.
        best, best_epoch: the lowest validation loss so far and its epoch, counted from 1.
        phase_best: the lowest of each phase.
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
        """How many updates of the weights are done."""
        return self.schedule.last_epoch

    @property
    def mean_weights(self) -> dict[str, Tensor]:
        """A copy of the running mean."""
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
    """Writes the state, whole or not at all."""
    parts = {name: getattr(state, name).state_dict() for name in PARTS}
    progress = {"epoch": state.epoch, "best": state.best, "best_epoch": state.best_epoch, "phase_best": state.phase_best}
    fresh = path.with_suffix(".part")
    torch.save({**parts, **progress}, fresh)
    fresh.replace(path)


def resume(state: State, path: Path, device: torch.device) -> None:
    """Takes up what `save` wrote, where there is something.

    Raises:
        DamagedFile: it is no state of this training.
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
