"""Sounds that a run has read: their moments, and how much of them is sound."""

from dataclasses import dataclass

from model.requests.external import ForeignSound
from model.requests.validation import read
from model.trace.types import Trace
from viz.i18n.translate import _, number
from viz.labels.tokens import listens


@dataclass(frozen=True)
class Hearing:
    """The sound of a run.

    Attributes:
        read: what the network reads.
        heard: positions that the sound fills; after them is silence.
    """

    read: ForeignSound
    heard: int

    @property
    def seconds(self) -> float:
        """How long the positions last that the sound fills."""
        return self.heard * self.read.step


def hearing(trace: Trace) -> Hearing | None:
    """The sound of a run; None: it has read something else, or random numbers."""
    if trace.sound is None or trace.spectrogram is None or not listens(trace):
        return None
    source = trace.tokens["source"]
    return Hearing(read(ForeignSound, trace.model["spec"]["encoder"]["sound"], "sound"), source.special.count(False))


def described(trace: Trace) -> str:
    """What a run has heard, in words."""
    if trace.sound is None:
        return _("Random numbers instead of a sound: {source}", source=str(trace.request.get("source") or ""))
    seconds = number(len(trace.sound) / trace.model["spec"]["encoder"]["sound"]["rate"], ".1f")
    if set(str(trace.request.get("source")).partition("-")[2]) == {"0"}:
        return _("Computed tones, {seconds} s", seconds=seconds)
    return _("A sound of {seconds} s", seconds=seconds)
