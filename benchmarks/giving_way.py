"""Giving way: how long the runs of somebody who types take while another visitor of the engine server measures what mattered."""

import random
import statistics
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.servers import serving_engine
from benchmarks.timing import Row
from model.engine.api import Run
from model.engine.local import CHECKPOINTS
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken
from model.features.serving.http.client import RemoteEngine
from model.features.what_if.questions import Attribution, Heads, Prune, Words
from model.requests.request import Decoding, RunRequest

MODEL = "multi30k-de-en"
VOCABULARY = (
    "ein",
    "Mann",
    "zwei",
    "Frauen",
    "und",
    "Hunde",
    "spielen",
    "laufen",
    "im",
    "Schnee",
    "mit",
    "einem",
    "Ball",
    "vor",
    "dem",
    "Haus",
)
TYPED = 8
"""Words of a sentence that is typed."""

PAUSE = 0.1
"""Seconds between the answer to a sentence and the next one."""

BESIDE_WORDS = "a run beside the words of 60 words"

RUNS_EACH = 8
"""Sentences for each of the repeats that are asked for."""


def measure(repeats: int, folder: Path = CHECKPOINTS, model: str = MODEL) -> Iterator[Row]:
    """The 95th percentile of many runs over HTTP, alone and beside each question. No sentence is typed twice."""
    draws = random.Random(1)

    def about(words: int) -> RunRequest:
        return RunRequest(model, _sentence(draws, words), decoding=Decoding(max_length=words))

    questions: Mapping[str, Attribution[Any]] = {
        BESIDE_WORDS: Words(about(60)),
        "a run beside the shares of all heads of 40 words": Heads(about(40)),
        "a run beside pruning, most first, of 20 words": Prune(about(20), "most"),
    }
    with serving_engine(folder, HEADLIGHT_THREADS="1") as server:
        address = server.address.rstrip("/")
        _typed(address, model, draws, repeats)  # opens the model
        yield _row("a run alone", _typed(address, model, draws, RUNS_EACH * repeats))
        for name, question in questions.items():
            leaving = CancelToken()
            measuring = threading.Thread(target=_measured, args=(address, question, leaving))
            measuring.start()
            yield _row(name, _typed(address, model, draws, RUNS_EACH * repeats))
            leaving.cancel()
            measuring.join()


def _sentence(draws: random.Random, words: int) -> str:
    return " ".join(draws.choices(VOCABULARY, k=words))


def _typed(address: str, model: str, draws: random.Random, count: int) -> list[float]:
    """Seconds of so many runs, one after the other."""
    engine, seconds = RemoteEngine(address), list[float]()
    for _sentence_of in range(count):
        began = time.perf_counter()
        engine.ask(Run(RunRequest(model, _sentence(draws, TYPED))))
        seconds.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    return seconds


def _measured(address: str, question: Attribution[Any], leaving: CancelToken) -> None:
    CANCEL_TOKEN.set(leaving)
    with suppress(CallerGone):
        RemoteEngine(address).ask(question)


def _row(case: str, seconds: list[float]) -> Row:
    *_lower, highest = statistics.quantiles(seconds, n=20)
    note = f"median {1000 * statistics.median(seconds):.0f} ms, longest {1000 * max(seconds):.0f} ms"
    return Row(f"{case}, p95", 1000 * highest, note=note)
