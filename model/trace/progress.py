"""Progress of a call that has not ended: the tokens that a run has written, or what a question has measured. Without torch."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from model.trace.types import Trace


@dataclass(frozen=True)
class Progress:
    """How far a call has come: the tokens that a run has written so far, or how many edited copies a question has measured.

    Attributes:
        ids: their ids, the prompt not included; of a beam search those of its best hypothesis so far.
        texts: their texts.
        most: most tokens that the run may write, or the copies in all.
        seconds: time since the run began; the time in the queue does not count.
        measured: copies that a question has measured; 0: these are the tokens of a run.
        so_far: makes the trace of what the run had recorded by then, in any thread, while the run goes on; None: there is none.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    most: int
    seconds: float
    measured: int = 0
    so_far: Callable[[], Trace] | None = field(default=None, compare=False, repr=False)

    @property
    def done(self) -> int:
        """How many tokens are written, or copies measured."""
        return self.measured or len(self.ids)

    @property
    def rate(self) -> float:
        """Tokens or copies per second."""
        return self.done / max(self.seconds, 1e-9)


Listener: TypeAlias = Callable[[Progress], None]
"""Receives the progress of a run, in the run's thread: it must return at once."""

Report: TypeAlias = Callable[[Callable[[], Progress]], None]
"""Receives a function that makes the progress; calls it only if somebody listens."""


def report_nothing(_make: Callable[[], Progress]) -> None:
    """The Report of a run that nobody listens to."""
