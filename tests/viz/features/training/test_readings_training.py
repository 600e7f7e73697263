"""What is measured over a training, against loops over single rows and numbers worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from model.measures.catalogue import MEASURES as CATALOGUE
from model.measures.of_run import of_site
from model.trace.types import Array, Site
from tests import traces
from tests.plain_measures import by_loop
from tests.viz.features.training.films import STEPS, WHOLE, frames, measured
from viz.features.training.metrics import moments, numbers, specialised
from viz.features.training.view import MEASURES
from viz.metrics.teacher_forcing import fed, similarity, surprise

CROSS = Site("decoder", 0, 1, "cross")


def in_common(weights: Array, last: Array, mask: Array) -> float:
    """What the rows of a head that have a choice have in common with another one's, row by row and key by key."""
    rows = [row for row in range(len(mask)) if sum(mask[row]) >= 2 and np.isfinite(weights[row]).all()]
    return sum(min(float(w), float(v)) for row in rows for w, v in zip(weights[row], last[row], strict=True)) / len(rows)


def test_every_measure_of_every_head_is_that_of_a_loop() -> None:
    found, films = measured(), frames()
    assert found.steps == STEPS
    for column, (site, head) in enumerate(found.heads):
        last = films[-1].fed.at(site)
        for row, frame in enumerate(films):
            attention = frame.fed.at(site)
            plain = {"similarity": in_common(attention.head(head), last.head(head), attention.mask)}
            names = [name for name in MEASURES if name in CATALOGUE and CATALOGUE[name].exists_in(site.kind)]
            plain |= {name: by_loop(name, frame.fed, attention, head) for name in names}
            for name in MEASURES:
                expected = plain.get(name, math.nan)
                assert found.values[name][row, column] == pytest.approx(expected, abs=1e-6, nan_ok=True), (site, head, name)
    assert set(found.values) == set(MEASURES)


def test_the_end_is_similar_to_itself() -> None:
    np.testing.assert_allclose(measured().values["similarity"][-1], 1, atol=1e-6)


@pytest.mark.parametrize(("digits", "rows"), [(1, 2), (5, 6), (12, 13)])
def test_a_head_that_reverses_is_anti_diagonal(digits: int, rows: int) -> None:
    """Row i writes digit n - i of n, which stands at key n - i: `<sos>` is key 0."""
    weights = np.zeros((1, rows, digits + 2), np.float32)
    for i in range(rows):
        weights[0, i, digits - i] = 1
    trace = traces.translation(["w"] * (digits + 2), ["v"] * (rows + 1))
    reversing = replace(trace.at(CROSS), weights=weights, mask=np.ones(weights.shape[1:], bool))
    assert of_site(trace, reversing, ("antidiagonal",)) == pytest.approx(1)
    mirrored = of_site(trace, replace(reversing, weights=weights[:, :, ::-1]), ("antidiagonal",))
    assert mirrored[0, 0] < (1 if digits == 1 else 0.7)


def test_rows_that_look_at_nothing_or_hold_no_numbers_are_left_out() -> None:
    one = traces.translation().at(CROSS)
    weights, mask = one.weights.copy(), one.mask.copy()
    mask[0] = False
    weights[:, 0] = 0
    weights[2, 3, 1] = np.nan
    broken = replace(one, weights=weights, mask=mask)
    for head in range(one.heads):
        assert similarity(broken, one)[head] == pytest.approx(in_common(broken.head(head), one.head(head), mask))
    assert np.isnan(similarity(replace(one, mask=np.zeros_like(mask)), one)).all()


def test_the_surprise_of_a_token_is_that_of_the_softmax() -> None:
    run = frames()[0].fed
    assert run.logits is not None
    ids, found = fed(WHOLE).ids, surprise(run, fed(WHOLE).ids)
    for row, lost in enumerate(found):
        logits = [float(value) for value in run.logits[row]]
        total = sum(math.exp(value - max(logits)) for value in logits)
        assert lost == pytest.approx(-(logits[ids[row + 1]] - max(logits) - math.log(total)), abs=1e-9)
    assert len(found) == len(ids) - 1
    assert measured().losses[0] == pytest.approx(found.mean())
    assert surprise(replace(run, logits=None), ids).size == 0


def test_large_logits_lose_no_number() -> None:
    run = replace(frames()[0].fed, logits=np.array([[0.0] * 20, [1e4] + [0.0] * 19]))
    np.testing.assert_allclose(surprise(run, (0, 3, 1)), [math.log(20), 1e4])


@pytest.mark.parametrize(
    ("values", "moment"),
    [
        ([0, 0, 1, 1, 1], 10),
        ([1, 1, 1, 0, 0], 40),
        ([0, 0.9, 0.1, 0.8, 1], 40),  # past half, and back again: it has to stay
        ([0, 0.2, 0.4, 0.49, 1], 200),
        ([0, 0.5, 0.5, 0.5, 1], 3),
        ([1, 0.5, 0.5, 0.5, 0], 3),
        ([1, 0.51, 0.51, 0, 0], 40),
        ([2, 2, 2, 2, 2], None),
        ([0, 1, 1, 1, 0], None),
        ([0, np.nan, 1, 1, 1], None),
    ],
)
def test_a_head_specialises_where_it_stays_past_half(values: list[float], moment: int | None) -> None:
    assert specialised(STEPS, np.array(values)) == moment


@pytest.mark.parametrize("measure", MEASURES)
def test_the_table_of_moments_has_every_head_and_begins_with_the_largest_change(measure: str) -> None:
    found = measured()
    table = moments(found, measure)
    having = [site.kind == "cross" or measure != "antidiagonal" for site, _head in found.heads]
    assert len(table) == sum(having)
    assert list(table["change"].abs()) == sorted(table["change"].abs(), reverse=True)
    for (site, head), row in table.iterrows():
        column = found.heads.index((Site.parse(site), head))
        values = found.values[measure][:, column]
        assert (row["start"], row["end"], row["change"]) == (values[0], values[-1], values[-1] - values[0])
        assert (row["layer"], row["head"]) == (Site.parse(site).layer + 1, head + 1)
        assert row["moment"] == specialised(STEPS, values)
    assert "pass" not in table


def test_the_numbers_are_those_of_the_picture() -> None:
    found = measured()
    table = numbers(found, "entropy")
    assert list(table.columns) == ["0", "3", "10", "40", "200"]
    assert table.loc["Cross-attention, layer 2, head 3", "10"] == found.values["entropy"][2, found.heads.index((CROSS, 2))]
