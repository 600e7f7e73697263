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
        debt: how much more than the burst a single question may cost; its caller waits until that is paid back.
    """

    def __init__(
        self,
        rate: float,
        burst: float,
        callers: int = CALLERS,
        timer: Callable[[], float] = time.monotonic,
        debt: float = 0.0,
    ) -> None:
        self._rate, self._burst, self._debt, self._timer = rate, burst, debt, timer
        self._buckets: TTLCache[str, _Bucket] = TTLCache(callers, (burst + debt) / rate, timer)  # full again after that time
        # Questions that were counted a short while ago, by their hash: the questions themselves can be megabytes
        # long.
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
        asked = caller, hash(question)
        # Reading a bucket and writing it back is one step: two threads that both saw the last token would both be
        # admitted.
        with self._lock:
            if question is not None and asked in self._counted:
                return
            left = self._left(caller)
            # A question that costs more than a full bucket could otherwise never be admitted. A full bucket is
            # enough for it; what it costs beyond that makes the bucket negative, down to `debt`, and its caller
            # waits until it has filled again.
            admitted = left >= min(cost, self._burst)
            self._buckets[caller] = _Bucket(left - min(cost, self._burst + self._debt) if admitted else left, self._timer())
            if not admitted:
                raise TooFast()
            if question is not None:
                self._counted[asked] = True

    def wait(self, caller: str, cost: float) -> float:
        """Seconds until a question of this cost is admitted."""
        with self._lock:
            return max(0.0, (min(cost, self._burst) - self._left(caller)) / self._rate)

    def _left(self, caller: str) -> float:
        """Tokens in a caller's bucket now; less than 0: a debt."""
        bucket = self._buckets.get(caller)
        return self._burst if bucket is None else min(self._burst, bucket.left + (self._timer() - bucket.at) * self._rate)
