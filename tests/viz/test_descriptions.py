"""Pictures in words: each sentence has the numbers of the trace, and every drawing carries one."""

import re
from typing import Any

import numpy as np
import pytest

from model.trace.stages import Stage
from model.trace.types import Site, Trace
from tests import traces
from tests.plain_measures import by_loop
from viz.canvas.scenes import attention as scenes
from viz.canvas.wire import overviews
from viz.canvas.wire.transport import unpack
from viz.i18n import translate
from viz.labels import alt_text, tokens

CROSS = "decoder.0.0.cross"


@pytest.fixture(scope="module")
def trace() -> Trace:
    return traces.translation(layers=1, heads=2)


def test_a_head_is_told_row_by_row_with_the_largest_weights_of_the_trace(trace: Trace) -> None:
    attention = trace.at(CROSS)
    rows, keys = tokens.queries(trace, attention, longest=None), tokens.keys(trace, attention, longest=None)
    text = alt_text.head(trace, attention, 1)
    told = re.findall(r"Row “([^”]+)”: (\d+)% on “([^”]+)”(?:, then (\d+)% on “([^”]+)”)?\.", text)
    assert [row for row, *_rest in told] == rows
    for (_row, share, key, second, following), weights in zip(told, attention.head(1), strict=True):
        first, then = np.argsort(-weights, kind="stable")[:2]
        assert (key, int(share)) == (keys[first], round(100 * float(weights[first])))
        assert not following or (following, int(second)) == (keys[then], round(100 * float(weights[then])))


