"""Rate limit: a token bucket for each caller."""

import threading
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from cachetools import TTLCache

from model.errors import Refused

CALLERS = 10_000
"""Callers whose buckets are kept. Of one that was not heard of for long the bucket is full again, and need not be kept."""

CACHED_SECONDS = 60.0
"""A caller's equal question within this time is not counted: its answer is still in a cache."""


@dataclass
class _Bucket:
    left: float
    at: float


class RateLimit:
    """Admits `rate` questions a second from each caller, and `burst` at once. Safe to be used from many threads.

    Args:
        rate: questions a second that a caller may go on asking.
        burst: questions that a caller may ask at once.
        callers: buckets that are kept; those unused for longest go.
        timer: seconds.
    """

    def __init__(self, rate: float, burst: float, callers: int = CALLERS, timer: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._timer = rate, burst, timer
        self._buckets: TTLCache[str, _Bucket] = TTLCache(callers, burst / rate, timer)
        self._counted: TTLCache[tuple[str, int], bool] = TTLCache(callers, CACHED_SECONDS, timer)
        self._lock = threading.Lock()

    def admit(self, caller: str, question: Hashable = None) -> None:
        """Counts one question.

        Args:
            caller: who asks: an address, or a session.
            question: what is asked; None: nothing that is answered from a cache.

        Raises:
            Refused: the caller asks too fast. That is not counted.
        """
        asked = caller, hash(question)
        with self._lock:
            if question is not None and asked in self._counted:
                return
            now = self._timer()
            bucket = self._buckets.get(caller) or _Bucket(self._burst, now)
            left = min(self._burst, bucket.left + (now - bucket.at) * self._rate)
            self._buckets[caller] = _Bucket(left - 1 if left >= 1 else left, now)
            if left < 1:
                allowed = f"at most {self._rate:.0f} questions a second; wait a moment"
                raise Refused(what="The pace", found="too fast", allowed=allowed)
            if question is not None:
                self._counted[asked] = True
