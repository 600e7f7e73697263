"""The scheduler's own loops, called in this thread: what a worker and the compute thread do at each turn."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from model.engine.scheduling.call_queue import PendingCall
from model.engine.scheduling.queue import Ticket
from model.engine.scheduling.scheduler import IDLE_SECONDS, Scheduler
from model.errors import Busy, EngineStopped, TookTooLong

Turn = Callable[[], bool]
NO_CALL: Any = SimpleNamespace(then=None)
"""A call that nothing computes and none follows."""


def waits(scheduler: Scheduler, *turns: Turn) -> list[float | None]:
    """Replaces the waiting of idle workers: each turn says what the next wait does, and whether it was woken. Returns the waits."""
    waited, left = list[float | None](), list(turns)

    def wait(timeout: float | None = None) -> bool:
        waited.append(timeout)
        return left.pop(0)()

    scheduler._joined.wait = wait  # type: ignore[method-assign]
    return waited


def joins(scheduler: Scheduler, woken: bool) -> Turn:
    """A request comes while a worker waits."""

    def turn() -> bool:
        scheduler._queue.join("late", print, "")
        return woken

    return turn


@pytest.mark.parametrize("woken", [True, False])
def test_a_request_that_comes_as_a_worker_gives_up_waiting_is_taken(woken: bool) -> None:
    scheduler = Scheduler()
    scheduler._workers = 1
    assert waits(scheduler, joins(scheduler, woken)) == []
    ticket = scheduler._next_ticket()
    assert ticket is not None
    assert ticket.request == "late"
    assert (scheduler._workers, scheduler._idle, scheduler.running) == (1, 0, 1)


def test_a_worker_that_was_woken_for_a_request_that_another_one_took_goes_on_waiting() -> None:
    scheduler = Scheduler()
    scheduler._workers = 1
    waited = waits(scheduler, lambda: True, joins(scheduler, True))
    assert scheduler._next_ticket() is not None
    assert waited == [IDLE_SECONDS, IDLE_SECONDS]
    assert scheduler._workers == 1


def test_a_worker_that_nothing_came_for_ends() -> None:
    scheduler = Scheduler()
    scheduler._workers = 1
    waits(scheduler, lambda: False)
    assert scheduler._next_ticket() is None
    assert (scheduler._workers, scheduler._idle, scheduler.running) == (0, 0, 0)


def test_a_worker_of_a_closed_scheduler_ends_without_waiting() -> None:
    scheduler = Scheduler()
    scheduler._workers = 1
    scheduler.close()
    assert waits(scheduler) == []
    assert scheduler._next_ticket() is None
    assert scheduler._workers == 0


def calls(scheduler: Scheduler, *names: str) -> list[PendingCall]:
    return [PendingCall(Ticket(name, print), NO_CALL, None) for name in names]


@pytest.mark.parametrize("error", [ValueError("failed"), torch.OutOfMemoryError("CUDA out of memory"), SystemExit()])
def test_a_batch_that_fails_as_a_whole_answers_each_of_its_calls(error: BaseException) -> None:
    def fail(batch: Sequence[object]) -> Any:
        raise error

    scheduler = Scheduler(together=fail)
    group = calls(scheduler, "a", "b", "c")
    scheduler._answer(group)
    assert all(pending.answered.is_set() for pending in group)
    assert {type(pending.answer) for pending in group} == {type(group[0].answer)}
    assert isinstance(group[0].answer, Exception)
    assert scheduler.batches == {3: 1}


def test_each_call_of_a_batch_gets_its_own_answer_and_its_run_may_call_again() -> None:
    answers: list[torch.Tensor | Exception] = [torch.tensor(1.0), ValueError("only b's"), torch.tensor(3.0)]
    scheduler = Scheduler(together=lambda batch: answers)
    group = calls(scheduler, "a", "b", "c")
    scheduler._answer(group)
    assert [pending.answer is answer for pending, answer in zip(group, answers, strict=True)] == [True] * 3
    assert scheduler._calls._expected.keys() == {pending.ticket for pending in group}


def test_a_closed_scheduler_takes_no_call() -> None:
    scheduler = Scheduler()
    scheduler.close()
    ticket, _waiter = scheduler._queue.join("a", print, "")
    with pytest.raises(EngineStopped) as told:
        scheduler._ask(ticket, NO_CALL)
    assert str(told.value) == str(EngineStopped())
    assert scheduler._next_calls() == []


def test_callers_of_a_scheduler_that_can_start_no_thread_leave_no_request_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(target: Callable[[], None], name: str) -> Any:
        raise Busy(ahead=0)

    scheduler = Scheduler()
    monkeypatch.setattr(scheduler, "_thread", refused)
    scheduler.start()
    assert not scheduler.alive()
    with pytest.raises(Busy):
        scheduler.do("a", print)
    assert scheduler.waiting == 0
    assert scheduler._queue._in_flight == {}
    with pytest.raises(Busy):
        scheduler.do("a", print)


@pytest.mark.parametrize(
    ("queued", "idle", "workers", "started"),
    [
        (1, 0, 0, True),
        (1, 0, 1, True),
        (2, 1, 1, True),
        (1, 1, 1, False),
        (0, 0, 0, False),
        (0, 1, 1, False),
        (1, 0, 2, False),
        (3, 0, 2, False),
    ],
)
def test_a_worker_is_started_for_a_request_that_no_idle_one_can_take_up_to_the_most(
    monkeypatch: pytest.MonkeyPatch, queued: int, idle: int, workers: int, started: bool
) -> None:
    scheduler, names = Scheduler(most_running=2), list[str]()
    monkeypatch.setattr(scheduler, "_thread", lambda target, name: names.append(name))
    scheduler._started, scheduler._idle, scheduler._workers = True, idle, workers
    for number in range(queued):
        scheduler._queue.join(number, print, "")
    with scheduler._lock:
        scheduler._ensure_threads()
    assert names == ["headlight-compute", *["headlight-run"] * started]
    assert scheduler._workers == workers + started


@pytest.mark.parametrize("due", [0.0, -0.5])
def test_the_compute_thread_waits_until_the_oldest_call_is_due(monkeypatch: pytest.MonkeyPatch, due: float) -> None:
    scheduler, waited, patience = Scheduler(), list[float | None](), [0.25, due]

    def wait(timeout: float | None = None) -> bool:
        waited.append(timeout)
        scheduler._calls._pending = group
        return True

    group = calls(scheduler, "a")
    monkeypatch.setattr(scheduler._called, "wait", wait)
    monkeypatch.setattr(scheduler._calls, "patience", lambda: patience.pop(0))
    monkeypatch.setattr(scheduler._calls, "take", lambda: group)
    assert scheduler._next_calls() is group
    assert waited == [None, 0.25], "first there is no call, and then one that waits for others"
    assert patience == []


def test_a_caller_whose_time_is_over_is_told_how_long_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    times = [100.0, 307.4]
    monkeypatch.setattr("model.engine.scheduling.scheduler.time", SimpleNamespace(monotonic=lambda: times.pop(0)))
    with pytest.raises(TookTooLong) as told:
        Scheduler(deadline=0.01).do("a", print)
    assert str(told.value) == str(TookTooLong(seconds=207))
