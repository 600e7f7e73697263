"""Alignments: as few changes as a search by brute force finds, and counterparts only where they may be trusted."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces import strip
from viz.metrics.alignment import Pair, align, counterparts

words = st.lists(st.sampled_from("abc"), max_size=6)


def fewest(first: list[str], second: list[str]) -> int:
    """The Levenshtein distance by its definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + (first[i - 1] != second[j - 1]))

    return distance(len(first), len(second))


@given(words, words)
def test_an_alignment_keeps_both_orders_and_has_the_fewest_changes(first: list[str], second: list[str]) -> None:
    pairs = align(first, second)
    assert [pair.first for pair in pairs if pair.first is not None] == list(range(len(first)))
    assert [pair.second for pair in pairs if pair.second is not None] == list(range(len(second)))
    for pair in pairs:
        both = pair.first is not None and pair.second is not None
        assert pair.same == (both and first[pair.first or 0] == second[pair.second or 0])
    assert sum(not pair.same for pair in pairs) == fewest(first, second)


def test_an_inserted_word_moves_no_other() -> None:
    pairs = align("a dog plays".split(), "a big dog plays".split())
    assert pairs == (Pair(0, 0, True), Pair(None, 1, False), Pair(1, 2, True), Pair(2, 3, True))


@pytest.mark.parametrize(
    ("first", "second", "places"),
    [
        ("<sos> ein hund spielt . <eos>", "<sos> ein hund spielt . <eos>", 6),
        ("<sos> ein hund spielt . <eos>", "<sos> ein kind spielt . <eos>", 6),
        ("<sos> ein hund spielt . <eos>", "<sos> ein hund . <eos>", 3),
        ("<sos> ein hund <eos>", "<sos> ein hund spielt . <eos>", 3),
        ("<sos> ein hund <eos>", "<sos> zwei katzen <eos>", 1),
        ("<sos> ein hund <eos>", "ein hund <eos>", 0),
        ("1 2 3 4", "1 2 3 4", 4),
    ],
)
def test_tokens_stand_for_each_other_without_a_gap_or_up_to_the_first_difference(first: str, second: str, places: int) -> None:
    strips = strip("source", first.split()), strip("source", second.split())
    assert counterparts(*strips) == counterparts(*reversed(strips)) == places
