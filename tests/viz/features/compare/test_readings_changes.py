"""What changed between two runs: numbers against loops in float64, and nothing across tokens that do not align."""

from dataclasses import replace

import numpy as np
import pytest

from model.trace.steps import Candidate, Step
from model.trace.types import Array, Site, Trace
from tests import traces
from viz.features.compare.run_difference import changes, rounding, table, written
from viz.labels import tokens

SELF, CROSS, ENCODER = Site("decoder", 0, 1, "self"), Site("decoder", 0, 1, "cross"), Site("encoder", 0, 0, "self")


def pair(**second: object) -> tuple[Trace, Trace]:
    return traces.translation(layers=2, heads=3), traces.translation(layers=2, heads=3, seed=1, **second)  # type: ignore[arg-type]


def moved(one: Array, other: Array, mask: Array) -> list[float]:
    """The change of each row that could choose, by the formula, cell after cell."""
    found = []
    for row in range(len(mask)):
        if int(mask[row].sum()) >= 2:
            found.append(sum(abs(float(other[row, key]) - float(one[row, key])) for key in range(mask.shape[1])) / 2)
    return found


def test_the_change_of_a_head_is_the_mean_of_half_the_absolute_differences() -> None:
    first, second = pair()
    found, refused = changes(first, second)
    assert not refused
    assert list(found) == list(first.attention)
    for site, change in found.items():
        for head in range(3):
            one, other = first.at(site), second.at(site)
            expected = moved(one.weights[head], other.weights[head], one.mask)
            assert change.by_row[head][~np.isnan(change.by_row[head])] == pytest.approx(expected, abs=1e-12)
            apart = other.weights[head].astype(float) - one.weights[head]
            assert change.difference(head) == pytest.approx(np.where(abs(apart) <= 1e-5, 0, apart), abs=0)
    assert np.isnan(found[SELF].by_row[:, 0]).all(), "the first row of a decoder has one key: it could not choose"


def test_the_table_has_the_most_changed_head_first_and_its_numbers() -> None:
    first, second = pair()
    found, _refused = changes(first, second)
    queries = {site: tokens.queries(first, change.first) for site, change in found.items()}
    heads = table(found, queries)
    assert len(heads) == 6 * 3
    assert heads["moved"].is_monotonic_decreasing
    for (site, head), row in heads.iterrows():
        one, other = first.at(site), second.at(site)
        expected = moved(one.weights[head], other.weights[head], one.mask)
        assert (row["layer"], row["head"]) == (one.site.layer + 1, head + 1)
        assert row["moved"] == pytest.approx(np.mean(expected))
        assert row["largest"] == pytest.approx(max(expected))
        offset = len(one.mask) - len(expected)
        assert row["row"] == queries[one.site][offset + int(np.argmax(expected))]
        assert row["cell"] == pytest.approx(np.abs(other.weights[head].astype(float) - one.weights[head]).max())
        assert row["rows"] == len(expected)


def test_a_site_that_reads_other_tokens_in_the_other_run_is_not_compared() -> None:
    first, second = pair()
    for strip in ("source", "target"):
        other = replace(second.at(ENCODER), query_tokens=strip, key_tokens=strip)
        second = replace(second, attention={**second.attention, ENCODER: other})
        for found, refused in (changes(first, second), changes(second, first)):
            assert (ENCODER in found, refused.get(ENCODER)) == ((True, None) if strip == "source" else (False, "tokens"))


def test_rounding_counts_as_no_change() -> None:
    first = traces.translation(layers=1, heads=2)
    nudged = {site: replace(own, weights=own.weights + np.float32(5e-7)) for site, own in first.attention.items()}
    found, _refused = changes(first, replace(first, attention=nudged))
    for change in found.values():
        assert not change.changed
        assert np.nanmax(change.by_row) == 0.0
        assert np.abs(change.difference(1)).max() == 0.0
    further = {site: replace(own, weights=own.weights + np.float32(5e-5)) for site, own in first.attention.items()}
    assert all(change.changed for change in changes(first, replace(first, attention=further))[0].values())


