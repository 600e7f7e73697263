"""What measuring what mattered costs, as multiples of one forced run of the same sentence."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import Row, in_turns
from model.checkpoints import loader
from model.checkpoints.loader import Runner
from model.engine.local import CHECKPOINTS
from model.features.what_if.answers import answer
from model.features.what_if.questions import Attribution, Edges, Heads, Prune, Words
from model.features.what_if.results import Result
from model.inference.resources import Resources
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace

MODEL = "multi30k-de-en"
SENTENCE = "Zwei junge Hunde spielen mit einem Ball im Schnee."
"""12 tokens, with start and end."""

FORCED = "one forced run"
WITHOUT = "all heads, without"
PRUNE = "prune until it breaks, least first"
CPU = torch.device("cpu")


def measure(repeats: int, folder: Path = CHECKPOINTS, model: str = MODEL, sentence: str = SENTENCE) -> Iterator[Row]:
    """Questions about one sentence, on the CPU with half of the cores, like the app. Nothing is cached between turns."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    runner = loader.load(loader.locate(model, folder), {}, CPU)
    written = run(runner, RunRequest(model, sentence, decoding=Decoding(max_length=14)), CPU, "cpu")
    request = RunRequest(model, sentence, written.tokens["target"].ids)
    trace = run(runner, request, CPU, "cpu")
    questions: dict[str, Attribution[Any]] = {
        WITHOUT: Heads(request, ("without",)),
        "all heads, without and alone": Heads(request, ("without", "alone")),
        "all heads, share (exact)": Heads(request, ("share",)),
        PRUNE: Prune(request),
        "prune, all measured again after each": Prune(request, every=True),
        "words": Words(request),
        "edges of one token, every site": Edges(request, 1),
    }
    cases = {FORCED: partial(run, runner, request, CPU, "cpu")}
    rows = in_turns(cases | {name: partial(answered, each, runner, trace) for name, each in questions.items()}, repeats)
    heads = sum(attention.heads for attention in trace.attention.values())
    notes = {WITHOUT: f"{heads} heads", FORCED: f"{len(trace.tokens['source'])} source tokens"}
    yield from (replace(row, note=notes.get(row.case, "")) for row in rows)


def answered(question: Attribution[Any], runner: Runner, trace: Trace) -> Result:
    """The result of a question about a forced run."""
    return answer(question, question.request, 0, runner, trace, Resources(CPU))
