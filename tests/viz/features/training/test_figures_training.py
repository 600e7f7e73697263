"""The curves of a training: every point is where its number says, and step 0 has a place although it has no logarithm."""

import math

import numpy as np
import pytest

from tests.viz.features.training.films import STEPS, measured
from viz.features.training import figures as training
from viz.features.training.metrics import specialised
from viz.figures import steps_axis
from viz.labels import tokens


@pytest.mark.parametrize("at", [0, 40])
def test_the_losses_and_the_line_at_the_snapshot(at: int) -> None:
    sentence = measured().losses
    figure = training.losses([50, 100, 200], np.array([3.0, 2, 1]), np.array([2.5, 2, 1.5]), STEPS, sentence, at, dark=False)
    curves = {curve.name: curve for curve in figure.data}
    assert list(curves["validation"].x) == [50, 100, 200]
    assert list(curves["validation"].y) == [2.5, 2, 1.5]
    assert list(curves["this sentence"].y) == list(sentence)
    assert list(curves["this sentence"].x) == [1.5, 3, 10, 40, 200]
    assert list(curves["this sentence"].customdata) == list(STEPS), "hovering names the step, not the place"
    (line,) = figure.layout.shapes
    assert line.x0 == line.x1 == (at or 1.5)
    assert figure.layout.xaxis.type == "log"
    low, high = figure.layout.xaxis.range
    assert low < math.log10(1.5) < math.log10(200) < high
    assert (figure.layout.xaxis.tickvals[0], figure.layout.xaxis.ticktext[0]) == (1.5, "0")
    assert list(figure.layout.xaxis.ticktext[1:]) == ["10", "100"]


def test_a_loss_that_is_not_known_has_no_curve() -> None:
    nothing = np.array([])
    figure = training.losses([], nothing, nothing, STEPS, measured().losses, 0, dark=True)
    assert [curve.name for curve in figure.data] == ["this sentence"]


def test_every_head_has_its_line_and_its_name() -> None:
    found = measured()
    names = [tokens.site(site, head) for site, head in found.heads]
    groups = [tokens.kind(site.stack, site.kind) for site, _head in found.heads]
    selected, values = 4, found.values["entropy"]
    moment = specialised(STEPS, values[:, selected])
    assert moment is not None
    figure = training.measure(STEPS, values, names, groups, 10, (selected, moment), "Entropy (nats)", dark=False)
    lines = {curve.name: curve for curve in figure.data if curve.name in names}
    assert set(lines) == set(names)
    for column, name in enumerate(names):
        assert list(lines[name].y) == list(values[:, column])
        assert name in lines[name].hovertemplate
        assert (lines[name].line.width > 3) == (column == selected)
    (ring,) = [curve for curve in figure.data if curve.mode == "markers+text"]
    assert ring.x == (moment or 1.5,)
    assert ring.y == (values[STEPS.index(moment), selected],)
    kinds = [curve.name for curve in figure.data if curve.showlegend is None]
    assert kinds == list(dict.fromkeys(groups))
    assert len({lines[name].line.color for name in names}) == len(kinds)


def test_a_head_that_did_not_change_has_no_mark() -> None:
    values = np.ones((5, 1))
    figure = training.measure(STEPS, values, ["a"], ["Cross-attention"], 0, (0, None), "Entropy (nats)", dark=True)
    assert not [curve for curve in figure.data if curve.mode == "markers+text"]


@pytest.mark.parametrize("steps", [(0,), (5,), (0, 1), (7, 900_000)])
def test_any_schedule_has_an_axis(steps: tuple[int, ...]) -> None:
    figure = training.losses([], np.array([]), np.array([]), steps, np.ones(len(steps)), steps[-1], dark=False)
    low, high = figure.layout.xaxis.range
    for place in steps_axis.places(steps, steps):
        assert low < math.log10(place) < high
