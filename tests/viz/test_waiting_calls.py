"""What a waiting page is told: the tokens written so far, as soon as there are more, and how far a stopped run had come."""

import asyncio
import threading
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from model.trace.progress import LISTENER, Progress
from tests.patience import HANG_S, settled
from viz.session import patient_engine
from viz.session.background_calls import Call, Calls, Pending, Stopped

ONE = Progress((4,), ("w4",), 60, 0.5)
THREE = Progress((4, 5, 6), ("w4", " w5", "\n"), 60, 0.75)


class Written:
    """A call that reports what it is told to, and ends once `go` is set."""

    def __init__(self, *reports: Progress) -> None:
        self.reports, self.go = reports, threading.Event()

    def __call__(self) -> str:
        listener = LISTENER.get()
        assert listener is not None
        for report in self.reports:
            listener(report)
        assert self.go.wait(HANG_S)
        return "value"


def ask(call: Call | None, query: str = "") -> dict[str, Any]:
    """What the browser is told."""

    async def asked() -> dict[str, Any]:
        transport = httpx.ASGITransport(Starlette(routes=[patient_engine.ROUTE]))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            path = patient_engine.ROUTE.path.replace("{token}", call.token if call else "none")
            answer = await client.get(path + query)
            assert answer.headers["cache-control"] == "no-store"
            found: dict[str, Any] = answer.json()
            return found

    return asyncio.run(asked())


def test_the_browser_is_told_the_tokens_written_so_far() -> None:
    compute = Written(ONE, THREE)
    call = Call("key", compute, runs=True)
    settled(lambda: call.feed.count == 2)
    told = ask(call, "?seen=1")
    assert told == {"done": False, "seen": 2, "written": 3, "most": 60, "rate": 4.0, "text": "w4 ␣w5 ↵"}
    compute.go.set()
    assert call.wait(HANG_S)
    settled(lambda: call.feed.count == 3)
    assert ask(call, "?seen=2")["done"]


def test_the_browser_is_told_what_is_to_be_measured_before_anything_is() -> None:
    compute = Written(Progress((), (), 270, 0.0, 0))
    call = Call("key", compute, runs=True)
    settled(lambda: call.feed.count == 1)
    told = ask(call)
    assert told == {"done": False, "seen": 1, "written": 0, "most": 270, "rate": 0.0, "text": "", "measuring": True}
    compute.go.set()


def test_who_has_seen_everything_waits_for_more_and_gets_it_without_a_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_engine, "ANSWER_SECONDS", 60.0)
    call = Call("key", Written(ONE), runs=True)
    settled(lambda: call.feed.count == 1)
    threading.Timer(0.05, lambda: call.feed.put(THREE)).start()
    assert ask(call, "?seen=1")["written"] == 3


def test_a_page_without_progress_is_told_that_it_waits_and_one_without_a_call_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_engine, "ANSWER_SECONDS", 0.01)
    compute = Written()
    call = Call("key", compute, runs=True)
    for query in ("", "?seen=0", "?seen=x", "?seen=", "?seen=" + "9" * 5000, "?seen=-1", "?seen=²", "?seen=1_0", "?seen=%00"):
        assert ask(call, query) == {"done": False, "seen": 0}
    compute.go.set()
    assert ask(None) == {"done": True}


def test_a_stopped_call_says_how_far_it_had_come() -> None:
    calls, compute = Calls(), Written(ONE, THREE)
    with pytest.raises(Pending) as pause:
        calls.ask("slow", compute, 0.0)
    settled(lambda: pause.value.call.feed.newest == THREE)
    calls.stop()
    compute.go.set()
    with pytest.raises(Stopped) as stopped:
        calls.ask("slow", compute, 0.0)
    assert stopped.value.progress == THREE


def test_a_call_that_had_written_nothing_says_nothing() -> None:
    calls, compute = Calls(), Written()
    with pytest.raises(Pending):
        calls.ask("slow", compute, 0.0)
    calls.stop()
    compute.go.set()
    with pytest.raises(Stopped) as stopped:
        calls.ask("slow", compute, 0.0)
    assert stopped.value.progress is None
