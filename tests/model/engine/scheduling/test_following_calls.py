"""Calls that follow from an answer are made in the compute thread: a run's own thread wakes once, with the last answer."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from model.engine.scheduling.scheduler import Scheduler
from model.errors import RunFailed, Superseded
from model.inference.calls import Call, alone
from tests.patience import HANG_S
from tests.runs import SPECS, checkpoint, for_session

NETWORK = checkpoint(SPECS["paper"]).network


def counting(until: int, then: Callable[[int], None] = lambda done: None, done: int = 1) -> Call:
    """A call that is followed by others until so many are answered; each answers its number."""

    def following(answer: Tensor) -> Call | None:
        then(int(answer))
        return counting(until, then, done + 1) if done < until else None

    return Call(NETWORK, None, torch.zeros(1, 1), computed_by=lambda: torch.tensor(done), then=following)  # type: ignore[arg-type]


def test_the_last_answer_is_that_of_all_whoever_computes_them(scheduler: Scheduler) -> None:
    threads: list[str] = []
    assert alone(counting(5)) == 5
    work = counting(5, lambda done: threads.append(threading.current_thread().name))
    assert scheduler.do("any", lambda ask, report: ask(work)) == 5
    assert threads == ["headlight-compute"] * 5
    assert sum(scheduler.batches.values()) == 5


@pytest.mark.parametrize("error", [ValueError("three is too many"), KeyboardInterrupt()], ids=["an error", "no Exception"])
def test_an_error_on_the_way_is_that_of_its_run_alone(scheduler: Scheduler, error: BaseException) -> None:
    def then(done: int) -> None:
        if done == 3:
            raise error

    with pytest.raises((ValueError, RunFailed), match=r"three is too many|KeyboardInterrupt"):
        scheduler.do("one", lambda ask, report: ask(counting(9, then)))
    assert scheduler.do("other", lambda ask, report: ask(counting(9))) == 9


def test_a_run_that_nobody_waits_for_makes_no_further_call(scheduler: Scheduler) -> None:
    third, newer = threading.Event(), threading.Event()
    made: list[int] = []

    def then(done: int) -> None:
        made.append(done)
        if done == 3:
            third.set()
            assert newer.wait(HANG_S)

    outcome: list[Any] = []

    def older() -> None:
        try:
            for_session("a", scheduler.do)("older", lambda ask, report: ask(counting(50, then)))
        except Superseded as error:
            outcome.append(error)

    thread = threading.Thread(target=older)
    try:
        thread.start()
        assert third.wait(HANG_S)
        other = threading.Thread(target=lambda: for_session("a", scheduler.do)("newer", lambda ask, report: ask(counting(2))))
        other.start()
        thread.join(HANG_S)  # its caller is gone before the compute thread goes on
        newer.set()
        other.join(HANG_S)
        assert scheduler.do("last", lambda ask, report: ask(counting(2))) == 2
    finally:
        newer.set()
    assert made == [1, 2, 3]
    assert len(outcome) == 1


def test_runs_that_follow_take_turns(scheduler: Scheduler) -> None:
    """A long decode lets another run in after each of its calls."""
    began = threading.Event()
    made: list[str] = []

    def long(done: int) -> None:
        made.append("long")
        if done == 2:
            began.set()
            assert short_there.wait(HANG_S)

    short_there = threading.Event()

    def short(ask: Callable[[Call], Tensor]) -> Tensor:
        assert began.wait(HANG_S)
        waiting = counting(1, lambda done: made.append("short"))
        threading.Timer(0.05, short_there.set).start()  # by then its call is in the queue
        return ask(waiting)

    thread = threading.Thread(target=lambda: scheduler.do("long", lambda ask, report: ask(counting(200, long))))
    thread.start()
    scheduler.do("short", lambda ask, report: short(ask))
    thread.join(HANG_S)
    assert made.index("short") < 6
    assert made.count("long") == 200


def test_where_tensors_are_only_read_they_may_be_inference_tensors(scheduler: Scheduler) -> None:
    """The steps of a decode make tensors of answers: in the compute thread, too, no gradient is recorded."""
    modes: list[bool] = []
    scheduler.do("any", lambda ask, report: ask(counting(2, lambda done: modes.append(torch.is_inference_mode_enabled()))))
    assert modes == [True, True]
