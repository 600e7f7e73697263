"""Examples of a head: the cells of many maps with certain tokens and weights, and how often chance would give them. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.features.survey.reading import HeadInText
from model.measures.words import MARKS
from model.trace.types import Array, Tokens

MOST_EXAMPLES = 200
"""Cells that are listed, those with the largest weights; all are counted."""


@dataclass(frozen=True)
class Wanted:
    """Which cells are looked for.

    Attributes:
        query, key: the word of the row and of the key, without case; empty: any. A word that was split is all of its tokens.
        query_part, key_part: their parts of speech, as the parse of the text names them; empty: any.
        least: smallest weight.
    """

    query: str = ""
    key: str = ""
    query_part: str = ""
    key_part: str = ""
    least: float = 0.0


@dataclass(frozen=True)
class Example:
    """One cell.

    Attributes:
        text: number of its text among those that were searched.
        query, key: its row and its key.
        weight: its weight.
    """

    text: int
    query: int
    key: int
    weight: float


@dataclass(frozen=True)
class Examples:
    """What was found.

    Attributes:
        examples: the cells with the largest weights, these first.
        count: cells with these tokens and at least this weight.
        of: cells with these tokens, whatever their weight.
        texts: number of texts with such a cell.
        mean: mean weight of the cells with these tokens; NaN: there are none.
        uniform_mean: what it would be if each row gave all allowed keys the same weight.
        dealt: how many cells there would be on average if each row dealt out its own weights to its allowed keys at random.
        uniform: how many there would be if each row gave all allowed keys the same weight.
    """

    examples: tuple[Example, ...]
    count: int
    of: int
    texts: int
    mean: float
    uniform_mean: float
    dealt: float
    uniform: int


def searched(texts: Sequence[HeadInText], wanted: Wanted, parts: Sequence[tuple[Sequence[str], Sequence[str]]] = ()) -> Examples:
    """The cells that are wanted. Rows with a single allowed key do not count: their weight is 1 whatever the head does.

    Args:
        texts: the head in each text.
        parts: for each text the parts of speech of its queries and of its keys, empty where none is known; (): of no text.
    """
    examples, cell_count, hits, holding = list[Example](), 0, 0, 0
    dealt, uniform, weight, even = 0.0, 0, 0.0, 0.0
    for number, read in enumerate(texts):
        named = parts[number] if parts else ((), ())
        rows = read.choice & matching(read.queries, wanted.query) & _of_part(len(read.queries), named[0], wanted.query_part)
        keys = matching(read.keys, wanted.key) & _of_part(len(read.keys), named[1], wanted.key_part)
        cells = read.allowed & rows[:, None] & keys[None, :]
        if not cells.any():
            continue
        allowed = np.broadcast_to(read.allowed.sum(axis=1, keepdims=True), cells.shape)
        large = read.allowed & (read.weights >= wanted.least)
        cell_count += int(cells.sum())
        dealt += float((cells * (large.sum(axis=1, keepdims=True) / np.maximum(allowed, 1))).sum())
        uniform += int((cells & (1 / np.maximum(allowed, 1) >= wanted.least)).sum())
        weight += float(read.weights[cells].sum(dtype=np.float64))
        even += float((1 / allowed[cells]).sum())
        places = np.argwhere(cells & large)
        hits, holding = hits + len(places), holding + bool(len(places))
        examples += [Example(number, int(row), int(key), float(read.weights[row, key])) for row, key in places]
        if len(examples) > 4 * MOST_EXAMPLES:  # sorted now and then, so that few are held
            examples = sorted(examples, key=lambda example: -example.weight)[:MOST_EXAMPLES]
    best = tuple(sorted(examples, key=lambda example: (-example.weight, example.text, example.query, example.key))[:MOST_EXAMPLES])
    means = (weight / cell_count, even / cell_count) if cell_count else (float("nan"), float("nan"))
    return Examples(best, hits, cell_count, holding, *means, dealt, uniform)


def matching(tokens: Tokens, word: str) -> Array:
    """[token] of bool: the tokens that are the word, or together make it; every one for an empty word."""
    wanted = word.strip().casefold()
    matches = np.full(len(tokens), not wanted)
    bare = [(text.strip(MARKS) or text.strip()).casefold() for text in tokens.texts] if wanted else []
    for first in range(len(bare)):
        joined, last = "", first
        while last < len(bare) and len(joined) < len(wanted) and wanted.startswith(joined):
            joined, last = joined + bare[last], last + 1
        if joined == wanted:
            matches[first:last] = True
    return matches


def _of_part(count: int, parts: Sequence[str], wanted: str) -> Array:
    """[token] of bool: the tokens of a part of speech; every one for an empty name."""
    if not wanted:
        return np.full(count, True)
    return np.array([part == wanted for part in parts], bool) if parts else np.full(count, False)
