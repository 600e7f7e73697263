"""Answers to the questions of the core: about models and their files, runs, and the engine itself."""

from collections.abc import Mapping
from dataclasses import replace

from model.checkpoints import export, tensors
from model.engine import offers
from model.engine.api import (
    Batches,
    Describe,
    Explain,
    Export,
    Fetch,
    Find,
    Gauges,
    Healthy,
    Inspect,
    Listing,
    Meaning,
    Models,
    Offered,
    Receive,
    Run,
    Tensors,
    Texts,
)
from model.engine.runtime import Runtime
from model.errors import BadSetting
from model.feature import Answers
from model.inference.cell import explain_cell
from model.inference.inputs import Reader
from model.requests.request import KEEP
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Array


def _models(engine: Runtime, _question: Models) -> Listing:
    """Files of other programs included; one that takes long is listed as still being opened."""
    return Listing(engine.device_name, engine.list.infos(engine.store.names()))


def _find(engine: Runtime, question: Find) -> Meaning:
    return offers.find(question.text, engine.store.holds)


def _explain(engine: Runtime, question: Explain) -> Explanation:
    # Everything is recorded, whichever cell is asked about, so that all cells of a run are explained from one
    # trace.
    trace, runner = engine.traced(replace(question.request, keep=KEEP))
    return explain_cell(runner.network, trace, question.site, question.head, question.query, question.key)


def _tensors(engine: Runtime, question: Tensors) -> Mapping[str, Array]:
    network = engine.checkpoint(question.model, question.settings).network
    return {name: tensors.tensor(network, name).detach().cpu().numpy() for name in question.names}


def _texts(engine: Runtime, question: Texts) -> tuple[str, ...]:
    tokenizers = engine.checkpoint(question.model, question.settings).tokenizers
    if question.strip not in tokenizers:
        raise BadSetting(name="strip", found=question.strip, allowed=", ".join(tokenizers) or "∅")
    return Reader(tokenizers, engine.device).tokens(question.strip, question.ids).texts


def _gauges(engine: Runtime, _question: Gauges) -> Mapping[str, float]:
    waiting, running = engine.scheduler.waiting, engine.scheduler.running
    return {"waiting": waiting, "running": running, "device_bytes": engine.device_bytes()}


ANSWERS: Answers = {
    Models: _models,
    Offered: lambda _engine, _question: offers.offered(),
    Find: _find,
    Fetch: lambda _engine, question: offers.fetch(question.what),
    Receive: lambda engine, question: engine.uploads.keep(question.data, question.name),
    Describe: lambda engine, question: engine.describe(question.model, question.settings),
    Inspect: lambda engine, question: engine.models.inspection(question.model, question.settings),
    Run: lambda engine, question: engine.trace(question.request),
    Explain: _explain,
    Tensors: _tensors,
    Export: lambda engine, question: export.zipped(engine.checkpoint(question.model, question.settings)),
    Texts: _texts,
    Healthy: lambda engine, _question: engine.scheduler.alive(),  # a dead compute thread is replaced
    Gauges: _gauges,
    Batches: lambda engine, _question: dict(engine.scheduler.batches),
}
"""By the class of a question; those of features stand in their folders (model/feature.py)."""
