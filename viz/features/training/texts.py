"""Texts of the feature Training: the help of its panels, and what its drawing says."""

from model.trace.types import Trace
from viz.canvas.wire.strings import playing
from viz.i18n.translate import N_, _, _n

PANELS: dict[str, tuple[str, str, str]] = {
    "film": (
        N_("Training film"),
        N_("The same sentence runs through every saved snapshot of a training. Press play to watch the heads emerge."),
        "training.md",
    ),
    "training-heads": (
        N_("All heads during training"),
        N_("Each line follows one head over the snapshots. A steep rise is the moment at which the head specialized."),
        "readings.md",
    ),
    "losses": (
        N_("Loss"),
        N_("The loss measures how unlikely the correct tokens were; lower is better. The dashed line is the snapshot shown."),
        "training.md",
    ),
    "moments": (
        N_("When heads specialized"),
        N_("For each head: its value at the start and the end, and when it changed most. Choose a row to see it."),
        "readings.md",
    ),
}
"""As `viz.feature.Feature.help`."""


def snapshot(step: int) -> str:
    """Training step of a snapshot, in words."""
    return _n("After {step:,} step", "After {step:,} steps", step, step=step) if step else _("Before the first step")


def fed(trace: Trace) -> str:
    """Title of the strip that is fed to all snapshots."""
    if trace.request.get("target") is not None:
        return _("Fed to every snapshot: your target, with the probability that this snapshot gave to each token")
    return _("Fed to every snapshot: the finished model’s output, with the probability that this snapshot gave to each token")


def own() -> str:
    """Title of the strip that a snapshot generates by itself."""
    return _("What this snapshot generates on its own (greedy)")


def film() -> dict[str, str]:
    """Texts of the film, in addition to those of the atlas."""
    return {
        "first": _("First snapshot"),
        "back": _("Previous snapshot"),
        **playing(),
        "forward": _("Next snapshot"),
        "last": _("Last snapshot"),
        "scrub": _("Snapshot"),
        "step": _("snapshot {step} of {steps}"),
        "loss": _("loss (nats per token)"),
        "perplexity": _("perplexity"),
        "onFed": _("On these tokens"),
        "nothing": _("Ends immediately; nothing is generated."),
        "moment": _("{moment}: loss {loss} nats per token; on its own it generates “{output}”."),
        "moved": _("{moment}."),
        "token": _("“{token}”"),
        "likely": _("“{token}”: probability {probability}"),
        "unknown": _("Not in the vocabulary: the network read its unknown token instead."),
        "special": _("A special token: it does not stand for any text."),
    }
