"""LRU cache bounded in bytes and entries, alone and together with others under a budget; and values that are computed once."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from model.sharing.budget import Budget, Entry
from model.sharing.single_flight import SingleFlight

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """Values by key. Beyond its bounds, those that were used longest ago go; the newest always stays. Thread-safe.

    Args:
        most_bytes: of all values together. 0: nothing is cached.
        size: bytes of a value.
        most_entries: how many values.
        budget: bounds this cache and others together; None: it has only its own bounds. What cannot be made again, such as an
            upload, belongs under none: others would push it out.
        kind: what its values are, for whoever reads how the budget is used.

    Attributes:
        nbytes: of all values together.
    """

    def __init__(
        self,
        most_bytes: float,
        size: Callable[[Value], int],
        most_entries: float = math.inf,
        budget: Budget | None = None,
        kind: str = "",
    ) -> None:
        self.kind, self.nbytes = kind, 0.0
        self._most_bytes, self._size, self._most_entries = most_bytes, size, most_entries
        self._entries: OrderedDict[Key, Entry] = OrderedDict()
        self._budget = Budget(math.inf) if budget is None else budget
        self._budget.share(self)

    def __len__(self) -> int:
        """Number of values."""
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """The value of `key`, now the most recently used; None: not cached."""
        with self._budget.lock:
            if (found := self._entries.get(key)) is None:
                return None
            self._entries.move_to_end(key)
            found.used = self._budget.now()
            value: Value = found.value
            return value

    def keep(self, key: Key, value: Value) -> None:
        """Stores a value and drops those used longest ago if needed, of this cache and of those that share its budget."""
        if not self._most_bytes:
            return
        size, dropped = self._size(value), list[Entry]()
        with self._budget.lock:
            if key in self._entries:
                dropped.append(self._remove(key))
            self._entries[key] = Entry(value, size, self._budget.now())
            self.nbytes += size
            while len(self) > 1 and (self.nbytes > self._most_bytes or len(self) > self._most_entries):
                dropped.append(self.drop())
            dropped += self._budget.make_room()
        self._budget.free(dropped)

    def kept(self) -> list[Key]:
        """The keys of all values, the one that was used longest ago first."""
        with self._budget.lock:
            return list(self._entries)

    def forget(self, of: Callable[[Key], bool] = lambda key: True) -> None:
        """Drops the values whose keys `of` says; all of them where it is left out."""
        with self._budget.lock:
            dropped = [self._remove(key) for key in [key for key in self._entries if of(key)]]
        self._budget.free(dropped)

    def last_use(self) -> int:
        """When the value that was used longest ago was used, by the budget's clock."""
        return next(iter(self._entries.values())).used

    def drop(self) -> Entry:
        """Drops and returns the value that was used longest ago."""
        return self._remove(next(iter(self._entries)))

    def _remove(self, key: Key) -> Entry:
        entry = self._entries.pop(key)
        self.nbytes -= entry.nbytes
        return entry


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

    def kept(self) -> list[Key]:
        """The keys of all cached values."""
        return self._cache.kept()

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
