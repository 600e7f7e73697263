"""Budget: the bytes that all caches of a process may hold together."""

import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakSet

from model.sharing.system_memory import give_back, machine_bytes

SHARE = 4
"""Of the machine's memory, a fourth is the default budget, within these bounds."""

LEAST, MOST = 256 * 2**20, 2 * 2**30
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
    """

    def __init__(self, most_bytes: float) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.RLock()
        self._clock = itertools.count()
        self._caches: WeakSet[Shared] = WeakSet()
        self._freed = 0.0

    def share(self, cache: Shared) -> None:
        """Adds a cache, for as long as it is referred to."""
        with self.lock:
            self._caches.add(cache)

    def now(self) -> int:
        """The next tick of the clock by which uses are compared."""
        return next(self._clock)

    def held(self) -> Mapping[str, int]:
        """Bytes held, by the kind of value."""
        found: Counter[str] = Counter()
        with self.lock:
            for cache in self._caches:
                found[cache.kind] += int(cache.nbytes)
        return found

    def make_room(self) -> list[Entry]:
        """Drops and returns values until the budget is kept. Called under the lock; `free` follows outside of it."""
        return list(self._dropped())

    def _dropped(self) -> Iterator[Entry]:
        excess = sum(cache.nbytes for cache in self._caches) - self.most_bytes
        while excess > 0:
            oldest = min((cache for cache in self._caches if len(cache) > 1), key=lambda cache: cache.last_use(), default=None)
            if oldest is None:
                return
            yield (entry := oldest.drop())
            excess -= entry.nbytes

    def free(self, dropped: list[Entry]) -> None:
        """Frees values that were dropped, and gives memory back to the system where that were many bytes."""
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
    there = machine_bytes()
    return UNKNOWN if math.isinf(there) else min(MOST, max(LEAST, there // SHARE))


BUDGET = Budget(default_bytes())
"""The budget of this process."""
