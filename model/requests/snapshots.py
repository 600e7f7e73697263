"""Names of training snapshots, and the losses that were logged in training."""

from dataclasses import dataclass


def at_step(model: str, step: int) -> str:
    """The name of a snapshot: the model after `step` updates of its weights, such as "reverse-digits@000151"."""
    return f"{model}@{step:06}"


def without_step(name: str) -> tuple[str, int | None]:
    """The model and the step in the name of a snapshot; the step is None where `name` is not that of a snapshot."""
    model, _at, step = name.rpartition("@")
    return (model, int(step)) if model and step.isascii() and step.isdigit() and len(step) < 13 else (name, None)


@dataclass(frozen=True)
class Losses:
    """Losses after `step` updates of the weights, as means in nats per target token."""

    step: int
    training: float
    validation: float
