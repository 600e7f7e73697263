"""Readings that are maps, sinks and likeness, against loops in plain Python."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from model.errors import UnknownHead
from model.measures import rows as row_numbers
from model.trace.types import Array, Attention, Site, Trace
from tests import traces
from viz.metrics import aggregation, heads, similar_heads

RNG = np.random.default_rng(5)


def rows(queries: int, keys: int, heads: int = 1) -> Array:
    return RNG.dirichlet(np.full(keys, 0.5), size=(heads, queries)).astype(np.float32)


def changed(trace: Trace, site: str, **fields: Any) -> tuple[Trace, Attention]:
    attention = replace(trace.at(site), **fields)
    return replace(trace, attention={**trace.attention, attention.site: attention}), attention


def test_mean_and_maximum_go_over_heads_cell_by_cell() -> None:
    weights = rows(5, 7, heads=3)
    mean, largest = aggregation.mean_over_heads(weights), aggregation.max_over_heads(weights)
    for i, j in np.ndindex(5, 7):
        cell = [float(weights[h, i, j]) for h in range(3)]
        assert mean[i, j] == pytest.approx(sum(cell) / 3, abs=1e-15)
        assert largest[i, j] == max(cell)
    assert mean.sum(axis=-1) == pytest.approx(np.ones(5), abs=1e-6)
    assert (largest.sum(axis=-1) > 1).all()


@pytest.mark.parametrize("projected", [True, False])
def test_the_length_moved_is_that_of_weight_times_value_through_the_projection(projected: bool) -> None:
    weights, values = rows(4, 6)[0], RNG.normal(size=(6, 3)).astype(np.float32)
    projection = RNG.normal(size=(5, 3)).astype(np.float32)
    found = aggregation.value_weighted(weights, values, projection if projected else None)
    for i, j in np.ndindex(4, 6):
        scaled = [float(weights[i, j]) * float(value) for value in values[j]]
        if projected:
            scaled = [sum(float(row[c]) * scaled[c] for c in range(3)) for row in projection]
        assert found[i, j] == pytest.approx(math.sqrt(sum(x * x for x in scaled)), rel=1e-12)


def test_a_large_weight_on_a_value_of_nothing_moves_nothing() -> None:
    assert aggregation.value_weighted(np.array([[0.9, 0.1]]), np.array([[0.0, 0.0], [3.0, 4.0]])).tolist() == [[0, 0.5]]


def test_entropy_is_that_of_a_loop_and_no_number_stays_none() -> None:
    weights = rows(6, 9)[0]
    for row, found in zip(weights.tolist(), row_numbers.entropies(weights), strict=True):
        assert found == pytest.approx(-sum(w * math.log(w) for w in row if w > 0), rel=1e-12)
    assert row_numbers.entropies(np.array([[0.0, 1.0], [0.5, 0.5], [np.nan, 1.0]])).tolist()[:2] == [
        0.0,
        pytest.approx(math.log(2)),
    ]
    assert math.isnan(row_numbers.entropies(np.array([[np.nan, 1.0]]))[0])


def test_without_hidden_keys_each_row_sums_to_one_again() -> None:
    values, hidden = rows(5, 6)[0], np.array([True, False, False, True, False, True])
    kept = aggregation.without(values, hidden)
    shares = []
    for i, row in enumerate(values.tolist()):
        rest = [w for w, gone in zip(row, hidden, strict=True) if not gone]
        assert kept.values[i].tolist() == pytest.approx([w / sum(rest) for w in rest], rel=1e-12)
        shares.append(1 - sum(rest) / sum(row))
    assert kept.values.sum(axis=-1) == pytest.approx(np.ones(5), abs=1e-12)
    assert kept.share == pytest.approx(sum(shares) / 5, rel=1e-9)
    assert kept.emptied == 0


def test_a_row_that_holds_no_number_is_not_one_that_was_emptied() -> None:
    assert aggregation.without(np.array([[0.0, np.nan], [0.0, 1.0]]), np.array([False, True])).emptied == 1


def test_a_row_that_has_everything_on_hidden_keys_is_empty_and_not_zero() -> None:
    kept = aggregation.without(np.array([[1.0, 0.0, 0.0], [0.5, 0.25, 0.25], [0.0, 0.0, 0.0]]), np.array([True, False, False]))
    assert np.isnan(kept.values[0]).all()
    assert kept.values[1].tolist() == [0.5, 0.5]
    assert (kept.share, kept.emptied) == (0.75, 1)


def resting(share: float, on: int) -> Array:
    weights = np.full((12, 12), (1 - share) / 11, np.float32)
    weights[:, on] = share
    return weights


@pytest.mark.parametrize(("share", "on", "is_sink"), [(0.64, 0, True), (0.64, 11, True), (0.64, 4, False), (0.4, 0, False)])
def test_a_sink_is_a_first_or_special_token_with_more_than_half_of_the_weight(share: float, on: int, is_sink: bool) -> None:
    trace, attention = changed(traces.translation(layers=1, heads=1), "encoder.0.0.self", weights=resting(share, on)[None])
    found = heads.sink(trace, attention, 0)
    assert (found is not None) == is_sink
    if found is not None:
        assert (found.key, found.value) == (on, None)
        assert found.share == pytest.approx(share, rel=1e-6)


def test_rows_without_a_choice_make_no_sink() -> None:
    trace = traces.translation(layers=1, heads=1)
    weights = trace.at("decoder.0.0.self").weights.copy()
    weights[0, 1:] = np.tril(np.full((12, 12), 1.0))[1:] / np.arange(2, 13)[:, None]
    trace, attention = changed(trace, "decoder.0.0.self", weights=weights)
    assert row_numbers.choosing(attention)[0].tolist() == [False, *[True] * 11]
    assert heads.sink(trace, attention, 0) is None
    first, alone = changed(trace, "decoder.0.0.self", weights=weights[:, :1, :1], mask=attention.mask[:1, :1])
    assert heads.sink(first, alone, 0) is None


def test_the_value_of_a_sink_is_measured_by_the_mean_length() -> None:
    values = np.ones((1, 12, 4), np.float32)
    values[0, 0] = 0.1
    trace, attention = changed(traces.translation(layers=1, heads=1), "encoder.0.0.self", weights=resting(0.6, 0)[None], v=values)
    found = heads.sink(trace, attention, 0)
    assert found is not None
    assert found.value == pytest.approx(0.2 / ((0.2 + 11 * 2) / 12), rel=1e-6)


def test_the_divergence_is_lins_and_lies_between_nothing_and_one_bit() -> None:
    p, q = rows(6, 5)[0], rows(6, 5)[0]
    for i, found in enumerate(row_numbers.divergence(p, q)):
        expected = 0.0
        for a, b in zip(p[i].tolist(), q[i].tolist(), strict=True):
            expected += sum(x / 2 * math.log2(x / ((a + b) / 2)) for x in (a, b) if x > 0)
        assert found == pytest.approx(expected, abs=1e-12)
    assert row_numbers.divergence(p, p).tolist() == [0] * 6
    assert row_numbers.divergence(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])).tolist() == [1]


def test_the_heads_most_alike_are_the_nearest_of_those_that_read_the_same_tokens() -> None:
    trace = traces.translation(layers=2, heads=3)
    twin = trace.at("decoder.0.0.cross").weights.copy()
    twin[1] = trace.at("decoder.0.1.cross").weights[2]
    trace, attention = changed(trace, "decoder.0.0.cross", weights=twin)
    found = similar_heads.most_alike(trace, trace.at("decoder.0.1.cross"), 2, count=99)
    assert (str(found[0].site), found[0].head, found[0].divergence) == ("decoder.0.0.cross", 1, 0)
    assert {str(one.site) for one in found} == {"decoder.0.0.cross", "decoder.0.1.cross"}
    assert len(found) == 5, "every comparable head but the selected one"
    assert [one.divergence for one in found] == sorted(one.divergence for one in found)
    own = trace.at("decoder.0.1.cross").weights[2]
    for one in found:
        rows_apart = row_numbers.divergence(own, trace.at(one.site).weights[one.head])
        assert one.divergence == pytest.approx(sum(rows_apart) / len(rows_apart))
    assert similar_heads.most_alike(trace, attention, 1, count=2) == similar_heads.most_alike(trace, attention, 1)[:2]


def test_rows_that_cannot_choose_are_not_compared() -> None:
    trace = traces.translation(layers=1, heads=2)
    attention = trace.at("decoder.0.0.self")
    (other,) = similar_heads.most_alike(trace, attention, 0)
    apart = [float(row_numbers.divergence(*attention.weights[:, [i]])[0]) for i in range(1, 12)]
    assert other.divergence == pytest.approx(sum(apart) / 11)


def test_a_head_that_is_not_there_is_refused() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at(Site("encoder", 0, 0, "self"))
    for read in (heads.sink, similar_heads.most_alike):
        with pytest.raises(UnknownHead, match="There is no head 99 at"):
            read(trace, attention, 99)
