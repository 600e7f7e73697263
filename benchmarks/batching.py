"""Throughput of batching: different requests at once on one engine, and the same requests one by one, on each device."""

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
from model.engine.api import Describe, Models, Run
from model.engine.local import CHECKPOINTS, LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace

MODEL = "multi30k-de-en"
AT_ONCE = (1, 4, 16, 64)
TOKENS = 16
"""Most tokens that a request writes."""

WORDS = range(8, 19)
"""Range of tokens in a sentence, without start and end; sentences of Multi30k have about 13."""


def measure(repeats: int, folder: Path = CHECKPOINTS, model: str = MODEL, counts: Sequence[int] = AT_ONCE) -> Iterator[Row]:
    """Decodes sentences of random words greedily and records weights and masks; on half of the cores, like the app.

    Ratios are relative to one by one on the first device. Nothing is cached between turns.
    """
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    engines = [LocalEngine(folder, device, cache_bytes=0, scheduler=Scheduler(most_waiting=max(counts))) for device in devices()]
    for count in counts:
        what = "1 request" if count == 1 else f"{count} requests"
        cases: dict[str, Callable[[], object]] = {}
        for engine in engines:
            asked = requests(engine, model, count)
            cases[f"{what} one by one, {engine.ask(Models()).device}"] = partial(one_by_one, engine, asked)
            if count > 1:
                cases[f"{what} at once, {engine.ask(Models()).device}"] = partial(at_once, engine, asked)
        for row in in_turns(cases, repeats):
            yield replace(row, note=f"{1000 * count / row.milliseconds:,.1f} requests a second")
    for engine in engines:
        engine.scheduler.close()


def requests(engine: LocalEngine, model: str, count: int) -> list[RunRequest]:
    """Requests with different sentences, the same at every call."""
    draws = random.Random(count)
    encoder = engine.ask(Describe(model)).spec["encoder"]
    longest = min(WORDS.stop, encoder["max_positions"] - 1)

    def sentence() -> tuple[int, ...]:
        return (2, *(draws.randrange(4, encoder["vocab"]) for _ in range(draws.randrange(longest // 2, longest - 1))), 3)

    return [RunRequest(model, sentence(), decoding=Decoding(max_length=TOKENS)) for _ in range(count)]


def one_by_one(engine: LocalEngine, asked: Sequence[RunRequest]) -> list[Trace]:
    """Runs each request after the previous one has finished."""
    return [engine.ask(Run(request)) for request in asked]


def at_once(engine: LocalEngine, asked: Sequence[RunRequest]) -> list[Trace]:
    """Runs all requests at the same time, each from its own thread, as sessions do; the engine computes up to 32 at once."""
    with ThreadPoolExecutor(len(asked)) as pool:
        return list(pool.map(engine.ask, map(Run, asked)))
