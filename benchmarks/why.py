"""Scores and logits taken apart, and a circuit: what each costs beside the run that it is about, which records everything."""

import os
from collections.abc import Callable, Iterator
from functools import partial

import torch

from benchmarks.recording import ROOT
from benchmarks.timing import Row, in_turns
from model.checkpoints import loader
from model.features.circuit.circuit_parts import circuit
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.score_parts import score_sum
from model.features.circuit.sums import Why, Writes
from model.inference.run import run
from model.requests.request import KEEP, RunRequest

CPU = torch.device("cpu")
NAME, TEXT = "multi30k-de-en", "Ein alter Mann mit einem Hut spielt im Park auf seiner Gitarre ."
CELL, TOKEN, GRAPH = "why: the score of one cell, 12 words", "what wrote it: all heads of one token", "circuit: 72 heads"


def measure(repeats: int) -> Iterator[Row]:
    """The baseline of each ratio is the run; on half of the cores, as the app uses."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    model = loader.load(loader.locate(NAME, ROOT / "checkpoints"), {}, CPU)
    request = RunRequest(NAME, TEXT, keep=KEEP)
    made = partial(run, model, request, CPU, "")
    trace = made()
    last = len(trace.steps) - 1
    asked = Why(request, "decoder.0.2.cross", 0, last, 3)
    cases: dict[str, Callable[[], object]] = {
        "the run, which records everything": made,
        CELL: partial(score_sum, model.network, trace, asked),
        TOKEN: partial(logit_sum, model.network, trace, Writes(request, last, "runner-up")),
        GRAPH: partial(circuit, model.network, trace),
    }
    yield from in_turns(cases, repeats)
