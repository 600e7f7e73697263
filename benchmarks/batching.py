"""What a class gets out of one engine: different requests at once, and the same ones one by one, on each device."""

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from benchmarks.devices import devices
from benchmarks.timing import Row, in_turns
from model.engine.local import CHECKPOINTS, LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.spec.request import Decoding, RunRequest
from model.trace.types import Trace

MODEL = "multi30k-de-en"
AT_ONCE = (1, 4, 16, 64)
TOKENS = 16
"""Written by each request at most."""

WORDS = range(8, 19)
"""Tokens of a sentence, start and end left out: those of Multi30k have about 13."""


def measure(repeats: int, folder: Path = CHECKPOINTS, model: str = MODEL, counts: Sequence[int] = AT_ONCE) -> Iterator[Row]:
    """Sentences of random words, greedily decoded with weights and masks recorded; half of the cores, as the app takes them.

    Ratios are to the first device's, one by one. Nothing is kept between turns.
    """
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    engines = [LocalEngine(folder, device, cache_bytes=0, scheduler=Scheduler(most_waiting=max(counts))) for device in devices()]
    for count in counts:
        what = "1 request" if count == 1 else f"{count} requests"
        cases: dict[str, Callable[[], object]] = {}
        for engine in engines:
            asked = requests(engine, model, count)
            cases[f"{what} one by one, {engine.device}"] = partial(one_by_one, engine, asked)
            if count > 1:
                cases[f"{what} at once, {engine.device}"] = partial(at_once, engine, asked)
        for row in in_turns(cases, repeats):
            yield replace(row, note=f"{1000 * count / row.milliseconds:,.1f} requests a second")
    for engine in engines:
        engine.scheduler.close()


def requests(engine: LocalEngine, model: str, count: int) -> list[RunRequest]:
    """Different sentences, the same ones every time."""
    draws = random.Random(count)
    encoder = engine.describe(model).spec["encoder"]
    longest = min(WORDS.stop, encoder["max_positions"] - 1)

    def sentence() -> tuple[int, ...]:
        return (2, *(draws.randrange(4, encoder["vocab"]) for _ in range(draws.randrange(longest // 2, longest - 1))), 3)

    return [RunRequest(model, sentence(), decoding=Decoding(max_length=TOKENS)) for _ in range(count)]


def one_by_one(engine: LocalEngine, asked: Sequence[RunRequest]) -> list[Trace]:
    """Each request after the one before it was answered."""
    return [engine.run(request) for request in asked]


def at_once(engine: LocalEngine, asked: Sequence[RunRequest]) -> list[Trace]:
    """All requests at the same time, each of a thread of its own, as sessions ask; the engine has 32 on their way."""
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(engine.run, asked))
