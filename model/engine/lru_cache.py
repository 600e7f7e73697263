"""LRU cache bounded in bytes and entries, and values that are computed once. No torch."""

import math
import threading
from collections.abc import Callable, Hashable
from operator import itemgetter
from typing import Generic, TypeVar

import cachetools

from model.errors import TookTooLong
from model.sharing.single_flight import SingleFlight

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

SLOT_SECONDS = 120.0
"""How long a caller waits for a slot to open a file."""


class LruCache(Generic[Key, Value]):
    """A cachetools.LRUCache that also counts entries. Thread-safe: its lock is held for dictionary operations alone.

    Args:
        most_bytes: of all values together. The newest value always stays. 0: nothing is cached.
        size: bytes of a value.
        most_entries: how many values.
    """

    def __init__(self, most_bytes: float, size: Callable[[Value], int], most_entries: float = math.inf) -> None:
        self._most_bytes, self._size, self._most_entries = most_bytes, size, most_entries
        self._entries: cachetools.LRUCache[Key, tuple[Value, float]] = cachetools.LRUCache(most_bytes, itemgetter(1))
        self._lock = threading.Lock()

    def get(self, key: Key) -> Value | None:
        """The value of `key`, now the most recently used; None: not cached."""
        with self._lock:
            found = self._entries.get(key)
        return None if found is None else found[0]

    def keep(self, key: Key, value: Value) -> None:
        """Stores a value and drops the least recently used ones if needed."""
        if not self._most_bytes:
            return
        entry = value, min(self._size(value), self._most_bytes)  # cachetools refuses what is larger than the whole cache
        with self._lock:
            self._entries[key] = entry
            while len(self._entries) > self._most_entries:
                self._entries.popitem()

    def forget(self, of: Callable[[Key], bool] = lambda key: True) -> None:
        """Drops the values whose keys `of` says; all of them where it is left out."""
        with self._lock:
            for key in [key for key in self._entries if of(key)]:
                del self._entries[key]


class ComputedOnce(Generic[Key, Value]):
    """Cache of computed values. A slow computation delays only callers with the same key.

    Args:
        cache: stores the values.
        worth_keeping: whether a value is cached.
    """

    def __init__(self, cache: LruCache[Key, Value], worth_keeping: Callable[[Key, Value], bool] = lambda key, value: True) -> None:
        self._cache, self._worth_keeping = cache, worth_keeping
        self._flight: SingleFlight[Key, Value] = SingleFlight()

    def get(self, key: Key, compute: Callable[[], Value]) -> Value:
        """The value of `key`: from the cache, or computed now.

        Raises:
            BaseException: whatever `compute` raised; nothing is cached then.
        """
        if (found := self._cache.get(key)) is not None:
            return found
        return self._flight.do(key, lambda: self._computed(key, compute))

    def forget(self, of: Callable[[Key], bool]) -> None:
        """Drops all values whose key `of` says."""
        self._cache.forget(of)

    def _computed(self, key: Key, compute: Callable[[], Value]) -> Value:
        if (found := self._cache.get(key)) is not None:  # computed by another thread since this one looked
            return found
        value = compute()
        if self._worth_keeping(key, value):
            self._cache.keep(key, value)
        return value


class OpeningSlots:
    """Semaphore for opening files: lets `at_once` threads into a `with` block; others wait, with a timeout.

    Args:
        at_once: number of slots.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)

    def __enter__(self) -> None:
        """Waits for a slot.

        Raises:
            TookTooLong: none became free in time.
        """
        if not self._free.acquire(timeout=SLOT_SECONDS):
            raise TookTooLong(seconds=round(SLOT_SECONDS))

    def __exit__(self, *_: object) -> None:
        """Frees the slot, also after an error."""
        self._free.release()
