"""Kept results: the last ones, as many as a number of bytes holds."""

import threading
from collections import OrderedDict
from collections.abc import Callable

from model.engine.base import RunRequest
from model.trace import Trace


class Kept:
    """Traces by request. Safe to be used from many threads.

    Args:
        most_bytes: of their arrays; those unused for longest go. The last one stays, however large: its page asks again. 0: nothing
            is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._traces: OrderedDict[RunRequest, Trace] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, request: RunRequest) -> Trace | None:
        """The trace of an equal request; None: it is not here, or not any more."""
        with self._lock:
            if request in self._traces:
                self._traces.move_to_end(request)
            return self._traces.get(request)

    def keep(self, request: RunRequest, trace: Trace) -> None:
        """Keeps a trace, and makes room for it."""
        if not self._most_bytes:
            return
        with self._lock:
            self._drop(request)
            self._traces[request] = trace
            self._bytes += trace.nbytes
            while self._bytes > self._most_bytes and len(self._traces) > 1:
                self._drop(next(iter(self._traces)))

    def forget(self, of: Callable[[RunRequest], bool]) -> None:
        """Drops all traces of the requests that `of` says."""
        with self._lock:
            for request in [request for request in self._traces if of(request)]:
                self._drop(request)

    def _drop(self, request: RunRequest) -> None:
        if (trace := self._traces.pop(request, None)) is not None:
            self._bytes -= trace.nbytes
