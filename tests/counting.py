"""What something costs, without a clock: how many functions were called for it. It is the same however busy the machine is."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
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


ROOT = Path(__file__).parents[1]
COMPUTING = ("headlight-run", "headlight-compute")
"""Threads of the engine that do a run; they may exist already, so they are never counted."""


def files_in_threads(do: Callable[[], object]) -> set[str]:
    """Files of model and viz of which a function is called in the threads that `do` starts, those of COMPUTING left out."""
    found = set[str]()

    def noted(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and threading.current_thread().name not in COMPUTING:
            found.add(frame.f_code.co_filename)

    threading.setprofile(noted)
    try:
        do()
    finally:
        threading.setprofile(None)
    inside = [Path(name).relative_to(ROOT) for name in found if Path(name).is_relative_to(ROOT)]
    return {str(path) for path in inside if path.parts[0] in ("model", "viz")}
