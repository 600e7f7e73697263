"""What attribution is tested on: small random networks, and questions asked without an engine."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from model.checkpoints.loader import Runner
from model.checkpoints.native import Checkpoint
from model.features.circuit import answers as of_circuit
from model.features.what_if import answers as of_copies
from model.features.what_if.example import forced_run
from model.features.what_if.questions import Attribution
from model.inference.resources import Resources
from model.inference.run import run
from model.requests.edits import Silence
from model.requests.inputs import POSITIONS
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, Site
from tests.runs import CPU, SPECS, checkpoint

TARGET = (2, 5, 7, 4, 6)


@cache
def tiny(name: str) -> Checkpoint:
    return checkpoint(SPECS[name])


def asked(**changes: Any) -> RunRequest:
    return replace(RunRequest("tiny", "w4 w6 w5 w9", TARGET, Decoding(max_length=5)), **changes)


def answered(runner: Runner | str, question: Attribution[Any], **resources: Any) -> Any:
    """The result of a question about a network in memory, or a tiny one by its name."""
    runner = tiny(runner) if isinstance(runner, str) else runner
    request, prompt = forced_run(runner, question.request, CPU, POSITIONS)
    trace = run(runner, request, CPU, "cpu")
    measurements = {**of_copies.MEASUREMENTS, **of_circuit.MEASUREMENTS}
    return of_copies.answer(question, request, prompt, runner, trace, Resources(CPU, **resources), measurements)


def one_by_one(name: str, silenced: dict[Site, set[int]], by: Any = "zeros") -> Array:
    """Log-probabilities of the target of `asked` in a run of its own, as the run tells them.

    Args:
        by: what stands in the place of the contexts of the silenced heads.
    """
    edits = tuple(Silence(str(site), (head,), by=by) for site, heads in silenced.items() for head in sorted(heads))
    found, request, count = tiny(name), asked(edits=edits), len(TARGET) - 1  # a start token is fed, not measured
    if found.info.spec.encoder is None:
        source = found.tokenizers["source"].encode(str(request.source), "source").ids
        request, count = replace(request, source=(*source, *TARGET), target=None, decoding=Decoding(max_length=0)), len(TARGET)
    return np.array([step.chosen.log_probability for step in run(found, request, CPU, "cpu").steps[-count:]])
