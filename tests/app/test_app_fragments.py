"""The app in a real session, where what is typed runs a part of the script alone. AppTest always runs all of it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.load.visitor import visiting
from benchmarks.servers import Served, serving
from tests.hosts import ROOT


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory, tiny: Path) -> Iterator[Served]:
    """In a process of its own, with the model `tiny`."""
    folder = tmp_path_factory.mktemp("app")
    (folder / "tiny").symlink_to(tiny)
    with serving(ROOT / "app.py", HEADLIGHT_CHECKPOINTS=str(folder), HEADLIGHT_ENGINE="", HEADLIGHT_PUBLIC="") as served:
        yield served


@pytest.mark.parametrize("first", ["", "w4 " * 60], ids=["nothing", "too much"])
def test_a_first_run_that_fails_does_not_break_the_sentences_after_it(app: Served, first: str) -> None:
    async def come() -> None:
        async with visiting(app.address, model="tiny", text=first) as visitor:
            await visitor.join()
            assert len(visitor.said) == 1
            await visitor.type("w4 w5")
            assert visitor.said == []
            assert visitor.tokens("source")[1:-1] == ["w4", "w5"]
            await visitor.type("")
            assert len(visitor.said) == 1
            await visitor.type("w6 w7 w8")
            assert visitor.tokens("source")[1:-1] == ["w6", "w7", "w8"]

    asyncio.run(come())
