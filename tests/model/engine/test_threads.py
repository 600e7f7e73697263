"""Threads that cannot be started, and threads that die: one caller is told, and the engine goes on."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from model.engine.api import Healthy, Run
from model.engine.local import LocalEngine
from model.engine.scheduling.call_queue import CallQueue
from model.engine.scheduling.queue import Ticket
from model.engine.scheduling.scheduler import Scheduler
from model.errors import Busy, EngineStopped, RunFailed
from model.features.serving.http.server import DEAD
from model.inference import batching
from model.inference.calls import Call, alone
from model.inference.run import run
from model.requests.request import RunRequest
from model.trace.progress import Report
from model.trace.types import Trace
from tests.hosts import behind
from tests.patience import HANG_S
from tests.runs import CPU, SPECS, assert_same, checkpoint, for_session, request, traced

PAPER = SPECS["paper"]


class PanicException(BaseException):
    """What a library that is written in Rust raises: no Exception."""


@pytest.fixture
def no_more_threads(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes the system refuse threads of these names."""
    start = threading.Thread.start

    def refuse(*names: str) -> None:
        def refused(thread: threading.Thread) -> None:
            if thread.name in names:
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", refused)

    return refuse


def a_run(scheduler: Scheduler) -> Trace:
    """A run of a network, with calls that the compute thread answers."""
    found, asked = checkpoint(PAPER), request(PAPER)
    answer: Trace = scheduler.do(asked, lambda ask, report: run(found, asked, CPU, "cpu", ask))
    return answer


def test_one_thread_of_a_run_that_could_not_be_started_ended_the_engine_for_good(
    local: LocalEngine, no_more_threads: Callable[..., None]
) -> None:
    no_more_threads("headlight-run")
    with pytest.raises(Busy):
        for_session("a", local.ask)(Run(RunRequest("tiny", "w4")))
    assert local.ask(Healthy())
    no_more_threads()
    assert for_session("a", local.ask)(Run(RunRequest("tiny", "w4"))).steps
    no_more_threads("headlight-run")
    assert for_session("b", local.ask)(Run(RunRequest("tiny", "w5"))).steps, "the thread that is there does it"


def test_a_host_whose_compute_thread_is_dead_says_so_and_recovers(folder: Path, no_more_threads: Callable[..., None]) -> None:
    no_more_threads("headlight-compute")
    engine = LocalEngine(folder, CPU)
    remote = behind(engine)
    assert not remote.ask(Healthy())
    said = remote._client.get("/healthz")
    assert (said.status_code, said.json()) == (503, {"status": DEAD})
    with pytest.raises(Busy):
        remote.ask(Run(RunRequest("tiny", "w4")))
    no_more_threads()
    assert not remote.ask(Healthy()), "it was dead until now"
    assert remote.ask(Healthy())
    assert remote.ask(Run(RunRequest("tiny", "w4"))).steps
    engine.scheduler.close()


