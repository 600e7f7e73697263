"""Answers: what something in a run was for, measured by edited copies of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import torch

from model.checkpoints.loader import Runner
from model.engine.runtime import Runtime, VersionedRequest, counting
from model.features.what_if.edges import edge_effects
from model.features.what_if.example import Example, example_of, forced_run
from model.features.what_if.heads import head_effects, prune_curve
from model.features.what_if.questions import Attribution, Edges, Heads, Prune, Words
from model.features.what_if.results import Result
from model.features.what_if.scoring import Scorer
from model.features.what_if.words import word_effects
from model.features.what_if.work import RunShape, price
from model.inference.calls import Ask
from model.inference.resources import Resources
from model.requests.request import RunRequest
from model.trace.progress import Report
from model.trace.types import Trace


@dataclass(frozen=True, eq=False)
class Forced:
    """A run that was fed its target, and what scores edited copies of it.

    Attributes:
        request, prompt: of `forced_run`.
        runner: what ran it.
        trace: the run.
        resources: what copies are scored with.
        example, scorer: of the run.
    """

    request: RunRequest
    prompt: int
    runner: Runner
    trace: Trace
    resources: Resources
    example: Example
    scorer: Scorer


Measurement: TypeAlias = Callable[[Any, Forced], Result]
"""Computes the result of a question about a forced run."""

MEASUREMENTS: Mapping[type[Attribution[Any]], Measurement] = {
    Heads: lambda question, run: head_effects(question, run.scorer, run.resources.on_count),
    Prune: lambda question, run: prune_curve(question, run.scorer, run.resources.on_count),
    Words: lambda _question, run: word_effects(run.scorer, run.trace, run.resources.on_count),
    Edges: lambda question, run: edge_effects(question, run.scorer, run.trace, run.resources.on_count),
}


def answer(
    question: Attribution[Any],
    request: RunRequest,
    prompt: int,
    runner: Runner,
    trace: Trace,
    resources: Resources,
    measurements: Mapping[type[Attribution[Any]], Measurement] = MEASUREMENTS,
) -> Result:
    """The result of a question.

    Args:
        request, prompt: of `forced_run`.
        trace: the run of `request`.
        measurements: by the class of a question.

    Raises:
        CannotMeasure: the network or the target leaves nothing to be measured.
    """
    # Before inference mode: the tensors of an example take part in gradients.
    example = example_of(runner, request, trace, prompt, resources.device, resources.most)
    forced = Forced(request, prompt, runner, trace, resources, example, Scorer(example, resources.ask, resources.most_bytes))
    with torch.inference_mode():
        return measurements[type(question)](question, forced)


def answer_of_engine(
    measurements: Mapping[type[Attribution[Any]], Measurement], engine: Runtime, question: Attribution[Any]
) -> Result:
    """The result of a question about a run of an engine: the run and the result are cached, and both wait for their turn.

    Raises:
        TooManyTokens: this server does not measure runs of that length.
        Refused: the caller may not have so much computed, or not now.
    """
    # The run itself is an ordinary one, and is found in the engine's store if it was shown before. Only the copies are new work.
    loaded = engine.network(question.request.model, question.request.settings)
    request, prompt = forced_run(loaded.runner, question.request, engine.device, engine.most_positions)
    trace, runner = engine.traced(request)
    engine.check_measured_length(trace)
    # The precision that the run really had: results of a default and of the same precision by its name are one.
    about = replace(question.request, precision=trace.request["precision"])

    def work(ask: Ask, report: Report) -> Result:
        return answer(question, request, prompt, runner, trace, engine.resources(ask, counting(report)), measurements)

    asked = VersionedRequest(question.about(about), loaded.key.version)
    return engine.measured(asked, work, price(question, RunShape.of(runner.info.spec, trace, prompt)))


ANSWERS = dict.fromkeys(MEASUREMENTS, partial(answer_of_engine, MEASUREMENTS))
"""How an engine answers this feature's questions."""
