"""Readings on their limits: exactly half, exactly one key, nothing at all."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.measures.rows import choosing
from model.trace.types import Array, Attention, Tokens, Trace
from tests import traces
from tests.traces import strip
from viz.metrics import heads
from viz.metrics.alignment import counterparts
from viz.metrics.padding import padding_effect


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
    assert heads.sink(*one_head(resting(0.5, 0)), 0) is None
    assert heads.sink(*one_head(resting(0.5 + 2**-20, 0)), 0) is not None


def test_a_row_that_may_look_at_two_keys_could_choose_and_one_without_numbers_could_not() -> None:
    mask = np.ones((12, 12), bool)
    mask[3, 2:] = False
    mask[4, 1:] = False
    mask[5] = False
    weights = resting(0.6, 0)
    weights[7, 1] = np.nan
    trace, attention = one_head(weights, mask=mask)
    assert np.flatnonzero(~choosing(attention)[0]).tolist() == [4, 5, 7]
    found = heads.sink(trace, attention, 0)
    assert found is not None
    assert found.share == pytest.approx(0.6), "the row of the key itself is left out"


def test_values_of_no_length_have_no_relative_length() -> None:
    found = heads.sink(*one_head(resting(0.6, 0), v=np.zeros((1, 12, 4))), 0)
    assert found is not None
    assert found.value is not None
    assert math.isnan(found.value)


@pytest.mark.parametrize(("second", "places"), [("<sos> a b x y <eos>", 6), ("<sos> a x y z <eos>", 2)])
def test_of_two_strips_half_of_the_words_may_differ_and_not_one_more(second: str, places: int) -> None:
    pair: tuple[Tokens, Tokens] = strip("source", "<sos> a b c d <eos>".split()), strip("source", second.split())
    assert counterparts(*pair) == places


def test_a_difference_is_rounding_up_to_its_share_of_the_largest_logit_and_no_smaller_logit_than_one_counts() -> None:
    plain = traces.translation(layers=1)
    effect = padding_effect(plain, traces.padded(plain, 2))
    for largest, scale in ((8.0, 8.0), (0.5, 1.0)):
        on = replace(effect, largest_logit=largest, largest_difference=effect.rounding * scale)
        assert on.is_rounding
        assert not replace(on, largest_difference=effect.rounding * scale * 1.001).is_rounding


@pytest.mark.parametrize("side", [0, 1])
def test_the_effect_of_padding_needs_the_logits_of_both_runs(side: int) -> None:
    plain = traces.translation(layers=1)
    runs = [plain, traces.padded(plain, 2)]
    runs[side] = replace(runs[side], logits=None)
    effect = padding_effect(*runs)
    assert effect.rows == 0
    assert math.isnan(effect.largest_difference)
