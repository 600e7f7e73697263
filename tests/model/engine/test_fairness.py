"""Two sessions of one engine: what is slow for one of them does not delay the other."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from pathlib import Path
from typing import Any

import pytest

from model.checkpoints import loader
from model.engine import model_list, uploads
from model.engine.api import Describe, Inspect, ModelInfo, Models, Receive, Run
from model.engine.local import LocalEngine
from model.errors import DamagedFile
from model.requests.questions import Question
from model.requests.request import RunRequest
from model.safe_loading.reader import OpenedFile, read_upload
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.reference import GOLDEN
from tests.runs import CPU, for_session

RAW = (GOLDEN / "001_tiny_a.pt").read_bytes()


class Gate:
    """Holds back calls of a function until it is opened, and counts them."""

    def __init__(self, call: Callable[..., Any], holds: Callable[..., bool] = lambda *_: True) -> None:
        self._call, self._holds = call, holds
        self._calls = threading.Condition()
        self.begun = self.inside = self.most_inside = 0
        self.opened = threading.Event()

    def __call__(self, *args: Any) -> Any:
        if not self._holds(*args):
            return self._call(*args)
        self._count(1)
        try:
            assert self.opened.wait(HANG_S)
            return self._call(*args)
        finally:
            self._count(-1)

    def _count(self, change: int) -> None:
        with self._calls:
            self.inside += change
            self.begun += change > 0
            self.most_inside = max(self.most_inside, self.inside)
            self._calls.notify_all()

    def reached(self, calls: int = 1) -> None:
        """Waits until so many calls have begun."""
        with self._calls:
            assert self._calls.wait_for(lambda: self.begun >= calls, HANG_S)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as found:
        yield found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for seed, name in enumerate(("one", "two", "three")):
        save_checkpoint(tmp_path / name, seed=seed)
    (tmp_path / "raw.pt").write_bytes(RAW)
    return tmp_path


@pytest.fixture
def engine(folder: Path) -> Iterator[LocalEngine]:
    found = LocalEngine(folder, CPU)
    found.ask(Run(RunRequest("one", "w4")))
    yield found
    found.scheduler.close()


def is_opening(info: ModelInfo) -> bool:
    return info.problem.get("error") == "StillOpening"


def named(name: str) -> Callable[..., bool]:
    """Whether a function of model.checkpoints.loader is asked about the checkpoint `name`."""
    return lambda path, *_: path.name == name


def others_are_served(engine: LocalEngine, pool: ThreadPoolExecutor) -> None:
    """Fails where another session has to wait: for a run in the cache, for a run of another model, for its inspection."""
    asked: list[Future[Any]] = [
        pool.submit(for_session("b", engine.ask), Run(RunRequest("one", "w4"))),
        pool.submit(for_session("b", engine.ask), Describe("one")),
        pool.submit(for_session("c", engine.ask), Run(RunRequest("two", "w5"))),
        pool.submit(for_session("b", engine.ask), Inspect("two")),
    ]
    assert not wait_for(asked, HANG_S).not_done
    assert asked[0].result() is engine.ask(Run(RunRequest("one", "w4")))


@pytest.mark.parametrize(
    ("module", "function", "name", "question"),
    [
        (uploads, "read_upload", None, Receive(RAW, "slow.pt")),
        (loader, "load", "three", Run(RunRequest("three", "w4"))),
        (loader, "load", "three", Describe("three")),
        (loader, "inspect", "three", Inspect("three")),
        (loader, "inspect", "raw.pt", Inspect("raw.pt")),
    ],
    ids=["receive", "run", "describe", "inspect", "inspect a file"],
)
def test_a_slow_opening_delayed_the_cached_run_of_another_session(
    engine: LocalEngine,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    function: str,
    name: str | None,
    question: Question[Any],
) -> None:
    gate = Gate(getattr(module, function), named(name) if name else lambda *_: True)
    monkeypatch.setattr(module, function, gate)
    slow = pool.submit(for_session("a", engine.ask), question)
    gate.reached()
    try:
        others_are_served(engine, pool)
        assert not slow.done()
    finally:
        gate.opened.set()
    slow.result(HANG_S)


@pytest.mark.parametrize("function", ["load", "inspect"])
def test_a_model_that_two_sessions_ask_for_at_the_same_time_was_read_twice(
    engine: LocalEngine, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    gate = Gate(getattr(loader, function), named("three"))
    monkeypatch.setattr(loader, function, gate)
    ask: Callable[[str], object] = engine.checkpoint if function == "load" else lambda name: engine.ask(Inspect(name))
    first = pool.submit(ask, "three")
    gate.reached()
    second = pool.submit(ask, "three")
    others_are_served(engine, pool)
    gate.opened.set()
    assert first.result(HANG_S) is second.result(HANG_S)
    assert gate.begun == 1


def test_equal_files_that_two_sessions_send_at_the_same_time_were_opened_twice(
    engine: LocalEngine, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(read_upload)
    monkeypatch.setattr(uploads, "read_upload", gate)
    sent = [pool.submit(for_session(session, engine.ask), Receive(RAW, f"{session}.pt")) for session in "ab"]
    gate.reached()
    others_are_served(engine, pool)
    gate.opened.set()
    assert len({each.result(HANG_S) for each in sent}) == 1
    assert gate.begun == 1


@pytest.mark.parametrize("slow", ["raw.pt", "three"])
def test_the_list_of_models_waited_for_a_slow_file(
    engine: LocalEngine, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    gate = Gate(loader.load, named(slow))
    monkeypatch.setattr(loader, "load", gate)
    monkeypatch.setattr(model_list, "PATIENCE_S", 0.0)
    ready = {"one", "two", "three", "raw.pt"} - {slow}
    assert wait_for([pool.submit(engine.ask, Describe(name)) for name in ready], HANG_S).done
    while {info.name for info in pool.submit(engine.ask, Models()).result(HANG_S).models if not is_opening(info)} != ready:
        pass
    gate.reached()
    others_are_served(engine, pool)
    gate.opened.set()
    while any(map(is_opening, engine.ask(Models()).models)):
        pass
    assert gate.begun == 1, "the list opened it once"
    assert [info.name for info in engine.ask(Models()).models] == ["one", "raw.pt", "three", "two"]


def test_many_slow_files_were_opened_at_the_same_time(
    engine: LocalEngine, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(lambda data, name: OpenedFile("torch zip", len(data), {}))
    monkeypatch.setattr(uploads, "read_upload", gate)
    sent = [pool.submit(for_session(str(number), engine.ask), Receive(RAW + bytes([number]), "slow.pt")) for number in range(6)]
    gate.reached(uploads.OPENED_AT_ONCE)
    others_are_served(engine, pool)
    assert engine.ask(Inspect("raw.pt")).tensors, "a file of the folder waits for no upload"
    gate.opened.set()
    assert len({each.result(HANG_S) for each in sent}) == 6
    assert gate.most_inside == uploads.OPENED_AT_ONCE


def test_a_loading_that_fails_fails_for_all_who_wait_and_is_tried_again(
    engine: LocalEngine, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        """What a library that is no Python raises."""

    def fail(*_: object) -> None:
        raise Panic

    gate = Gate(fail, named("three"))
    with monkeypatch.context() as patched:
        patched.setattr(loader, "load", gate)
        asked = [pool.submit(engine.checkpoint, "three") for _ in range(2)]
        gate.reached()
        gate.opened.set()
        for each in asked:
            with pytest.raises(Panic):
                each.result(HANG_S)
    assert engine.ask(Run(RunRequest("three", "w4"))).steps


def test_a_folder_that_changes_all_the_time_is_refused_and_never_kept(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    load = loader.load

    def changing(path: Path, *others: Any) -> Any:
        found = load(path, *others)
        save_checkpoint(path, seed=7)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(loader, "load", changing)
        with pytest.raises(DamagedFile, match="change while they are read"):
            engine.checkpoint("three")
    assert engine.checkpoint("three") is engine.checkpoint("three")