def test_a_head_is_told_once_in_each_language_for_map_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Map, lines and card each put the same rows into words."""
    trace, told, rows = traces.translation(layers=1, heads=2), list[str](), alt_text._rows

    def counted(*args: Any) -> list[str]:
        told.append(translate.current())
        return rows(*args)

    monkeypatch.setattr(alt_text, "_rows", counted)
    for language in ("en", "de", "en"):
        with translate.speaking(language):
            drawn = scenes.lines(trace, Site.parse(CROSS), 1, -1), scenes.cells(trace, Stage(CROSS, "weights"), 1, -1, -1)
            (one, other) = (unpack(scene)[0]["description"] for scene in drawn)
            assert one == other
            assert one.startswith("Zeile" if language == "de" else "Row")
    assert told == ["en", "de"]
    alt_text.head(trace, trace.at(CROSS), 0)
    alt_text.head(traces.translation(layers=1, heads=2), trace.at(CROSS), 0)
    assert len(told) == 4, "of another head and another run it is told anew"


def test_a_row_reads_well() -> None:
    keys = ["hunde", "spielen", "ball"]
    assert alt_text.row("dogs", keys, np.array([0.93, 0.04, 0.03])) == "Row “dogs”: 93% on “hunde”, then 4% on “spielen”."
    assert alt_text.row("dogs", keys, np.array([0.996, 0.004, 0.0])) == "Row “dogs”: 100% on “hunde”."
    assert alt_text.row("dogs", keys, np.zeros(3)) == "Row “dogs”: no weights."


def test_a_long_head_says_how_many_rows_are_left_to_the_table() -> None:
    long = traces.translation(source=["wort"] * 40, layers=1, heads=1)
    text = alt_text.head(long, long.at("encoder.0.0.self"), 0)
    assert text.count("Row “") == alt_text.MOST_ROWS
    assert text.endswith(f"{40 - alt_text.MOST_ROWS} further rows are in the table.")


def test_the_overview_names_the_sharpest_head_of_each_layer(trace: Trace) -> None:
    text = alt_text.overview(trace)
    for site, attention in trace.attention.items():
        peaks = [by_loop("largest", trace, attention, head) for head in range(attention.heads)]
        best = int(np.argmax(peaks))
        assert f"{tokens.site(site)}: 2 heads; head {best + 1} is the sharpest" in text
        assert f"{100 * peaks[best]:.0f}% on average" in text


def test_masks_are_told_as_ranges_of_keys(trace: Trace) -> None:
    causal = trace.at("decoder.0.0.self")
    text = alt_text.mask(trace, causal, causal.mask)
    assert "Row “<sos> → two”: only “<sos>” is allowed." in text
    assert "Row “young → dogs”: allowed from “<sos>” to “young”, 3 of 12." in text
    assert alt_text.mask(trace, trace.at(CROSS), trace.at(CROSS).mask) == "Every row may attend to every key."


def test_the_stage_of_a_mask_is_told_by_what_each_row_may_attend_to(trace: Trace) -> None:
    site = "decoder.0.0.self"
    rows = tokens.queries(trace, trace.at(site), longest=None)
    keys = tokens.keys(trace, trace.at(site), longest=None)
    told = []
    for row, allowed in zip(rows, trace.at(site).mask, strict=True):
        there = [key for key, may in zip(keys, allowed, strict=True) if may]
        many = f"allowed from “{there[0]}” to “{there[-1]}”, {len(there)} of {len(keys)}."
        told.append(f"Row “{row}”: " + (many if len(there) > 1 else f"only “{there[0]}” is allowed."))
    assert len({*told}) == len(rows) > 2
    assert unpack(scenes.cells(trace, Stage(site, "mask"), 1, -1, -1))[0]["description"] == " ".join(told)
    assert unpack(scenes.cells(trace, Stage(CROSS, "mask"), 1, -1, -1))[0]["description"] == "Every row may attend to every key."


def test_a_table_says_where_its_largest_and_smallest_numbers_are() -> None:
    values = np.array([[0.0, 1.25], [-2.5, 0.5]])
    told = "2 × 2 (dimensions). Largest: 1.250 in row 1, column 2. Smallest: −2.500 in row 2, column 1."
    assert alt_text.table(values, "dimensions") == told
    assert alt_text.vectors(["a"], values[1:]) == "Row “a”: from −2.500 (dimension 1) to 0.500 (dimension 2)."


def test_changes_come_largest_first() -> None:
    apart = np.array([[0.1, -0.4], [np.nan, 0.0]])
    told = alt_text.changes(["one", "two"], ["eins", "zwei"], apart)
    assert told == "Row “one” on “zwei”: −0.400. Row “one” on “eins”: +0.100."
    assert alt_text.changes(["one"], ["eins"], np.zeros((1, 1))) == "No weight changed."


def test_films_and_bars_in_words() -> None:
    assert alt_text.film([0, 128], [8.0, 0.5]) == "2 snapshots, from step 0 (loss 8.000) to step 128 (loss 0.500)."
    assert alt_text.bars(["an", "a"], [0.61, 0.25]) == "an: 0.610; a: 0.250."


def test_the_head_that_changed_most_is_named_for_each_site(trace: Trace) -> None:
    moved = {site: np.zeros((2, 3)) for site in trace.attention}
    cross, first = Site.parse(CROSS), next(iter(trace.attention))
    moved[cross] = np.array([[0.1, np.nan, 0.0], [0.5, 0.3, np.nan]])
    moved[first] = np.full((2, 3), np.nan)
    told = alt_text.all_changes(moved)
    assert f"{tokens.site(cross)}: head 2 changed most: on average, 40% of each row’s weight moved." in told
    assert tokens.site(first) not in told
    assert told.count("no head changed") == len(trace.attention) - 2


def test_curves_are_told_by_their_ends() -> None:
    values = [np.array([8.5, 2.25, np.nan]), np.array([np.nan] * 3), np.array([np.nan, -1.0, 0.5])]
    told = alt_text.curves(["training", "nothing", "this sentence"], [[0, 1, 2000]] * 3, values)
    assert told == "training: 8.500 at step 0, 2.250 at step 1. this sentence: −1.000 at step 1, 0.500 at step 2,000."


def test_a_lens_says_since_which_layer_the_last_word_is_the_likeliest() -> None:
    words = np.array([[["a"], ["x"]], [["b"], ["y"]], [["b"], ["x"]]], object)
    shares = np.array([[[0.2], [0.3]], [[0.4], [0.5]], [[0.93], [0.61]]])
    told = alt_text.lens(["one", "two"], ["1", "2", "3"], words, shares)
    assert told == ("Row “one”: “b” 93%, the most likely since layer 2. Row “two”: “x” 61%, the most likely since layer 3.")


def test_every_drawing_of_weights_carries_its_description(trace: Trace) -> None:
    attention = trace.at(CROSS)
    told = alt_text.head(trace, attention, 1)
    assert unpack(scenes.lines(trace, attention.site, 1, -1))[0]["description"] == told
    assert unpack(scenes.player(trace, attention.site, 1, 0))[0]["description"] == told
    assert unpack(scenes.cells(trace, Stage(CROSS, "weights"), 1, -1, -1))[0]["description"] == told
    assert unpack(overviews.part(trace).data)[0]["description"] == alt_text.overview(trace)


def test_a_selected_row_is_announced_with_its_weights(trace: Trace) -> None:
    attention = trace.at(CROSS)
    announced = unpack(scenes.atlas(trace, attention.site, 1, 2))[0]["announce"]
    row = alt_text.row("young → dogs", tokens.keys(trace, attention, longest=None), attention.head(1)[2])
    assert announced == f"Cross-attention, layer 1, head 2 is selected. {row}"
