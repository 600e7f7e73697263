"""Progress feed: the newest progress of a call, from the thread that runs to the threads that show it. No torch."""

import threading
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import replace

from model.trace.progress import Listener, Progress

LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
"""Hears the progress of the runs that this thread asks an engine for; None: nobody listens. A context variable, as CANCEL_TOKEN."""


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
