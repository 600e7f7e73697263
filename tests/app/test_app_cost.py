"""What a rerun costs the web process, as a number of calls: seconds are told by the benchmark `living`."""

import asyncio
import gc
from pathlib import Path

from streamlit.testing.v1 import AppTest

import app
from benchmarks import one_line
from tests.app.visiting import Visitor
from tests.counting import calls_in_threads, files_in_threads

MOST = 220_000
"""Calls of a rerun of Explore, where Streamlit alone takes some 1,800. It was 133,000 when this was written."""


FILES = 64
"""Python files that a typed sentence passes, without those of the run itself (docs/architecture.md). 61 on 22 November 2026."""


def test_a_typed_sentence_passes_a_bounded_number_of_files(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5")
    visitor.type("text", "w5 w6")
    found = files_in_threads(lambda: visitor.type("text", "w4 w6 w7"))
    print(*sorted(found), sep="\n")
    assert {"viz/main.py", "viz/prepare.py", "model/engine/local.py"} <= found, "the files of a sentence are no longer counted"
    assert len(found) <= FILES, f"a typed sentence passes {len(found)} Python files: {', '.join(sorted(found))}"


def test_a_rerun_costs_a_bounded_number_of_calls() -> None:
    line = AppTest.from_file(Path(one_line.__file__)).run()
    assert 100 < calls_in_threads(line.run) < 20_000, "the calls of a script are no longer counted"
    visitor = Visitor().app
    visitor.run()
    assert calls_in_threads(visitor.run) <= MOST
    assert not visitor.exception


def test_what_is_loaded_at_the_start_is_spared_from_every_later_collection(stocked: Path) -> None:
    async def start() -> int:
        async with app.warm_up(app.app):
            return gc.get_freeze_count()

    try:
        assert asyncio.run(start()) > 100_000
    finally:
        gc.unfreeze()
