"""Slow calls of a session: a page waits a moment, the newest run counts, and what is stopped stays so until it is resumed."""

import gc
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from weakref import ref

import pytest

from model.engine.scheduling.queue import on_cancel
from model.errors import BadSetting, Superseded
from model.trace.progress import Progress
from model.trace.types import Trace
from tests import traces
from tests.patience import HANG_S
from viz.session import patient_engine
from viz.session.background_calls import Call, Calls, NotCached, Pending, Stopped

AT_ONCE = 0.0
"""Until when somebody waits who does not wait."""


class Blocked:
    """Something that is computed once `go` is set, and notes how often it began and whether its caller has left."""

    def __init__(self, value: object = "value") -> None:
        self.value, self.begun, self.go, self.left = value, 0, threading.Event(), threading.Event()

    def __call__(self) -> object:
        self.begun += 1
        with on_cancel(self.left.set):
            assert self.go.wait(HANG_S)
        return self.value


def answered(calls: Calls, key: str, compute: Callable[[], Any]) -> Any:
    """The answer, however long it takes."""
    while True:
        try:
            return calls.ask(key, compute, time.monotonic() + HANG_S)
        except Pending as pause:
            pause.call.wait(HANG_S)


def test_a_slow_call_does_not_hold_its_caller_up_and_is_begun_once() -> None:
    calls, slow = Calls(), Blocked()
    for _ in range(3):
        with pytest.raises(Pending):
            calls.ask("slow", slow, AT_ONCE)
    slow.go.set()
    assert answered(calls, "slow", slow) == "value"
    assert slow.begun == 1


def test_a_quick_call_is_answered_however_long_the_page_was_drawn_before() -> None:
    quick = Blocked("models")
    threading.Timer(0.005, quick.go.set).start()
    assert Calls().ask("models", quick, time.monotonic() - 1, runs=False) == "models"


def test_a_newer_run_takes_the_place_of_one_that_is_on_its_way() -> None:
    calls, old, new = Calls(), Blocked("old"), Blocked("new")
    with pytest.raises(Pending):
        calls.ask("old", old, AT_ONCE)
    new.go.set()
    assert answered(calls, "new", new) == "new"
    assert old.left.wait(HANG_S), "the engine must learn that nobody waits any more"
    old.go.set()


def test_what_is_no_run_leaves_a_run_on_its_way_alone() -> None:
    calls, run = Calls(), Blocked()
    with pytest.raises(Pending):
        calls.ask("run", run, AT_ONCE)
    assert calls.ask("models", lambda: "models", time.monotonic() + HANG_S, runs=False) == "models"
    assert not run.left.is_set()
    run.go.set()
    assert answered(calls, "run", run) == "value"
    assert run.begun == 1


class CountedLock:
    """A lock that knows whether it is held."""

    def __init__(self) -> None:
        self.held, self.taken, self._lock = False, 0, threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()
        self.held, self.taken = True, self.taken + 1

    def __exit__(self, *_raised: object) -> None:
        self.held = False
        self._lock.release()


class Guarded(dict[Any, Any]):
    """Answers, which are read and changed only while a lock is held."""

    def __init__(self, lock: CountedLock) -> None:
        self.lock = lock

    def __setitem__(self, key: object, value: object) -> None:
        assert self.lock.held
        super().__setitem__(key, value)

    def get(self, key: object, *default: Any) -> Any:
        assert self.lock.held
        return super().get(key, *default)


def test_the_state_is_read_and_changed_under_its_lock_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, lock = Calls(), CountedLock()
    monkeypatch.setattr(calls, "_lock", lock)
    monkeypatch.setattr(calls, "_answers", Guarded(lock))

    def fails() -> None:
        raise BadSetting(name="seed", found="x", allowed="a number")

    assert answered(calls, "key", lambda: "value") == "value"
    for _ in range(2):
        with pytest.raises(BadSetting):
            answered(calls, "bad", fails)
    taken = lock.taken
    calls.resume()
    assert lock.taken == taken + 1


@pytest.mark.parametrize("stop", [Calls.stop, Calls.stop_following])
def test_stopping_makes_no_trace_the_page_that_shows_it_does_once(stop: Callable[[Calls], None]) -> None:
    calls, slow, made = Calls(), Blocked(), list[Trace]()

    def so_far() -> Trace:
        assert not calls._lock.locked()
        made.append(traces.translation())
        return made[-1]

    call = calls.start_live("slow", slow)
    with pytest.raises(Pending):
        calls.ask("slow", slow, AT_ONCE)
    for each in (call, calls._pending["slow"]):
        each.feed.put(Progress((4,), ("w4",), 60, 0.5, so_far=so_far))
    stop(calls)
    assert made == [], "others wait meanwhile"
    slow.go.set()
    shown = []
    for _ in range(2):
        with pytest.raises(Stopped) as stopped:
            calls.ask("slow", slow, AT_ONCE)
        shown.append(stopped.value.trace)
    assert shown == made * 2
    assert len(made) == 1


def test_what_is_stopped_is_given_up_and_not_begun_again_until_it_is_resumed() -> None:
    calls, slow = Calls(), Blocked()
    with pytest.raises(Pending):
        calls.ask("slow", slow, AT_ONCE)
    calls.stop()
    assert slow.left.wait(HANG_S)
    slow.go.set()
    for _ in range(2):
        with pytest.raises(Stopped):
            calls.ask("slow", slow, AT_ONCE)
    assert slow.begun == 1
    calls.resume()
    assert answered(calls, "slow", slow) == "value"


def test_an_error_reaches_whoever_asks_and_the_next_call_is_a_new_one() -> None:
    calls = Calls()

    def fails() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        answered(calls, "key", fails)
    assert answered(calls, "key", lambda: "now") == "now"


def test_a_run_that_an_older_one_of_the_same_session_superseded_is_asked_for_again() -> None:
    outcomes = iter([Superseded(model="tiny"), "value"])

    def compute() -> object:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    assert answered(Calls(), "key", compute) == "value"


def test_answers_are_held_until_the_page_is_complete_and_then_by_the_engine_alone() -> None:
    calls, made = Calls(), list[ref[Trace]]()

    def compute() -> Trace:
        trace = traces.translation()
        made.append(ref(trace))
        return trace

    answered(calls, "first", compute)
    gc.collect()
    assert answered(calls, "first", compute) is made[0]()
    assert len(made) == 1
    calls.clear_if_idle()
    gc.collect()
    assert made[0]() is None
    with pytest.raises(NotCached):
        calls.again("first")


def test_of_two_parts_of_a_page_that_wait_one_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both drew a bar with the same key, and the page failed."""
    shown = list[object]()
    monkeypatch.setattr(patient_engine, "st", SimpleNamespace(session_state={}))
    monkeypatch.setattr(patient_engine, "show_call", lambda call, stop, what, opens: shown.append(call.key))
    for _drawing in range(2):
        with patient_engine.raise_if_slow():
            for name in ("effect", "heads"):
                with patient_engine.show_pending():
                    raise Pending(cast(Call, SimpleNamespace(key=name)))
    assert shown == ["effect", "effect"]
