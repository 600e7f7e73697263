"""Pace: batches of a measurement that take at most a moment each, so that the runs of others come between them.

How long a batch takes is known only afterwards: the first one is small, and each next one is sized by the one before.
"""

import time
from collections.abc import Callable
from typing import TypeVar

Computed = TypeVar("Computed")

MOMENT = 0.15
"""Seconds that a batch should take; some take half as long again."""

GROWTH = 8
"""How many times larger than the one before a batch may be: a short one says little about a long one."""

OPERATIONS_AT_FIRST = 4e8
"""Multiplications and additions of the first batch, which slow processors do in a moment."""


class Pace:
    """Sizes batches by the time that the last one took. Of one measurement, whose batches follow each other.

    Args:
        operations: of one unit of work, such as a pass of a run: about two for each parameter and position.
        clock: the time in seconds.
    """

    def __init__(self, operations: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._next, self._clock = OPERATIONS_AT_FIRST / max(operations, 1.0), clock

    def units(self) -> float:
        """How many units of work the next batch should hold."""
        return self._next

    def whole(self, most: int) -> int:
        """The same as a whole number from 1 to `most`, where a unit cannot be divided."""
        return max(1, min(most, int(self._next)))

    def timed(self, units: float, compute: Callable[[], Computed]) -> Computed:
        """What `compute` returns for a batch of so many units. It must have ended when it returns, on a GPU, too."""
        # Where `compute` fails, nothing is learned: the size of the next batch stays as it was.
        began = self._clock()
        computed = compute()
        took = self._clock() - began
        # The time per unit of this batch says how many units fit into a moment. A time of 0 is too short for the clock.
        self._next = units * min(GROWTH, MOMENT / took if took > 0 else GROWTH)
        return computed
