"""Rate limit: a token bucket for each caller."""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import TTLCache

from model.errors import TooFast

CALLERS = 10_000
"""Number of buckets kept. The bucket of a caller who has been silent for long is full again and can be dropped."""

CACHED_SECONDS = 60.0
"""An equal question of a caller within this time is not counted: its answer is still cached."""


@dataclass
class _Bucket:
    left: float
    at: float


class RateLimit:
    """Admits `rate` questions a second from each caller, and `burst` at once. Safe to be used from many threads.

    Args:
        rate: questions a second that a caller may ask in the long run.
        burst: questions that a caller may ask at once.
        callers: most buckets kept; the least recently used are dropped.
        timer: a clock in seconds.
    """

    def __init__(self, rate: float, burst: float, callers: int = CALLERS, timer: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._timer = rate, burst, timer
        self._buckets: TTLCache[str, _Bucket] = TTLCache(callers, burst / rate, timer)
        self._counted: TTLCache[tuple[str, int], bool] = TTLCache(callers, CACHED_SECONDS, timer)
        self._lock = threading.Lock()

    def admit(self, caller: str, question: Hashable = None, cost: float = 1) -> None:
        """Takes tokens from a caller's bucket.

        Args:
            caller: an address or a session id.
            question: identifies the question; None: one whose answer is not cached.
            cost: as how many questions it counts; the whole bucket suffices for any.

        Raises:
            TooFast: the caller asks too fast. Refused questions are not counted.
        """
        asked, cost = (caller, hash(question)), min(cost, self._burst)
        with self._lock:
            if question is not None and asked in self._counted:
                return
            now = self._timer()
            bucket = self._buckets.get(caller) or _Bucket(self._burst, now)
            left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
            self._buckets[caller] = _Bucket(left - cost if left >= cost else left, now)
            if left < cost:
                raise TooFast()
            if question is not None:
                self._counted[asked] = True
