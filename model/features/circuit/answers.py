"""Answers about sums and paths: scores and logits taken apart, what a cell writes, what each head used, and paths between heads."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from model.engine.runtime import Runtime, VersionedRequest, counting
from model.feature import Answers
from model.features.circuit.cell_words import cell_words
from model.features.circuit.circuit_parts import circuit
from model.features.circuit.circuits import Circuit, CircuitGraph, Paths
from model.features.circuit.logit_parts import logit_sum
from model.features.circuit.paths import corrupted_request, path_effects
from model.features.circuit.score_parts import kept, score_sum
from model.features.circuit.sums import CellWords, CellWrites, LogitSum, ScoreSum, Why, Writes
from model.features.what_if.answers import Forced, Measurement, answer_of_engine
from model.features.what_if.questions import Attribution
from model.features.what_if.results import Result
from model.features.what_if.work import RunShape, price
from model.inference.run import run
from model.requests.request import RunRequest


def _why(engine: Runtime, question: Why) -> ScoreSum:
    trace, runner = kept(engine.traced, question.request)
    return score_sum(runner.network, trace, question)


def _writes(engine: Runtime, question: Writes) -> LogitSum:
    trace, runner = kept(engine.traced, question.request)
    return logit_sum(runner.network, trace, question)


def _cell_writes(engine: Runtime, question: CellWrites) -> CellWords:
    trace, runner = kept(engine.traced, question.request)
    return cell_words(runner, trace, question)


def _circuit(engine: Runtime, question: Circuit) -> CircuitGraph:
    trace, runner = kept(engine.traced, question.request)
    engine.check_measured_length(trace)
    version = engine.network(question.request.model, question.request.settings).key.version
    # The answer is kept under the request of the trace and the version of the network, so that the same graph is not
    # computed twice.
    asked = VersionedRequest(replace(question, request=RunRequest.from_json(trace.request)), version)
    shape = RunShape.of(runner.info.spec, trace)
    return engine.measured(
        asked, lambda ask, report: circuit(runner.network, trace, counting(report), question.row), price(question, shape)
    )


def measure_paths(question: Paths, forced: Forced) -> Result:
    """Which paths between heads carry what tells a run from a corrupted one."""
    resources, request = forced.resources, forced.request
    corrupted = corrupted_request(question, request, forced.example, forced.prompt, resources.most)
    # Clean and corrupted run are made on the same device by the same runner: a difference between them is never one
    # of hardware.
    traced = partial(run, forced.runner, device=resources.device, device_name=str(resources.device), most=resources.most)
    return path_effects(question, request, corrupted, traced, forced.scorer, resources.on_count)


MEASUREMENTS: Mapping[type[Attribution[Any]], Measurement] = {Paths: measure_paths}

ANSWERS: Answers = {
    Why: _why,
    Writes: _writes,
    CellWrites: _cell_writes,
    Circuit: _circuit,
    Paths: partial(answer_of_engine, MEASUREMENTS),
}
"""How an engine answers this feature's questions."""