@pytest.mark.parametrize("error", [PanicException, SystemExit, ValueError])
def test_a_compute_thread_that_died_left_everybody_waiting(
    local: LocalEngine, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def die(self: CallQueue) -> None:
        raise error("dead")

    with monkeypatch.context() as patched:
        patched.setattr(CallQueue, "take", die)
        with pytest.raises((RunFailed, ValueError)):
            for_session("a", local.ask)(Run(RunRequest("tiny", "w4")))
    assert for_session("a", local.ask)(Run(RunRequest("tiny", "w4"))).steps
    assert local.ask(Healthy())


@pytest.mark.parametrize("error", [PanicException, SystemExit, ValueError])
def test_a_network_that_raises_what_is_no_exception_ended_the_compute_thread(error: type[BaseException]) -> None:
    fails = [True]

    def together(calls: Sequence[Call]) -> Sequence[Tensor | Exception]:
        if fails.pop() if fails else False:
            raise error("dead")
        return batching.together(calls)

    scheduler = Scheduler(together=together).start()
    computing = scheduler._compute
    with pytest.raises((RunFailed, ValueError)):
        a_run(scheduler)
    assert_same(a_run(scheduler), traced(checkpoint(PAPER), request(PAPER)))
    assert scheduler._compute is computing
    scheduler.close()


@pytest.mark.parametrize("error", [PanicException, SystemExit, KeyboardInterrupt])
def test_a_run_that_ended_by_what_is_no_exception_never_answered(error: type[BaseException]) -> None:
    scheduler = Scheduler(most_running=1).start()

    def work(ask: Any, report: Any) -> None:
        raise error("dead")

    with pytest.raises(RunFailed, match=rf"failed inside a library that it uses: {error.__name__}\. ") as told:
        scheduler.do("one", work)
    assert isinstance(told.value.__cause__, error)
    assert scheduler.do("two", lambda ask, report: 2) == 2
    assert scheduler.running == 0
    scheduler.close()


def test_a_panic_reached_the_caller_of_a_host_as_a_broken_connection(local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: object) -> None:
        raise PanicException("called `Option::unwrap()` on a `None` value")

    remote = behind(local)
    with monkeypatch.context() as patched:
        patched.setattr("model.engine.runtime.run_in", panic)
        with pytest.raises(RunFailed):
            remote.ask(Run(RunRequest("tiny", "w4")))
    assert remote.ask(Run(RunRequest("tiny", "w4"))).steps


@pytest.mark.parametrize("calls", [0, 1])
def test_a_run_that_is_slow_in_its_own_thread_held_up_the_device(scheduler: Scheduler, calls: int) -> None:
    blocked, go_on = threading.Event(), threading.Event()
    found, asked = checkpoint(PAPER), request(PAPER)

    def slow(ask: Callable[[Call], Tensor], report: Report) -> Trace:
        left = [calls]

        def counted(call: Call) -> Tensor:
            if not left[0]:
                blocked.set()
                assert go_on.wait(HANG_S)
            left[0] -= 1
            return ask(call)

        return run(found, asked, CPU, "cpu", counted)

    def work(ask: Callable[[Call], Tensor], report: Report) -> Trace:
        return run(found, asked, CPU, "cpu", ask)

    with ThreadPoolExecutor(2) as pool:
        held = pool.submit(for_session("a", scheduler.do), "slow", slow)
        assert blocked.wait(HANG_S)
        try:
            other = pool.submit(
                for_session("b", scheduler.do), "other", lambda ask, report: run(found, asked, CPU, "cpu", ask)
            ).result(HANG_S)
            assert not held.done()
        finally:
            go_on.set()
        assert_same(held.result(HANG_S), other)


def test_threads_of_runs_end_when_nothing_is_to_be_done(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.engine.scheduling.scheduler.IDLE_SECONDS", 0.01)
    ended = threading.Event()
    for number in range(3):
        assert scheduler.do(number, lambda ask, report: threading.current_thread().name) == "headlight-run"
        for _ in range(6000):
            if not scheduler._workers:
                break
            ended.wait(0.01)
        assert not scheduler._workers


def test_who_asks_a_closed_engine_is_told_at_once(scheduler: Scheduler) -> None:
    scheduler.close()
    with pytest.raises(EngineStopped, match=r"^The engine of this program is being stopped\. Start Headlight again\.$"):
        scheduler.do("one", lambda ask, report: 1)
    assert not scheduler.alive()


def test_a_call_that_cannot_be_batched_waits_for_no_other_run() -> None:
    found, queue = checkpoint(PAPER), CallQueue(gather=60.0)
    calls: list[Call] = []

    def note(call: Call) -> Tensor:
        calls.append(call)
        return alone(call)

    run(found, request(PAPER), CPU, "cpu", note)
    first, second, third = (Ticket(number, print) for number in range(3))
    queue.expect(first)
    queue.expect(second)
    queue.add(first, calls[0])
    assert queue.patience() > 0, "the second one may call the same"
    queue.end(second)
    assert queue.patience() <= 0, "nobody else will call"
    assert [pending.ticket for pending in queue.take()] == [first]
    queue.expect(second)
    queue.add(third, replace(calls[0], run=replace(calls[0].run, fused=True)))
    assert queue.patience() <= 0
