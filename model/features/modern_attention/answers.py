"""Answers about what a decoder costs: sizes of its cache, times by length, and a run without a cache."""

from model.engine.runtime import Runtime, VersionedRequest, counting
from model.feature import Answers
from model.features.modern_attention.costs import CacheRun, Measures, Sizes, TimeLengths, Times, WithoutCache
from model.features.modern_attention.decode_costs import sizes_of, times_of, without_cache
from model.features.what_if.work import RunShape, price


def _measures(engine: Runtime, question: Measures) -> Sizes:
    return sizes_of(engine.checkpoint(question.model, question.settings).network)


def _time_lengths(engine: Runtime, question: TimeLengths) -> Times:
    network = engine.checkpoint(question.model, question.settings).network
    times: Times = engine.scheduler.do(question, lambda ask, report: times_of(network, engine.device, ask))
    return times


def _without_cache(engine: Runtime, question: WithoutCache) -> CacheRun:
    trace, runner = engine.traced(question.request)
    asked = VersionedRequest(question, engine.version(question.request.model))
    shape = RunShape.of(runner.info.spec, trace)
    return engine.measured(
        asked, lambda ask, report: without_cache(trace, runner, engine.device, ask, counting(report)), price(question, shape)
    )


ANSWERS: Answers = {Measures: _measures, TimeLengths: _time_lengths, WithoutCache: _without_cache}
"""How an engine answers this feature's questions."""
