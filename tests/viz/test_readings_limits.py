"""Readings on their limits: exactly half, exactly one key, nothing at all."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.trace.types import Array, Attention, Site, Tokens, Trace
from tests import traces
from tests.traces import strip
from viz.metrics import head_statistics, training_metrics
from viz.metrics.alignment import counterparts
from viz.metrics.padding import padding_effect
from viz.metrics.run_difference import changes


def one_head(weights: Array, **others: Any) -> tuple[Trace, Attention]:
    """A run whose encoder has one head with these weights."""
    trace = traces.translation(layers=1, heads=1)
    attention = replace(trace.at("encoder.0.0.self"), weights=weights[None], scores=None, **others)
    return replace(trace, attention={attention.site: attention}), attention


def resting(share: float, key: int) -> Array:
    weights = np.full((12, 12), (1 - share) / 11)
    weights[:, key] = share
    return weights


def test_exactly_half_of_the_weight_is_no_sink() -> None:
    assert head_statistics.sink(*one_head(resting(0.5, 0)), 0) is None
    assert head_statistics.sink(*one_head(resting(0.5 + 2**-20, 0)), 0) is not None


def test_a_row_that_may_look_at_two_keys_could_choose_and_one_without_numbers_could_not() -> None:
    mask = np.ones((12, 12), bool)
    mask[3, 2:] = False
    mask[4, 1:] = False
    mask[5] = False
    weights = resting(0.6, 0)
    weights[7, 1] = np.nan
    trace, attention = one_head(weights, mask=mask)
    assert np.flatnonzero(~head_statistics.rows_that_choose(attention)[0]).tolist() == [4, 5, 7]
    found = head_statistics.sink(trace, attention, 0)
    assert found is not None
    assert found.rows == 9


def test_values_of_no_length_have_no_relative_length() -> None:
    found = head_statistics.sink(*one_head(resting(0.6, 0), v=np.zeros((1, 12, 4))), 0)
    assert found is not None
    assert found.value is not None
    assert math.isnan(found.value)


@pytest.mark.parametrize(("second", "places"), [("<sos> a b x y <eos>", 6), ("<sos> a x y z <eos>", 2)])
def test_of_two_strips_half_of_the_words_may_differ_and_not_one_more(second: str, places: int) -> None:
    pair: tuple[Tokens, Tokens] = strip("source", "<sos> a b c d <eos>".split()), strip("source", second.split())
    assert counterparts(*pair) == places


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.0, 0.5, 1.0], 10),
        ([0.0, 0.49, 1.0], 20),
        ([0.0, 1.0, 0.4, 1.0], 30),
        ([1.0, 0.5, 0.0], 10),
        ([1.0, 0.51, 0.0], 20),
        ([0.0, 0.0], None),
        ([0.0, 1.0, 0.0], None),
        ([0.0, math.nan, 1.0], None),
        ([0.0, 1.0], 10),
        ([0.2, 0.9, 1.0], 10),
    ],
)
def test_a_head_specialises_where_it_stays_past_half_of_its_change(values: list[float], step: int | None) -> None:
    steps = [10 * index for index in range(len(values))]
    assert training_metrics.specialised(steps, np.array(values)) == step


def test_a_difference_is_rounding_up_to_its_share_of_the_largest_logit_and_no_smaller_logit_than_one_counts() -> None:
    plain = traces.translation(layers=1)
    effect = padding_effect(plain, traces.padded(plain, 2))
    for largest, scale in ((8.0, 8.0), (0.5, 1.0)):
        on = replace(effect, largest_logit=largest, largest_difference=effect.rounding * scale)
        assert on.is_rounding
        assert not replace(on, largest_difference=effect.rounding * scale * 1.001).is_rounding


def test_two_equal_runs_have_changed_nowhere_and_a_moved_weight_is_counted_once() -> None:
    first, attention = one_head(resting(0.6, 0))
    moved = attention.weights.copy()
    moved[0, 2, 0] -= 0.25
    moved[0, 2, 5] += 0.25
    second = replace(first, attention={attention.site: replace(attention, weights=moved)})
    (change,) = changes(first, second)[0].values()
    assert change.by_row[0].tolist() == pytest.approx([0, 0, 0.25, *[0] * 9])
    (same,) = changes(first, first)[0].values()
    assert same.by_row[0].tolist() == [0] * 12


def test_sites_whose_strips_differ_are_not_compared_whichever_run_comes_first() -> None:
    first, attention = one_head(resting(0.6, 0))
    tokens = {"source": first.tokens["source"], "target": replace(first.tokens["source"], name="target")}
    other = replace(first, tokens=tokens, attention={attention.site: replace(attention, key_tokens="target")})
    first = replace(first, tokens=tokens)
    assert changes(first, other) == changes(other, first) == ({}, {attention.site: "tokens"})


@pytest.mark.parametrize("side", [0, 1])
def test_the_effect_of_padding_needs_the_logits_of_both_runs(side: int) -> None:
    plain = traces.translation(layers=1)
    runs = [plain, traces.padded(plain, 2)]
    runs[side] = replace(runs[side], logits=None)
    effect = padding_effect(*runs)
    assert effect.rows == 0
    assert math.isnan(effect.largest_difference)


def test_the_table_of_moments_counts_layers_and_heads_from_one_and_changes_from_first_to_last() -> None:
    heads = tuple((Site("decoder", 0, layer, "cross"), head) for layer in (0, 1, 2) for head in (0, 1))
    values = np.array([np.zeros(6), np.full(6, 0.1), np.arange(6.0, 0.0, -1.0)])
    table = training_metrics.moments(training_metrics.Course((0, 4, 9), heads, {"entropy": values}, np.zeros(3)), "entropy")
    assert table["change"].tolist() == [6, 5, 4, 3, 2, 1]
    assert table[["layer", "head"]].to_numpy().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2], [3, 1], [3, 2]]
    assert table["moment"].tolist() == [9] * 6
