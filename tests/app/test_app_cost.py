"""What a rerun costs the web process, as a number of calls: seconds are told by the benchmark `living`."""

import asyncio
import gc
import threading
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from streamlit.testing.v1 import AppTest
from threadpoolctl import threadpool_info, threadpool_limits

import app
from benchmarks import one_line
from tests.app.visiting import Visitor
from tests.counting import calls_in_threads, files_in_threads
from viz.features.live import route
from viz.session import memory_metrics

MOST = 220_000
"""Calls of a rerun of Explore, where Streamlit alone takes some 1,800. It was 133,000 when this was written."""


LIVE_FILES, SCRIPT_FILES = 38, 59
"""Python files that a typed sentence passes by the live route and by the script, without those of the run itself, on
28 November 2026. docs/architecture.md says what they are."""


def ask(visitor: Visitor, text: str) -> None:
    """Asks the live route for a sentence, as the sentence box of the visitor's page does."""

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=[route.ROUTE]))
        async with httpx.AsyncClient(transport=transport, base_url="http://here") as client:
            return await client.post(f"{route.PATH}/{token}", json={"text": text}, headers={"sec-fetch-site": "same-origin"})

    token = visitor.app.session_state["live-session"].token
    answer = asyncio.run(post())
    assert answer.status_code == 200
    assert text.encode() in answer.content


def in_a_thread(do: Callable[[], None]) -> None:
    """Runs a function in a thread of its own."""
    thread = threading.Thread(target=do)
    thread.start()
    thread.join()


def test_a_typed_sentence_passes_a_bounded_number_of_files(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5")
    visitor.type("text", "w5 w6")
    found = files_in_threads(lambda: visitor.type("text", "w4 w6 w7"))
    assert {"viz/main.py", "viz/views/run_page.py", "model/engine/local.py"} <= found, (
        "the files of a sentence are no longer counted"
    )
    assert len(found) <= SCRIPT_FILES, f"a typed sentence passes {len(found)} Python files: {', '.join(sorted(found))}"


def test_a_sentence_through_the_live_route_passes_a_bounded_number_of_files(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for wait in ("FIRST_SECONDS", "ENCODER_SECONDS"):
        monkeypatch.setattr(route, wait, 300.0)  # one frame, at the end, however busy this machine is
    visitor = Visitor(text="w4 w5")
    ask(visitor, "w5 w6")
    found = files_in_threads(lambda: in_a_thread(lambda: ask(visitor, "w4 w6 w7")))
    assert {"viz/features/live/route.py", "viz/views/run_page.py", "model/engine/local.py"} <= found, (
        "the files of a sentence are no longer counted"
    )
    assert len(found) <= LIVE_FILES, (
        f"a sentence through the live route passes {len(found)} Python files: {', '.join(sorted(found))}"
    )


def test_a_rerun_costs_a_bounded_number_of_calls() -> None:
    line = AppTest.from_file(Path(one_line.__file__)).run()
    assert 100 < calls_in_threads(line.run) < 20_000, "the calls of a script are no longer counted"
    visitor = Visitor().app
    visitor.run()
    assert calls_in_threads(visitor.run) <= MOST
    assert not visitor.exception


def test_what_is_loaded_at_the_start_is_spared_from_every_later_collection(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_metrics, "register", lambda: None)  # no server runs here that has metrics

    async def start() -> int:
        async with app.warm_up(app.app):
            return gc.get_freeze_count()

    gc.unfreeze()  # what tests/conftest.py spares; it is spared again from here on
    assert asyncio.run(start()) > 100_000


def test_numpys_products_leave_the_other_processors_alone(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_metrics, "register", lambda: None)  # no server runs here that has metrics

    async def threads() -> set[int]:
        async with app.warm_up(app.app):
            return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        assert asyncio.run(threads()) == {1}