def test_the_rounding_of_a_lower_precision_is_what_the_run_was_measured_to_differ() -> None:
    first = traces.translation(layers=1)
    lower = replace(first, model={**first.model, "from_float32": {"weights": 0.01}})
    assert (rounding(first, first), rounding(first, lower)) == (1e-5, 0.01)


def test_after_outputs_part_only_the_rows_before_are_compared() -> None:
    target = [*traces.ENGLISH[:5], "the", "garden", ".", "<eos>"]
    first, second = pair(target=target)
    found, refused = changes(first, second)
    assert not refused
    assert (found[SELF].rows.tolist(), found[SELF].keys) == ([0, 1, 2, 3, 4], 5)
    assert (found[CROSS].rows.tolist(), found[CROSS].keys) == ([0, 1, 2, 3, 4], 12)
    assert (found[ENCODER].rows.tolist(), found[ENCODER].keys) == (list(range(12)), 12)
    one, other = found[SELF].weights(2)
    assert other - one == pytest.approx(second.at(SELF).weights[2, :5, :5] - first.at(SELF).weights[2, :5, :5])


def test_what_was_written_is_compared_up_to_the_first_difference_and_what_was_given_place_by_place() -> None:
    target = [*traces.ENGLISH]
    target[5] = "the"
    first, second = pair(target=target)
    assert (changes(first, second)[0][SELF].rows.tolist(), changes(first, second)[0][SELF].keys) == ([0, 1, 2, 3, 4], 5)
    given = [replace(trace, request={**trace.request, "target": "…"}) for trace in (first, second)]
    assert (changes(*given)[0][SELF].rows.tolist(), changes(*given)[0][SELF].keys) == (list(range(12)), 12)


def test_sentences_of_unequal_length_are_not_subtracted() -> None:
    first, second = pair(source=traces.GERMAN[:4] + traces.GERMAN[-2:])
    found, refused = changes(first, second)
    assert {site.kind for site in found} == {"self"}
    assert {site.stack for site in found} == {"decoder"}
    assert set(refused.values()) == {"tokens"}


def test_padding_that_nobody_looks_at_is_no_obstacle() -> None:
    first = traces.translation(layers=1, heads=2)
    found, refused = changes(first, traces.padded(first, 3))
    assert not refused
    assert found[ENCODER].keys == 12
    assert float(np.nanmax(found[ENCODER].by_row)) == 0.0


def test_what_only_one_side_has_is_named() -> None:
    small, large = traces.translation(layers=1, heads=2), traces.translation(layers=2, heads=3)
    found, refused = changes(small, large)
    assert {change.heads for change in found.values()} == {2}
    assert refused == {site: "second" for site in large.attention if site.layer}
    assert set(changes(large, small)[1].values()) == {"first"}
    assert (
        changes(small, traces.language_model())[1][CROSS if CROSS in small.attention else Site("decoder", 0, 0, "cross")] == "first"
    )


def test_rows_that_hold_no_numbers_are_left_out() -> None:
    first, second = pair()
    weights = second.at(CROSS).weights.copy()
    weights[1, 4, 0] = np.nan
    second = replace(second, attention={**second.attention, CROSS: replace(second.at(CROSS), weights=weights)})
    change = changes(first, second)[0][CROSS]
    assert np.isnan(change.by_row[1]).tolist() == [row == 4 for row in range(12)]
    assert not np.isnan(change.by_row[0]).any()


def test_a_written_token_has_its_own_log_probability_and_a_given_one_none() -> None:
    trace = traces.language_model(prompt=4)
    found = written(trace, "source")
    assert [token.log_probability is None for token in found] == [True] * 4 + [False] * 9
    assert [token.text for token in found] == list(trace.tokens["source"].texts)
    assert [token.log_probability for token in found[4:]] == [step.chosen.log_probability for step in trace.steps]
    translated = traces.translation(layers=1)
    assert all(token.log_probability is None for token in written(translated, "source"))


def test_the_log_probability_belongs_to_the_position_that_the_step_wrote() -> None:
    steps = tuple(Step(i, Candidate(5, "x", -float(i)), (), (i, i + 1)) for i in range(12))
    trace = replace(traces.translation(layers=1), steps=steps)
    assert [token.log_probability for token in written(trace, "target")] == [None, *(-float(i) for i in range(12))]
