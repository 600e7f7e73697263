"""Many callers, one device: bounded, fair, nothing computed twice, and nobody waits for what is not wanted any more."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from model.checkpoints import loader
from model.engine.api import Models, Run
from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.errors import Busy, EngineStopped, HeadlightError, NoRoom, OutOfMemory, Superseded, TookTooLong
from model.requests.request import RunRequest
from model.trace.progress import LISTENER, Progress
from model.transformer.stacks import EncoderDecoder
from tests.networks import save_checkpoint
from tests.patience import HANG_S, settled
from tests.runs import CPU, assert_same, for_session


@dataclass
class Callers:
    """Threads that ask a scheduler for work; `gate` holds the first back, so that the others have to wait."""

    scheduler: Scheduler
    gate: threading.Event = field(default_factory=threading.Event)
    order: list[str] = field(default_factory=list)
    outcomes: dict[str, Any] = field(default_factory=dict)
    threads: list[threading.Thread] = field(default_factory=list)
    joined: int = 0

    def __post_init__(self) -> None:
        """Counts who has a place in the line."""
        join = self.scheduler._queue.join

        def counted(*args: Any) -> Any:
            place = join(*args)
            self.joined += 1
            return place

        self.scheduler._queue.join = counted  # type: ignore[method-assign, assignment]

    def ask(self, name: str, request: str = "", session: str = "") -> None:
        """Another caller; returns when it has a place in the line or is answered."""

        def work(ask: Any, report: Any) -> str:
            self.order.append(name)
            assert self.gate.wait(HANG_S)
            return f"done for {name}"

        def call() -> None:
            try:
                self.outcomes[name] = for_session(session, self.scheduler.do)(request or name, work)
            except HeadlightError as error:
                self.outcomes[name] = error

        self.threads.append(threading.Thread(target=call))
        self.threads[-1].start()
        settled(lambda: self.joined == len(self.threads) or name in self.outcomes)
        settled(lambda: bool(self.order) or name in self.outcomes)

    def finish(self) -> None:
        self.gate.set()
        for thread in self.threads:
            thread.join(HANG_S)


@pytest.fixture
def callers() -> Iterator[Callers]:
    """Callers of a scheduler that does one thing at a time and lets three wait."""
    found = Callers(Scheduler(most_waiting=3, most_running=1).start())
    yield found
    found.finish()
    found.scheduler.close()


def test_a_full_line_says_at_once_how_many_are_ahead(callers: Callers) -> None:
    for name in "abcd":
        callers.ask(name)
    callers.ask("e")
    assert str(callers.outcomes["e"]) == str(Busy(ahead=4))
    callers.finish()
    assert [callers.outcomes[name] for name in "abcd"] == [f"done for {name}" for name in "abcd"]


def test_who_asked_before_the_threads_were_started_is_answered() -> None:
    scheduler = Scheduler(most_waiting=3, most_running=1)
    callers = Callers(scheduler)
    callers.gate.set()
    asked = threading.Thread(target=lambda: callers.outcomes.update(a=scheduler.do("a", lambda ask, report: "done")))
    asked.start()
    settled(lambda: scheduler.waiting == 1)
    scheduler.start()
    asked.join(HANG_S)
    scheduler.close()
    assert callers.outcomes == {"a": "done"}


def test_an_idle_worker_takes_the_next_request_and_no_other_one_is_started() -> None:
    scheduler = Scheduler(most_waiting=3, most_running=5).start()
    for name in "abc":
        assert scheduler.do(name, lambda ask, report: "done") == "done"
        settled(lambda: scheduler._idle == 1)
    assert scheduler._workers == 1
    scheduler.close()


def test_equal_requests_in_flight_are_worked_on_once(callers: Callers) -> None:
    for name in "abc":
        callers.ask(name, request="the same")
    callers.ask("d", request="another")
    callers.finish()
    assert len(callers.order) == 2
    assert {callers.outcomes[name] for name in "abc"} == {f"done for {callers.order[0]}"}


def test_a_newer_request_of_a_session_takes_the_place_of_its_older_one(callers: Callers) -> None:
    callers.ask("first", session="other")
    callers.ask("old", session="mine")
    callers.ask("new", session="mine")
    settled(lambda: "old" in callers.outcomes)
    callers.finish()
    assert isinstance(callers.outcomes["old"], Superseded)
    assert callers.outcomes["new"] == "done for new"
    assert callers.order == ["first", "new"]


def test_a_caller_waits_no_longer_than_the_deadline() -> None:
    callers = Callers(Scheduler(deadline=0.05, most_running=1).start())
    callers.ask("a")
    settled(lambda: "a" in callers.outcomes)
    assert isinstance(callers.outcomes["a"], TookTooLong)
    callers.finish()
    settled(lambda: callers.scheduler.running == 0)
    callers.ask("b")
    settled(lambda: "b" in callers.outcomes)
    assert callers.outcomes["b"] == "done for b"
    callers.scheduler.close()


def test_a_caller_that_hears_how_far_the_work_is_waits_on() -> None:
    """The work reports once and then never again: the deadline passes twice."""
    scheduler, gate = Scheduler(deadline=1.0, most_running=1).start(), threading.Event()

    def work(ask: Any, report: Any) -> None:
        report(lambda: Progress((), (), 3, 0.0, measured=1))
        assert gate.wait(HANG_S)

    heard = list[Progress]()
    listening = LISTENER.set(heard.append)
    try:
        with pytest.raises(TookTooLong) as raised:
            scheduler.do("asked", work)
    finally:
        LISTENER.reset(listening)
        gate.set()
        scheduler.close()
    assert len(heard) == 1
    assert raised.value.fields["seconds"] >= 2  # type: ignore[operator]


def test_who_waits_when_the_workshop_closes_is_told(callers: Callers) -> None:
    for name in "ab":
        callers.ask(name)
    callers.scheduler.close()
    settled(lambda: "b" in callers.outcomes)
    assert str(callers.outcomes["b"]) == str(EngineStopped())


def test_a_run_that_is_not_wanted_any_more_ends_at_its_next_step(local: LocalEngine) -> None:
    network, begun, steps = local.checkpoint("tiny").network, threading.Event(), list[int]()
    assert isinstance(network, EncoderDecoder)
    decode, gate = network.decode, threading.Event()

    def slow(*args: Any) -> Any:
        steps.append(1)
        begun.set()
        assert gate.wait(HANG_S)
        return decode(*args)

    network.decode = slow  # type: ignore[method-assign, assignment]
    failed: list[Exception] = []

    def old() -> None:
        try:
            for_session("mine", local.ask)(Run(RunRequest("tiny", "w4 w5")))
        except Superseded as error:
            failed.append(error)

    first = threading.Thread(target=old)
    first.start()
    assert begun.wait(HANG_S)
    second = threading.Thread(target=lambda: for_session("mine", local.ask)(Run(RunRequest("tiny", "w6", target="w4"))))
    second.start()
    first.join(HANG_S)
    assert len(failed) == 1
    gate.set()
    second.join(HANG_S)
    assert len(steps) == 2


def test_an_answer_that_is_kept_needs_no_computing(tmp_path: Path, local: LocalEngine) -> None:
    trace = local.ask(Run(RunRequest("tiny", "w4")))
    computed = sum(local.scheduler.batches.values())
    assert for_session("anybody", local.ask)(Run(RunRequest("tiny", "w4"))) is trace
    assert sum(local.scheduler.batches.values()) == computed
    tight = LocalEngine(tmp_path, CPU, cache_bytes=trace.nbytes + 1)
    kept = [tight.ask(Run(RunRequest("tiny", text))) for text in ("w4", "w5")]
    assert [tight.ask(Run(RunRequest("tiny", text))) is old for text, old in zip(("w5", "w4"), reversed(kept), strict=True)] == [
        True,
        False,
    ]


def test_a_run_without_room_is_refused_in_words_and_the_engine_goes_on(
    tmp_path: Path, local: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = local.checkpoint("tiny").network
    assert isinstance(network, EncoderDecoder)
    encode = network.encode

    def cramped(ids: torch.Tensor, *others: Any) -> torch.Tensor:
        if ids.shape[1] > 4:  # three words, a start and an end
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return encode(ids, *others)

    monkeypatch.setattr(network, "encode", cramped)
    with ThreadPoolExecutor(3) as pool:
        texts = ("w4 w5", "w4 w5 w6", "w7")
        answers = [pool.submit(local.ask, Run(RunRequest("tiny", text, target="w4"))) for text in texts]
    with pytest.raises(OutOfMemory, match=r"cpu does not have enough memory for this run \(1 × 5 positions at once\)\. Shorten"):
        answers[1].result()
    for text, answer in zip(texts, answers, strict=True):
        if text != "w4 w5 w6":
            assert_same(answer.result(), LocalEngine(tmp_path, CPU).ask(Run(RunRequest("tiny", text, target="w4"))))
    assert local.ask(Run(RunRequest("tiny", "w8"))).steps
    assert local.scheduler.running == 0


def test_memory_that_runs_out_in_the_thread_of_a_run_is_said_in_words(scheduler: Scheduler) -> None:
    def work(ask: Any, report: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(OutOfMemory):
        scheduler.do("one", work)
    assert scheduler.do("two", lambda ask, report: 2) == 2


def test_runs_that_do_not_fit_beside_each_other_are_tried_again_one_by_one(scheduler: Scheduler) -> None:
    together, begun, held = threading.Barrier(4), threading.Lock(), [0]
    tries: Counter[str] = Counter()

    def work(name: str, ask: Any, report: Any) -> str:
        with begun:
            tries[name] += 1
            held[0] += 1
        try:
            if tries[name] == 1:
                together.wait(HANG_S)  # all four have recorded something
            if held[0] > 1:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return name
        finally:
            if tries[name] == 1:
                together.wait(HANG_S)
            with begun:
                held[0] -= 1

    names = ["one", "two", "three", "four"]
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda name: for_session(name, scheduler.do)(name, partial(work, name)), names))
    assert answers == names
    assert tries == dict.fromkeys(names, 2)


def test_a_network_that_the_device_has_no_room_for_is_said_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("large", "small"):
        save_checkpoint(tmp_path / name)
    load, room = loader.load, [False]

    def cramped(path: Path, *others: Any) -> Any:
        if path.name == "large" and not room[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return load(path, *others)

    monkeypatch.setattr(loader, "load", cramped)
    engine = LocalEngine(tmp_path, CPU)
    assert {info.name: info.problem.get("error") for info in engine.ask(Models()).models} == {"large": "NoRoom", "small": None}
    with pytest.raises(NoRoom, match=r"^There is not enough memory for the weights of large\. "):
        engine.ask(Run(RunRequest("large", "w4")))
    assert engine.ask(Run(RunRequest("small", "w4"))).steps


def test_a_lower_copy_finds_room_when_there_is_some_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine, request = LocalEngine(tmp_path, CPU), RunRequest("tiny", "w4", precision="bfloat16")
    engine.ask(Models())

    def no_room(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with monkeypatch.context() as cramped:
        cramped.setattr(torch.nn.Module, "to", no_room)
        with pytest.raises(NoRoom):
            engine.ask(Run(request))
    assert engine.ask(Run(request)).model["dtype"] == "bfloat16"
