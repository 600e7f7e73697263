"""Progress feed: the newest progress of a call, from the thread that runs to the threads that show it. No torch."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import replace

from model.trace.progress import Listener, Progress
from model.trace.types import Trace

LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""Hears the progress of the runs that this thread asks an engine for; None: nobody listens. A context variable, as CANCEL_TOKEN."""


PARTIAL: ContextVar[bool] = ContextVar("partial", default=False)
"""Whether LISTENER also wants the traces of runs that still decode: an engine on another host then sends them."""

PAUSE_SECONDS = 0.04
"""Shortest time between two traces of a run that still decodes. Making one costs about a millisecond of the run's thread."""


class ProgressFeed:
    """Holds the newest progress of one call. Readers wait for what they have not seen; a slow one misses what came between.

    Args:
        partial_after: seconds after which traces of the run so far are kept, too; None: never.
        timer: a clock in seconds.

    Attributes:
        newest: the newest progress; None: there is none yet.
        trace: the newest trace of the run so far; None: there is none.
        count: number of reports so far; the end counts as one.
    """

    def __init__(self, partial_after: float | None = None, timer: Callable[[], float] = time.monotonic) -> None:
        self.newest: Progress | None = None
        self.trace: Trace | None = None
        self.count = 0
        self._timer = timer
        self._due = None if partial_after is None else timer() + partial_after
        self._lock = threading.Lock()
        self._changed: Future[None] = Future()

    def put(self, progress: Progress) -> None:
        """A Listener: stores the progress and wakes the readers."""
        if progress.so_far is not None and self._due is not None and self._timer() >= self._due:
            self.trace = progress.so_far()
            self._due = self._timer() + PAUSE_SECONDS
        self.newest = replace(progress, so_far=None)  # what it refers to belongs to the run
        self._wake()

    def end(self) -> None:
        """Wakes the readers because the call has ended."""
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
