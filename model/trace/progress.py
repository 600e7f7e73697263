"""Progress of a run that has not ended: the tokens that it has written so far. Without torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class Progress:
    """Tokens that a run has written so far.

    Attributes:
        ids: their ids, the prompt not included; of a beam search those of its best hypothesis so far.
        texts: their texts.
        most: most tokens that the run may write.
        seconds: time since the run began; the time in the queue does not count.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    most: int
    seconds: float

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return len(self.ids) / max(self.seconds, 1e-9)


Listener: TypeAlias = Callable[[Progress], None]
"""Receives the progress of a run, in the run's thread: it must return at once."""

Report: TypeAlias = Callable[[Callable[[], Progress]], None]
"""Receives a function that makes the progress; calls it only if somebody listens."""


def unheard(_make: Callable[[], Progress]) -> None:
    """The Report of a run that nobody listens to."""
