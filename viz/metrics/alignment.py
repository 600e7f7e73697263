"""Alignment of two token strips.

The alignment is the one with the fewest insertions, deletions and replacements of whole tokens, compared by their text. Where
several have as few, tokens are paired rather than left alone, from the end on.

Source: Wagner and Fischer 1974, "The String-to-String Correction Problem", algorithm X, with costs of 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Tokens

MOST_REPLACED = 0.5
"""Strips in which a larger share of the words differs have no counterparts beyond their common beginning."""


@dataclass(frozen=True)
class Pair:
    """One pair of an alignment.

    Attributes:
        first, second: positions in the two strips, counted from 0; None: no counterpart.
        same: whether both have the same text.
    """

    first: int | None
    second: int | None
    same: bool


def align(first: Sequence[str], second: Sequence[str]) -> tuple[Pair, ...]:
    """The alignment of two sequences of texts with the fewest insertions, deletions and replacements (Levenshtein)."""
    costs = _costs(first, second)
    i, j, pairs = len(first), len(second), list[Pair]()
    while i or j:
        same = bool(i and j) and first[i - 1] == second[j - 1]
        if i and j and costs[i, j] == costs[i - 1, j - 1] + (not same):
            i, j = i - 1, j - 1
            pairs.append(Pair(i, j, same))
        elif i and costs[i, j] == costs[i - 1, j] + 1:
            i -= 1
            pairs.append(Pair(i, None, False))
        else:
            j -= 1
            pairs.append(Pair(None, j, False))
    return tuple(reversed(pairs))


def _costs(first: Sequence[str], second: Sequence[str]) -> Array:
    """Fewest changes from each beginning of `first` to each of `second`: [first + 1, second + 1]."""
    texts, places = np.array([*second], object), np.arange(len(second) + 1)
    costs = np.zeros((len(first) + 1, len(second) + 1), np.int64)
    costs[0] = places
    for i, text in enumerate(first, start=1):
        row = costs[i - 1] + 1  # left alone
        row[1:] = np.minimum(row[1:], costs[i - 1, :-1] + (texts != text))  # paired
        costs[i] = np.minimum.accumulate(row - places) + places  # or some of `second` left alone
    return costs


def counterparts(first: Tokens, second: Tokens) -> int:
    """Number of leading positions at which two strips can be compared.

    All of them where the strips align without a gap and at most MOST_REPLACED of the words differ; else those of the beginning
    that the strips have in common, text by text.
    """
    pairs = align(first.texts, second.texts)
    words = [pair for pair in pairs if pair.first is None or not first.special[pair.first]]
    replaced = sum(not pair.same for pair in words)
    if all(pair.first == pair.second for pair in pairs) and replaced <= MOST_REPLACED * len(words):
        return len(pairs)
    return next((index for index, pair in enumerate(pairs) if not pair.same), len(pairs))
