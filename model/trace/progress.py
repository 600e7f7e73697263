"""Progress of a call that has not ended: the tokens that a run has written, or what a question has measured; and its way from the
thread that runs to the threads that show it. Without torch.
"""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
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
        measured: copies that a question has measured, 0 before the first; None: these are the tokens of a run.
        fetched: bytes of a download that are there, of `most`; None: it is no download.
        so_far: makes the trace of what the run had recorded by then, in any thread, while the run goes on; None: there is none.
    """

    ids: tuple[int, ...]
    texts: tuple[str, ...]
    most: int
    seconds: float
    measured: int | None = None
    fetched: int | None = None
    so_far: Callable[[], Trace] | None = field(default=None, compare=False, repr=False)

    @property
    def done(self) -> int:
        """How many tokens are written, copies measured, or bytes there."""
        return next((count for count in (self.fetched, self.measured) if count is not None), len(self.ids))

    @property
    def rate(self) -> float:
        """Tokens, copies or bytes per second."""
        return self.done / max(self.seconds, 1e-9)


Listener: TypeAlias = Callable[[Progress], None]
"""Receives the progress of a run, in a thread that other runs wait for: it must return at once."""

Report: TypeAlias = Callable[[Callable[[], Progress]], None]
"""Receives a function that makes the progress; calls it only if somebody listens."""


OnCount: TypeAlias = Callable[[int, int], None]
"""Called with the number of things measured so far, 0 at first, and the number of all, as far as it is known."""


def ignore_count(done: int, of: int) -> None:
    """The OnCount of a measurement that nobody watches."""


def report_nothing(_make: Callable[[], Progress]) -> None:
    """The Report of a run without a listener."""


LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""Is called with the progress of the runs that this thread asks an engine for; None: no listener. A context variable, like
CANCEL_TOKEN."""

PARTIAL: ContextVar[bool] = ContextVar("partial", default=False)
"""Whether LISTENER also wants the traces of runs that still decode: an engine on another host then sends them."""


class ProgressFeed:
    """Holds the newest progress of one call. Readers wait for what they have not seen; a slow one misses what came between.

    Attributes:
        newest: the newest progress; None: there is none yet.
        count: number of reports so far; the end counts as one.
    """

    def __init__(self) -> None:
        self.newest: Progress | None = None
        self.count = 0
        self._lock = threading.Lock()
        self._changed: Future[None] = Future()

    def put(self, progress: Progress) -> None:
        """A Listener: stores the progress and wakes the readers."""
        self.newest = progress
        self._wake()

    def end(self) -> None:
        """Wakes the readers because the call has ended. What the run had recorded is not held any longer."""
        if self.newest is not None:
            self.newest = replace(self.newest, so_far=None)
        self._wake()

    def after(self, seen: int) -> "Future[None]":
        """A future that is done once `count` is another number than `seen`."""
        with self._lock:
            if self.count == seen:
                return self._changed
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def _wake(self) -> None:
        with self._lock:
            self.count += 1
            changed, self._changed = self._changed, Future()
        changed.set_result(None)
