"""Single flight: equal computations that overlap run once, and all who asked get the result."""

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def _here(work: Callable[[], None]) -> None:
    work()


class SingleFlight(Generic[Key, Value]):
    """Runs simultaneous equal computations once. No lock is held while one runs."""

    def __init__(self) -> None:
        self._in_flight: dict[Key, Future[Value]] = {}
        self._lock = threading.Lock()

    def __contains__(self, key: Key) -> bool:
        """Whether a computation of this key is in flight."""
        return key in self._in_flight

    def do(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The result of `compute`, or of an equal computation that another thread has begun.

        Raises:
            BaseException: whatever the computation raised, in every waiting thread.
        """
        return self.begin(key, compute, _here).result()

    def begin(self, key: Key, compute: Callable[[], Value], start: Callable[[Callable[[], None]], object]) -> "Future[Value]":
        """The future of `compute`, or of an equal computation that is in flight.

        Args:
            key: what is equal.
            compute: makes the result.
            start: runs its argument, now or in another thread, such as `ThreadPoolExecutor.submit`.
        """
        own: Future[Value] = Future()
        with self._lock:
            first = self._in_flight.setdefault(key, own)
        if first is own:
            start(lambda: self._land(key, own, compute))
        return first

    def _land(self, key: Key, own: "Future[Value]", compute: Callable[[], Value]) -> None:
        try:
            own.set_result(compute())
        except BaseException as error:
            own.set_exception(error)
        finally:
            with self._lock:
                del self._in_flight[key]
