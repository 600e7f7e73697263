"""The compute thread takes the oldest call and those that can be batched with it, and leaves the others in their order."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import pytest
import torch

from model.engine.scheduling.call_queue import CallQueue, PendingCall
from model.engine.scheduling.queue import Ticket
from model.engine.scheduling.scheduler import Scheduler
from model.errors import OutOfMemory
from model.inference.calls import Call

CALLED = ("b", "a", "b", "a", "c")


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> CallQueue:
    """Calls of two networks that can be batched, and one of a third; equal keys are objects of their own."""
    keys: dict[int, Hashable] = {}
    monkeypatch.setattr("model.inference.batching.batch_key", lambda call: (keys[id(call)],) if keys[id(call)] != "alone" else None)
    monkeypatch.setattr("model.inference.batching.room", lambda calls: 2)
    queue = CallQueue()
    for place, key in enumerate(CALLED):
        call = Call(None, None, torch.tensor([[place]]))  # type: ignore[arg-type]
        keys[id(call)] = key
        queue.add(Ticket(place, print), call)
    queue.keys = keys  # type: ignore[attr-defined]  # the calls' ids stay theirs
    return queue


def places(group: list[PendingCall]) -> list[Any]:
    return [pending.ticket.request for pending in group]


def test_a_batch_is_the_oldest_call_and_those_of_its_key(waiting: CallQueue) -> None:
    assert [places(waiting.take()) for _ in range(3)] == [[0, 2], [1, 3], [4]]
    assert len(waiting) == 0


def test_a_batch_holds_as_many_calls_as_there_is_room_for(waiting: CallQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.inference.batching.room", lambda calls: 1)
    assert [places(waiting.take()) for _ in CALLED] == [[0], [1], [2], [3], [4]]


def test_a_call_that_is_never_batched_is_taken_alone(waiting: CallQueue) -> None:
    for pending in waiting._pending:
        pending.key = None
    assert [places(waiting.take()) for _ in CALLED] == [[0], [1], [2], [3], [4]]


def test_the_next_call_of_a_run_stands_behind_those_that_waited(waiting: CallQueue) -> None:
    first, third = waiting.take()
    call = Call(None, None, torch.tensor([[0]]))  # type: ignore[arg-type]
    waiting.keys[id(call)] = "c"  # type: ignore[attr-defined]
    before = first.since
    waiting.follow(first, call)
    assert first.call is call
    assert first.since >= before
    assert [places(waiting.take()) for _ in range(2)] == [[1, 3], [4, 0]]
    assert third.call is not call


@pytest.mark.parametrize(("outcome", "released"), [(OutOfMemory(device="cpu", found="1 × 1"), 2), (ValueError("other"), 0)])
def test_memory_is_given_back_after_each_try_of_a_run_that_had_too_little(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, outcome: Exception, released: int
) -> None:
    times: list[int] = []
    monkeypatch.setattr("model.inference.batching.release", lambda: times.append(1))

    def fails(*_: Any) -> None:
        raise outcome

    with pytest.raises(type(outcome)):
        scheduler.do("any", fails)
    assert scheduler.do("other", lambda ask, report: 1) == 1
    assert len(times) == released


def test_a_scheduler_that_is_well_starts_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    scheduler = Scheduler().start()
    thread = scheduler._compute
    with caplog.at_level("ERROR", logger="headlight.engine"):
        assert scheduler.alive()
        scheduler.close()
        assert not scheduler.alive()
    assert caplog.records == []
    assert scheduler._compute is thread


class Clock:
    """A clock that tests set."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(queue: CallQueue, clock: Clock, seconds: float) -> str:
    """Who is computed, in order, where each call takes so long and is followed by the next one at once."""
    order = ""
    for _ in range(6):
        (pending,) = queue.take()
        order += str(pending.ticket.request)
        clock.now += seconds
        queue.follow(pending, pending.call)
    return order


def test_a_measurement_gives_way_to_every_step_of_a_run_but_not_for_good() -> None:
    clock = Clock()
    queue = CallQueue(clock=clock)
    run = Call(None, None, torch.zeros(1, 1), computed_by=torch.zeros)  # type: ignore[arg-type]
    measurement = replace(run, gives_way=True)
    queue.add(Ticket("m", print), measurement)
    queue.add(Ticket("r", print), run)
    assert taken(queue, clock, 0.25) == "rrrrrr"
    assert taken(queue, clock, 0.25) == "rrmrrr", "once in two seconds"


def test_a_measurement_waits_a_moment_for_a_run_that_is_about_to_call() -> None:
    clock = Clock()
    queue = CallQueue(gather=0.02, clock=clock)
    queue.expect(Ticket("r", print))
    queue.add(Ticket("m", print), Call(None, None, torch.zeros(1, 1), computed_by=torch.zeros, gives_way=True))  # type: ignore[arg-type]
    assert queue.patience() == pytest.approx(0.02)
    clock.now += 0.03
    assert queue.patience() <= 0
