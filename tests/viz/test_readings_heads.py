"""Readings of heads against loops in plain Python."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from model.errors import UnknownHead
from model.measures import rows
from model.measures.catalogue import MEASURES
from model.trace.types import Array, Attention, Site, Tokens, Trace
from tests import traces
from tests.plain_measures import Rows, by_loop
from viz.features.training.view import MEASURES as DRAWN
from viz.labels import measures
from viz.metrics import heads
from viz.metrics.heads import SHOWN, HeadStatistics, all_heads, head_statistics
from viz.metrics.padding import padding_effect


def by_loops(trace: Trace, attention: Attention, head: int) -> HeadStatistics:
    rows = sum(1 for _row in Rows(trace, attention, head).chosen())
    return HeadStatistics({name: by_loop(name, trace, attention, head) for name in SHOWN}, rows, len(attention.mask) - rows)


def assert_equal(found: HeadStatistics, expected: HeadStatistics) -> None:
    assert found.values == pytest.approx(expected.values, abs=1e-9, nan_ok=True)
    assert (found.rows, found.rows_left_out) == (expected.rows, expected.rows_left_out)


@pytest.mark.parametrize("shape", [(12, 13), (3, 9), (30, 5), (2, 2)])
def test_every_head_reads_as_in_a_loop(shape: tuple[int, int]) -> None:
    words = ["<sos>", *["wort"] * 28, "<eos>"]
    trace = traces.translation(source=words[-shape[1] :], target=[*words[: shape[0]], "<eos>"], layers=2, heads=4, seed=1)
    for attention in trace.attention.values():
        for head in range(attention.heads):
            assert_equal(head_statistics(trace, attention, head), by_loops(trace, attention, head))


def test_known_heads() -> None:
    trace = traces.translation(layers=1, heads=1)
    n = len(trace.tokens["source"])

    def read(weights: np.ndarray) -> Mapping[str, float]:
        attention = Attention(Site("encoder", 0, 0, "self"), "source", "source", weights[None], np.ones((n, n), bool))
        return head_statistics(trace, attention, 0).values

    one_back = np.eye(n, k=-1)
    one_back[0, 0] = 1
    diagonal, flat, previous = read(np.eye(n)), read(np.full((n, n), 1 / n)), read(one_back)
    assert [diagonal[name] for name in ("entropy", "largest", "distance", "near_diagonal")] == [0, 1, 0, 1]
    assert flat["entropy"] == pytest.approx(math.log(n))
    assert flat["special"] == pytest.approx(((n - 2) * 2 + 2 * 1) / n / n)
    assert previous["distance"] == pytest.approx((n - 1) / n)
    assert previous["near_diagonal"] == 1


def test_rows_that_look_nowhere_or_hold_no_numbers_are_counted_not_averaged() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.cross")
    mask, weights = attention.mask.copy(), attention.weights.copy()
    mask[2] = False
    weights[:, 2] = 1 / weights.shape[2]
    weights[0, 5, 1] = np.nan
    changed = replace(attention, mask=mask, weights=weights)
    found = head_statistics(trace, changed, 0)
    assert (found.rows, found.rows_left_out) == (weights.shape[1] - 2, 2)
    assert_equal(found, by_loops(trace, changed, 0))
    assert head_statistics(trace, changed, 1).rows_left_out == 1


def test_the_heads_of_a_run_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read, counted = list[Attention](), rows.choosing

    def noted(attention: Attention) -> Array:
        read.append(attention)
        return counted(attention)

    monkeypatch.setattr(heads, "choosing", noted)
    trace = traces.translation(layers=2, heads=2)
    for _turn in range(2):
        assert len(all_heads(trace)) == 12
        assert head_statistics(trace, trace.last_cross(), 1) == head_statistics(trace, trace.last_cross(), 1)
    assert read == list(trace.attention.values())
    other = replace(trace.last_cross(), weights=np.roll(trace.last_cross().weights, 1, axis=2))
    assert head_statistics(trace, other, 1) != head_statistics(trace, trace.last_cross(), 1)


def test_a_head_without_any_row_reads_nan() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.cross")
    found = head_statistics(trace, replace(attention, mask=np.zeros_like(attention.mask)), 0)
    assert all(map(math.isnan, found.values.values()))
    assert found.rows == 0


def test_the_table_of_all_heads_counts_from_one_and_is_found_by_site_and_head() -> None:
    trace = traces.translation(layers=2, heads=3)
    table = all_heads(trace)
    assert len(table) == 6 * 3
    assert list(table.columns) == ["kind", "layer", "head", *SHOWN, "rows", "rows_left_out"]
    row = table.loc[("decoder.0.1.cross", 2)]
    assert (row["kind"], row["layer"], row["head"]) == ("Cross-attention", 2, 3)
    expected = head_statistics(trace, trace.at("decoder.0.1.cross"), 2)
    assert {name: row[name] for name in SHOWN} == expected.values
    assert (row["rows"], row["rows_left_out"]) == (expected.rows, expected.rows_left_out)
    assert table.sort_values("entropy")["entropy"].is_monotonic_increasing


def test_passes_have_a_column_where_there_is_more_than_one() -> None:
    trace = traces.translation(layers=1, heads=2)
    again = {replace(site, pass_=1): replace(a, site=replace(site, pass_=1)) for site, a in trace.attention.items()}
    table = all_heads(replace(trace, attention={**trace.attention, **again}))
    assert table.loc[("decoder.1.0.self", 0), "pass"] == 2
    assert len(table) == 12


def test_each_measure_of_a_page_has_a_title_and_a_meaning() -> None:
    assert set(measures.titles()) == set(MEASURES)
    assert {*SHOWN, *DRAWN} == set(measures.meanings()) <= set(measures.of_training())


def test_a_head_that_is_not_there_is_refused() -> None:
    trace = traces.translation(layers=1)
    with pytest.raises(UnknownHead, match="There is no head -1 at"):
        head_statistics(trace, trace.at("encoder.0.0.self"), -1)


def test_a_strip_longer_than_the_keys_is_no_trouble() -> None:
    trace = traces.translation(layers=1)
    assert len(trace.tokens["target"]) == trace.at("decoder.0.0.self").weights.shape[2] + 1
    assert isinstance(trace.tokens["target"], Tokens)
    assert 0 <= head_statistics(trace, trace.at("decoder.0.0.self"), 0).values["special"] <= 1


def test_the_effect_of_padding_is_measured_on_weights_and_logits() -> None:
    plain = traces.translation(layers=2)
    effect = padding_effect(plain, traces.padded(plain, 5, wobble=2.0**-10))
    assert (effect.added, effect.sites, effect.largest_weight) == (5, 4, 0)
    assert effect.rows == effect.rows_without == 12
    assert effect.largest_difference == pytest.approx(2.0**-10, rel=1e-3)
    assert plain.logits is not None
    assert effect.largest_logit == pytest.approx(float(np.abs(plain.logits).max()))
    assert not effect.is_rounding
    assert padding_effect(plain, traces.padded(plain, 5)).is_rounding


def test_what_rounding_explains_depends_on_the_number_type() -> None:
    plain = traces.translation()
    largest = float(np.abs(plain.logits).max())  # type: ignore[arg-type]  # it writes
    for dtype, share in (("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 2e-2)):
        typed = replace(plain, model={**plain.model, "dtype": dtype})
        assert padding_effect(typed, traces.padded(typed, 5, share * largest)).is_rounding
        assert not padding_effect(typed, traces.padded(typed, 5, 10 * share * largest)).is_rounding


def test_weight_on_padding_is_found_wherever_it_is() -> None:
    plain = traces.translation(layers=2)
    padded = traces.padded(plain, 3)
    site = Site("decoder", 0, 1, "cross")
    leaky = padded.at(site).weights.copy()
    leaky[4, 7, -1] = 0.25
    changed = replace(padded, attention={**padded.attention, site: replace(padded.at(site), weights=leaky)})
    assert padding_effect(plain, changed).largest_weight == 0.25


def test_rows_after_the_first_other_word_are_not_compared() -> None:
    plain = traces.translation(layers=1)
    target = plain.tokens["target"]
    ids = (*target.ids[:4], 99, *target.ids[5:])
    other = replace(traces.padded(plain, 2), tokens={**plain.tokens, "target": replace(target, ids=ids)})
    assert padding_effect(plain, other).rows == 4


def test_without_logits_there_is_nothing_to_compare() -> None:
    plain = replace(traces.translation(layers=1), logits=None)
    effect = padding_effect(plain, traces.padded(plain, 2))
    assert (effect.rows, effect.rows_without) == (0, 0)
    assert math.isnan(effect.largest_difference)
    assert not effect.is_rounding
