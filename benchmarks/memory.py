"""Memory of the app's process under its byte budget: 300 different sentences of 500 tokens, one after the other."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.load.visitor import visiting
from benchmarks.servers import ROOT, serving
from benchmarks.slow_model import SPEC, save_model
from benchmarks.timing import Row

MODEL = "long"
BUDGET_MIB = 512
TOKENS, SENTENCES = 500, 300
SEEN = (1, 10, 30, 100, 200, 300)
"""The sentences after which memory is read."""

LAST = f"memory after {SENTENCES} sentences of {TOKENS} tokens, besides that at the start"


def measure(repeats: int, sentences: int = SENTENCES) -> Iterator[Row]:
    """Rows of the curve; the last one is relative to the budget. Once: the memory of a process cannot be measured in turns."""
    attention = replace(SPEC.writer.attention, heads=8, head_dim=32)
    stack = replace(SPEC.writer, vocab=20_000, d_model=256, layers=6, hidden=1024, attention=attention)
    with TemporaryDirectory() as folder:
        save_model(Path(folder) / MODEL, MODEL, replace(SPEC, decoder=stack))
        with serving(ROOT / "app.py", HEADLIGHT_CHECKPOINTS=folder, HEADLIGHT_MEMORY=str(BUDGET_MIB)) as app:
            start, sizes = asyncio.run(_sizes(app.address, psutil.Process(app.pid), sentences))
    for turn, size in sizes.items():
        case = LAST.replace(str(SENTENCES), str(turn))
        yield Row(case, float("nan"), (size - start) / (BUDGET_MIB << 20), f"{(size - start) >> 20:,} MiB, ratio to the budget")


async def _sizes(address: str, process: psutil.Process, sentences: int) -> tuple[int, dict[int, int]]:
    """Resident bytes after the first page, with a sentence of one word, and after so many sentences."""
    sizes = dict[int, int]()
    async with visiting(address, model=MODEL, max="1", decode="greedy", text="w5") as visitor:
        await visitor.join()
        start = process.memory_info().rss
        for turn in range(1, sentences + 1):
            await visitor.type(" ".join(f"w{5 + (turn + place) % 10_000}" for place in range(TOKENS)))
            if turn in SEEN:
                sizes[turn] = process.memory_info().rss
    return start, sizes
