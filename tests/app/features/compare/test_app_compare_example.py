"""What Compare opens on, with each checkpoint that comes with the app: one head, without which the output is least likely."""

from dataclasses import replace

import numpy as np
import pytest

from model.engine.api import Describe, Run
from model.trace.types import Array, Trace
from tests.app.test_app_bundled import BUNDLED
from tests.known import bundled_engine
from viz.features.compare import run_difference, runs, sides
from viz.features.compare.view import differing, second_side
from viz.labels import tokens
from viz.session.state import Page
from viz.url.links import opening
from viz.url.view_state import ViewState


def page_of(model: str) -> Page:
    engine = bundled_engine()
    info = engine.ask(Describe(model))
    view = opening(info, ViewState(model=model))
    trace = engine.ask(Run(view.request()))
    return Page(engine, info, view, trace, trace.last_cross(), 0, dark=False)


def log_probability(trace: Trace, since: int) -> float:
    """That of the tokens from position `since` on, computed again from the logits of a run that read them."""
    assert trace.logits is not None
    ids = np.array(trace.tokens[tokens.written_strip(trace)].ids[since:])
    logits: Array = trace.logits.astype(np.float64)[since - 1 :][: len(ids)]
    logits -= logits.max(axis=1, keepdims=True)
    return float((logits[np.arange(len(ids)), ids] - np.log(np.exp(logits).sum(axis=1))).sum())


@pytest.mark.parametrize("model", BUNDLED)
def test_it_silences_the_head_that_changes_the_output_most_and_maps_change(model: str) -> None:
    page = page_of(model)
    silence, sentence = sides.example(page)
    assert "needs most" in sentence
    (chosen,) = silence.split()
    sites = list(page.trace.attention)
    heads = [(site, head) for site in sites[:-1] for head in range(page.trace.at(site).heads)]
    free = runs.Runs(page.trace, page.trace, min(step.computed[1] for step in page.trace.steps))
    cost = dict[str, float]()
    for site, head in heads:
        without = replace(page.view, silence=f"{site}:{head}")
        cost[f"{site}:{head}"] = log_probability(page.engine.ask(Run(runs._fed(without.request(), page.trace, free))), free.since)
    assert chosen == min(cost, key=cost.__getitem__)

    second = page.engine.ask(Run(second_side(page.view.changed(against=differing(silence=silence))).request()))
    compared, refused = run_difference.changes(page.trace, second)
    assert not refused
    assert any(change.changed and len(change.rows) > 1 for change in compared.values())
