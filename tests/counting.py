"""What something costs, without a clock: how many functions were called for it. It is the same however busy the machine is."""

import itertools
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_in_threads(do: Callable[[], object]) -> int:
    """Calls of Python's and C's functions in the threads that `do` starts: AppTest runs a script in one of its own."""
    count = itertools.count()

    def noted(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            next(count)

    threading.setprofile(noted)
    try:
        do()
    finally:
        threading.setprofile(None)
    return next(count)
