"""Charging: what a question costs is charged to its caller as soon as it is known, before the work begins. No torch.

A context variable says who pays: it is set where a question enters the process, as SESSION is (scheduling/queue.py).
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeAlias

from model.errors import Phrase


@dataclass(frozen=True)
class Price:
    """What a question costs.

    Attributes:
        runs: about as many runs of a short sentence as it takes.
        instead: says what to ask instead where only so many runs are allowed.
    """

    runs: int
    instead: Callable[[int], Phrase]


Charge: TypeAlias = Callable[[Price], None]
"""Takes a price from a caller. Raises WorkedEnough or TooCostly."""

CHARGE: ContextVar[Charge | None] = ContextVar("charge", default=None)
"""Charges the caller of this thread's question; None: nobody pays."""


def charge(price: Price) -> None:
    """Charges the caller of this thread's question.

    Raises:
        Refused: the caller has to wait, or this server never computes so much.
    """
    if (take := CHARGE.get()) is not None:
        take(price)
