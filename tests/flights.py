"""Calls that overlap for certain, without a clock: nobody leaves a computation before everybody is inside it or waits for it."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from unittest.mock import patch

from tests.patience import HANG_S

Value = TypeVar("Value")


def at_once(threads: int, call: Callable[[Callable[[], None]], Value]) -> list[Value]:
    """The results of `call` in so many threads.

    Args:
        call: gets a function that its computation calls when it has begun.
    """
    together, ours = threading.Barrier(threads, timeout=HANG_S), set[int]()
    found, errors = list[Value](), list[BaseException]()
    wait = Future.result

    def meet() -> None:
        if threading.get_ident() not in ours:  # each thread once
            ours.add(threading.get_ident())
            together.wait()

    def waits(future: "Future[Any]", timeout: float | None = None) -> Any:
        if not future.done() and threading.current_thread() in visitors:
            meet()
        return wait(future, timeout)

    def visit() -> None:
        try:
            found.append(call(meet))
        except BaseException as error:  # whatever it is, the caller gets it
            together.abort()
            errors.append(error)

    visitors = [threading.Thread(target=visit) for _ in range(threads)]
    with patch.object(Future, "result", waits):
        for thread in visitors:
            thread.start()
        for thread in visitors:
            thread.join()
    if errors:
        raise errors[0]
    return found
