"""Caches that threads share: one budget of bytes for all, values by key, and work that several ask for at once.

A *budget* counts the bytes of all caches of a process; beyond it, the value that was used longest ago goes, whichever cache it is
in. A *single flight* runs simultaneous equal computations once. `ComputedOnce` is a cache whose missing values are computed so.
"""

import itertools
import math
import operator
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from model.sharing.system_memory import give_back, machine_bytes

SHARE = 4
"""Of the machine's memory, a fourth is the default budget, within these bounds."""

LEAST, MOST = 256 * 2**20, 2 * 2**30
"""Smallest and largest default budget, in bytes."""

UNKNOWN = 2**30
"""The default budget where the machine does not say how much memory it has."""

GIVEN_BACK = 128 * 2**20
"""After so many bytes were freed, the allocator is asked to return what it keeps. That takes it about 10 ms."""


@dataclass(slots=True)
class Entry:
    """A value, its bytes, and when it was used last, by the budget's clock."""

    value: Any
    nbytes: float
    used: int


class Shared(Protocol):
    """A cache under a budget. All of it is read and changed under the budget's lock."""

    kind: str
    nbytes: float

    def __len__(self) -> int:
        """Number of values."""

    def last_use(self) -> int:
        """When the value that was used longest ago was used, by the budget's clock."""

    def drop(self) -> Entry:
        """Drops and returns the value that was used longest ago."""


class Budget:
    """Bytes of several caches. Beyond them, the value that was used longest ago goes, whichever cache it is in. Thread-safe.

    The newest value of each cache stays, however large: a network and the run that it made never push each other out.

    Args:
        most_bytes: of all values together.

    Attributes:
        lock: held for operations of dictionaries alone.
        clock: each use takes its next tick, by which uses are compared.
    """

    def __init__(self, most_bytes: float) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.RLock()
        self.clock = itertools.count()
        self._caches: WeakSet[Shared] = WeakSet()
        self._freed = 0.0

    def share(self, cache: Shared) -> None:
        """Adds a cache, for as long as it is referred to."""
        with self.lock:
            self._caches.add(cache)

    def held(self) -> Mapping[str, int]:
        """Bytes held, by the kind of value."""
        held: Counter[str] = Counter()
        with self.lock:
            for cache in self._caches:
                held[cache.kind] += int(cache.nbytes)
        return held

    def make_room(self) -> list[Entry]:
        """Drops and returns values until the budget is kept. Called under the lock; `free` follows outside of it."""
        dropped = list[Entry]()
        # The value that was used longest ago of all caches goes first; a cache with a single value keeps it.
        excess = sum(cache.nbytes for cache in self._caches) - self.most_bytes
        while excess > 0 and (caches := [cache for cache in self._caches if len(cache) > 1]):
            dropped.append(min(caches, key=lambda cache: cache.last_use()).drop())
            excess -= dropped[-1].nbytes
        return dropped

    def free(self, dropped: list[Entry]) -> None:
        """Frees values that were dropped, and gives memory back to the system where that were many bytes."""
        # Outside the lock: freeing gigabytes takes long, and others only want to read a dictionary.
        nbytes = sum(entry.nbytes for entry in dropped)
        dropped.clear()
        with self.lock:
            self._freed += nbytes
            if due := self._freed >= GIVEN_BACK:
                self._freed = 0.0
        if due:
            give_back()


def default_bytes() -> float:
    """The budget of a process for which none is configured."""
    memory = machine_bytes()
    return UNKNOWN if math.isinf(memory) else min(MOST, max(LEAST, memory // SHARE))


BUDGET = Budget(default_bytes())
"""The budget of this process."""


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def once_for_each(compute: Callable[[Key], Value]) -> Callable[[Key], Value]:
    """Decorator of a function of one object: it is computed once for each object, and kept for as long as that lives."""
    values: WeakKeyDictionary[Key, Value] = WeakKeyDictionary()

    @wraps(compute)
    def computed_once(owner: Key) -> Value:
        if owner not in values:
            values[owner] = compute(owner)
        return values[owner]

    return computed_once


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
        return self.begin(key, compute, operator.call).result()

    def begin(self, key: Key, compute: Callable[[], Value], start: Callable[[Callable[[], None]], object]) -> "Future[Value]":
        """The future of `compute`, or of an equal computation that is in flight.

        Args:
            key: what is equal.
            compute: makes the result.
            start: runs its argument, now or in another thread, such as `ThreadPoolExecutor.submit`.
        """
        future: Future[Value] = Future()
        with self._lock:
            # Whoever comes first computes; all others get the same future and wait.
            first = self._in_flight.setdefault(key, future)
        if first is future:
            start(lambda: self._land(key, future, compute))
        return first

    def _land(self, key: Key, future: "Future[Value]", compute: Callable[[], Value]) -> None:
        try:
            future.set_result(compute())
        except BaseException as error:
            future.set_exception(error)
        finally:
            with self._lock:
                del self._in_flight[key]


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
            if (entry := self._entries.get(key)) is None:
                return None
            self._entries.move_to_end(key)
            entry.used = next(self._budget.clock)
            value: Value = entry.value
            return value

    def keep(self, key: Key, value: Value) -> None:
        """Stores a value and drops those used longest ago if needed, of this cache and of those that share its budget."""
        if not self._most_bytes:
            return
        # The size is computed before the lock is taken, and what was dropped is freed after it.
        size, dropped = self._size(value), list[Entry]()
        with self._budget.lock:
            if key in self._entries:
                dropped.append(self._remove(key))
            self._entries[key] = Entry(value, size, next(self._budget.clock))
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
        if (cached := self._cache.get(key)) is not None:
            return cached
        # Between the look above and this line another thread may have finished: `_computed` looks once more.
        return self._flight.do(key, lambda: self._computed(key, compute))

    def kept(self) -> list[Key]:
        """The keys of all cached values."""
        return self._cache.kept()

    def forget(self, of: Callable[[Key], bool]) -> None:
        """Drops all values whose key `of` says."""
        self._cache.forget(of)

    def _computed(self, key: Key, compute: Callable[[], Value]) -> Value:
        if (cached := self._cache.get(key)) is not None:  # computed by another thread since this one looked
            return cached
        value = compute()
        if self._worth_keeping(key, value):
            self._cache.keep(key, value)
        return value
