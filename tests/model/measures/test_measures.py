"""Each measure against a plain computation, row by row, in Python's own numbers."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from model.measures.catalogue import MEASURES
from model.measures.maps import is_punctuation
from model.measures.of_run import measured, of_site, weight_on
from model.measures.rows import divergence, entropies, moved, overlap
from model.measures.word_alignment import read_links
from model.measures.words import words_of
from model.trace.types import Array, Attention, Trace
from tests.plain_measures import PLAIN, Rows, by_loop
from tests.traces import translation

SOURCE = "<sos> der mann , der den mann sieht , lacht . <eos>".split()
TARGET = "<sos> the man who sees the man , laughs . <eos>".split()


def with_equal_ids(trace: Trace) -> Trace:
    """Equal words have equal ids."""
    ids = {text: number for number, text in enumerate(dict.fromkeys((*SOURCE, *TARGET)))}
    return replace(
        trace, tokens={name: replace(own, ids=tuple(ids[text] for text in own.texts)) for name, own in trace.tokens.items()}
    )


def with_contexts(trace: Trace) -> Trace:
    """Every head has context vectors of 5 dimensions."""
    chance = np.random.default_rng(2)
    return replace(
        trace,
        attention={
            site: replace(own, context=chance.normal(size=(*own.weights.shape[:2], 5)).astype(np.float32))
            for site, own in trace.attention.items()
        },
    )


TRACE = with_contexts(with_equal_ids(translation(SOURCE, TARGET, layers=2, heads=3, seed=5)))
GOLD = read_links("der mann , der den mann sieht, lacht.", "the man who sees the man , laughs.", "0-0 1-1 3-2 6-3 4p4 5-5 7-7 2p6")


def error_rate(rows: Rows) -> float:
    """By hand: the word of each token; of each target word the source word with most weight, over all its rows."""
    source = [None, 0, 1, 2, 3, 4, 5, 6, 6, 7, 7, None]
    target = [None, 0, 1, 2, 3, 4, 5, 6, 7, 7, None]
    links = set()
    for word in range(8):
        best, most = -1, -1.0
        generating = [token - 1 for token in range(len(target)) if target[token] == word]
        for other in range(8):
            weight = 0.0
            for row in generating:
                weight += sum(rows.weights[row, key] for key in range(len(source)) if source[key] == other) / len(generating)
            if weight > most:
                best, most = other, weight
        links.add((best, word))
    sure = {(0, 0), (1, 1), (3, 2), (6, 3), (5, 5), (7, 7)}
    return 1 - (len(links & sure) + len(links & (sure | {(4, 4), (2, 6)}))) / (len(links) + len(sure))


def test_every_measure_has_a_plain_computation() -> None:
    assert {*PLAIN, "alignment_error"} == set(MEASURES)


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_is_what_a_plain_computation_gives(name: str) -> None:
    found, column, row = measured(TRACE, gold=GOLD), list(MEASURES).index(name), 0
    for own in TRACE.attention.values():
        for head in range(own.heads):
            if own.site.kind in MEASURES[name].of:
                plain = error_rate(Rows(TRACE, own, head)) if name == "alignment_error" else by_loop(name, TRACE, own, head)
                assert found[row, column] == pytest.approx(plain, abs=1e-6, nan_ok=True), own.site
            else:
                assert np.isnan(found[row, column])
            row += 1
    assert row == len(found)
    assert np.isfinite(found[:, column]).any()


def test_a_row_with_a_single_key_counts_for_no_measure() -> None:
    """The first row of a causal map has weight 1 on itself, whatever the head does."""
    own = next(own for site, own in TRACE.attention.items() if str(site) == "decoder.0.0.self")
    changed = np.array(own.weights)
    changed[:, 0, 0] = 0.25  # no softmax could give it: nothing may look at it
    other = replace(TRACE, attention={**TRACE.attention, own.site: replace(own, weights=changed)})
    columns = [list(MEASURES).index(name) for name in ("entropy", "largest", "same", "distance", "first", "special")]
    assert np.array_equal(measured(TRACE)[:, columns], measured(other)[:, columns], equal_nan=True)


def test_a_row_with_a_weight_that_is_not_finite_counts_for_no_measure_of_its_head_alone() -> None:
    attention = next(iter(TRACE.attention.values()))
    names = [name for name in MEASURES if name != "norm" and "self" in MEASURES[name].of]
    weights, mask = np.array(attention.weights), np.array(np.broadcast_to(attention.mask, attention.weights.shape[1:]))
    weights[1, 4, 2] = np.nan
    damaged = of_site(TRACE, replace(attention, weights=weights), names)
    mask[4] = False  # the same row, left out because nothing is allowed
    without, whole = of_site(TRACE, replace(attention, mask=mask), names), of_site(TRACE, attention, names)
    assert damaged[1] == pytest.approx(without[1], nan_ok=True)
    assert np.array_equal(damaged[[0, 2]], whole[[0, 2]], equal_nan=True)
    assert not np.allclose(damaged[1], whole[1], equal_nan=True)


def crossed(queries: int, keys: int, weights: Array) -> tuple[Trace, Attention]:
    """A run whose only site is a cross-attention with these weights of one head."""
    trace = translation(["w"] * keys, ["v"] * (queries + 1), layers=1, heads=1)
    attention = next(own for own in trace.attention.values() if own.site.kind == "cross")
    attention = replace(attention, weights=weights[None], mask=np.ones((queries, keys), bool))
    return replace(trace, attention={attention.site: attention}), attention


def test_a_key_at_a_distance_of_exactly_one_is_near_the_diagonal_in_every_shape() -> None:
    """In whole numbers: |k (n - 1) - q (m - 1)| ≤ n - 1. Divided first, one shape in thirty loses a key to rounding."""
    for queries, keys in product(range(2, 40, 3), range(2, 40)):
        weights = np.full((queries, keys), 1 / keys, np.float32)
        trace, attention = crossed(queries, keys, weights)
        near = [
            sum(abs(Fraction(query * (keys - 1), queries - 1) - key) <= 1 for key in range(keys)) / keys for query in range(queries)
        ]
        values = of_site(trace, attention, ("near_diagonal", "antidiagonal"))[0]
        assert values == pytest.approx([np.mean(near)] * 2, abs=1e-6), (queries, keys)


def test_rounding_is_no_step_back() -> None:
    """Equal rows whose weights were rounded in other ways, and one true step back."""
    chance = np.random.default_rng(3)
    weights = np.repeat(chance.dirichlet(np.ones(50))[None], 9, axis=0)
    rounded = (weights * (1 + chance.uniform(-6e-8, 6e-8, weights.shape))).astype(np.float32)
    trace, attention = crossed(9, 50, rounded)
    assert of_site(trace, attention, ("monotony",))[0, 0] == 1
    rounded[5] = np.roll(rounded[5], -1)
    assert of_site(trace, replace(attention, weights=rounded[None]), ("monotony",))[0, 0] == 7 / 8


def test_the_weight_on_the_first_key_is_the_measure_first_and_keys_can_be_added_up() -> None:
    for attention in TRACE.attention.values():
        assert weight_on(TRACE, attention, [0]) == pytest.approx(of_site(TRACE, attention, ("first",))[:, 0], nan_ok=True)
        rows = [Rows(TRACE, attention, head) for head in range(attention.heads)]
        plain = [
            each.on(
                lambda query, key, kind=each.kind: key in (0, 3) and (key != query or kind == "cross"),  # type: ignore[misc]
                lambda query, keys, kind=each.kind: (  # type: ignore[misc]
                    0 < sum(key in (0, 3) and (key != query or kind == "cross") for key in keys) < len(keys)
                ),
            )
            for each in rows
        ]
        assert weight_on(TRACE, attention, [0, 3]) == pytest.approx(plain, abs=1e-6, nan_ok=True)


def test_numbers_of_rows_are_those_of_a_loop() -> None:
    one, other = (np.random.default_rng(seed).dirichlet(np.ones(6), size=4).astype(np.float32) for seed in (1, 2))
    for row in range(4):
        p, q = [float(w) for w in one[row]], [float(w) for w in other[row]]
        middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
        h = [-sum(w * math.log2(w) for w in weights) for weights in (p, q, middle)]
        assert entropies(one)[row] == pytest.approx(h[0] * math.log(2))
        assert divergence(one, other)[row] == pytest.approx(h[2] - (h[0] + h[1]) / 2)
        assert overlap(one, other)[row] == pytest.approx(sum(map(min, p, q)))
        assert moved(one, other, 0)[row] == pytest.approx(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert moved(one, one + 1e-7, 1e-5).tolist() == [0] * 4
    assert entropies(np.array([[1.0, 0.0], [np.nan, 0.5]])).tolist()[0] == 0
    assert np.isnan(entropies(np.array([[np.nan, 0.5]]))[0])


def test_weights_in_random_order_stay_on_keys_that_are_allowed() -> None:
    """A row keeps its numbers: entropy and largest weight are the same, and what looks at places tends to that of equal weights."""
    names, found = list(MEASURES), np.mean([measured(TRACE, seed) for seed in range(400)], axis=0)
    for name in ("entropy", "largest"):
        assert found[:, names.index(name)] == pytest.approx(measured(TRACE)[:, names.index(name)], abs=1e-6)
    even = replace(
        TRACE,
        attention={
            site: replace(own, weights=np.repeat((own.mask / own.mask.sum(1, keepdims=True))[None], own.heads, 0))
            for site, own in TRACE.attention.items()
        },
    )
    for name in ("previous", "first", "special", "punctuation", "duplicate", "induction", "near_diagonal", "antidiagonal"):
        column = names.index(name)
        assert found[:, column] == pytest.approx(measured(even)[:, column], abs=0.06, nan_ok=True), name


@pytest.mark.parametrize(
    ("text", "expected"),
    [(",", True), ("▁.", True), ("##-", True), ("…", True), ("a.", False), ("<eos>", False), ("", False), ("▁", False)],
)
def test_punctuation_is_told_from_words(text: str, expected: bool) -> None:
    assert is_punctuation(text) is expected


def test_a_norm_has_no_meaning_in_random_order_and_an_error_rate_needs_an_alignment() -> None:
    columns = [list(MEASURES).index(name) for name in ("norm", "alignment_error")]
    assert np.isnan(measured(TRACE, 0, GOLD)[:, columns[0]]).all()
    assert np.isfinite(measured(TRACE, 0, GOLD)[:, columns[1]]).any()
    assert np.isnan(measured(TRACE)[:, columns[1]]).all()


@pytest.mark.parametrize("links", ["0-9", "9-0", "0:0", "0-", "a-b", "0-0 1_1"])
def test_a_link_to_no_word_is_refused(links: str) -> None:
    with pytest.raises(ValueError, match=links.split()[-1]):
        read_links("der mann", "the man", links)


def test_tokens_are_matched_with_words_letter_by_letter() -> None:
    keys = TRACE.tokens["source"]
    found = words_of(keys, "Der Mann , der den Mann sieht, lacht.".split())
    assert found is not None
    assert found.tolist() == [-1, 0, 1, 2, 3, 4, 5, 6, 6, 7, 7, -1]
    pieces = replace(keys, texts=("<sos>", "der", "ma", "##nn", *keys.texts[3:11]))
    assert words_of(pieces, "der mann , der den mann sieht ,".split()) is None, "the last word is missing"
    assert words_of(keys, "die mann , der den mann sieht , lacht .".split()) is None


def test_the_documentation_has_every_measure_as_the_catalogue_defines_it() -> None:
    page = (Path(__file__).parents[3] / "docs" / "survey.md").read_text(encoding="utf-8")
    kinds = {("self", "cross"): "all", ("self",): "self-attention", ("cross",): "cross-attention"}
    for measure in MEASURES.values():
        formula = measure.formula.replace("|", "\\|")
        assert f"| `{measure.name}` | {formula} | {measure.rows} | {kinds[measure.of]} | {measure.unit} |" in page
