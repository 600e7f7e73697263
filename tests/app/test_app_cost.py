"""What a rerun costs the web process: CPU time, as a multiple of what Streamlit itself takes for an app of one line."""

import asyncio
import gc
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

import app
from benchmarks import one_line
from tests.app.visiting import Visitor

TURNS = 8
MOST = 15.0
"""Times the rerun of one line, measured side by side, so that a busy machine slows both. It was 9 when this was written."""


def test_a_rerun_costs_a_bounded_multiple_of_one_line() -> None:
    visitor, line = Visitor().app, AppTest.from_file(Path(one_line.__file__)).run()
    spent: dict[AppTest, list[float]] = {visitor: [], line: []}
    for turn in range(TURNS + 1):
        for each, seconds in spent.items():
            gc.collect()  # before and not within what is timed
            before = time.process_time()
            each.run()
            if turn:
                seconds.append(time.process_time() - before)
    assert not visitor.exception
    assert min(spent[visitor]) <= MOST * min(spent[line])


def test_what_is_loaded_at_the_start_is_spared_from_every_later_collection(stocked: Path) -> None:
    async def start() -> int:
        async with app.warm_up(app.app):
            return gc.get_freeze_count()

    try:
        assert asyncio.run(start()) > 100_000
    finally:
        gc.unfreeze()
