"""Each measure of a head row by row, in Python's own numbers: what tests of all pages compare with."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

from model.trace.types import Attention, Trace


class Rows:
    """One head of one site, as rows that a person would compute by hand."""

    def __init__(self, trace: Trace, attention: Attention, head: int) -> None:
        self.kind, self.weights = attention.site.kind, np.asarray(attention.weights[head], np.float64)
        self.mask, self.contexts = np.asarray(attention.mask), None if attention.context is None else attention.context[head]
        self.rows, self.keys = trace.tokens[attention.query_tokens], trace.tokens[attention.key_tokens]

    def chosen(self) -> Iterator[tuple[int, list[int]]]:
        """Rows that may attend to at least two keys and hold numbers alone, with these keys."""
        for query in range(len(self.mask)):
            keys = [key for key in range(self.mask.shape[1]) if self.mask[query, key]]
            if len(keys) >= 2 and all(map(math.isfinite, self.weights[query])):
                yield query, keys

    def place(self, query: int) -> Fraction:
        """The place on the diagonal."""
        queries, keys = self.mask.shape
        return Fraction(query * (keys - 1), max(queries - 1, 1)) if self.kind == "cross" else Fraction(query)

    def on(self, counts: Callable[[int, int], bool], meaningful: Callable[[int, list[int]], bool]) -> float:
        """The mean over rows of the weight on keys that count."""
        found = [
            sum(self.weights[query, key] for key in range(self.mask.shape[1]) if counts(query, key))
            for query, keys in self.chosen()
            if meaningful(query, keys)
        ]
        return sum(found) / len(found) if found else math.nan


def at(rows: Rows, offset: int) -> float:
    return rows.on(lambda query, key: key == query + offset, lambda query, keys: query + offset in keys)


def sort(rows: Rows, of: Callable[[int], bool]) -> float:
    def counts(query: int, key: int) -> bool:
        return of(key) and (key != query or rows.kind == "cross")

    return rows.on(counts, lambda query, keys: 0 < sum(counts(query, key) for key in keys) < len(keys))


def equal(rows: Rows, shift: int) -> float:
    def counts(query: int, key: int) -> bool:
        there = key - shift >= 0 and key - shift != query and bool(rows.mask[query, key])
        return there and rows.keys.ids[key - shift] == rows.rows.ids[query]

    return rows.on(counts, lambda query, keys: any(counts(query, key) for key in keys))


def entropy(rows: Rows) -> float:
    found = [-sum(w * math.log(w) for w in rows.weights[query] if w > 0) for query, _ in rows.chosen()]
    return float(np.mean(found))


def distance(rows: Rows) -> float:
    paths = [
        sum(w * float(abs(key - rows.place(query))) for key, w in enumerate(rows.weights[query])) for query, _ in rows.chosen()
    ]
    return float(np.mean(paths))


def norm(rows: Rows) -> float:
    assert rows.contexts is not None
    return float(np.mean([math.hypot(*map(float, rows.contexts[query])) for query, _ in rows.chosen()]))


def monotony(rows: Rows) -> float:
    means = [sum(key * w for key, w in enumerate(row)) for row in rows.weights]
    return float(np.mean([b >= a for a, b in pairwise(means)]))


PLAIN: dict[str, Callable[[Rows], float]] = {
    "entropy": entropy,
    "largest": lambda rows: float(np.mean([max(rows.weights[query]) for query, _ in rows.chosen()])),
    "coverage": lambda rows: float(np.mean([min(1.0, sum(column)) for column in rows.weights.T])),
    "monotony": monotony,
    "distance": distance,
    "antidiagonal": lambda rows: rows.on(
        lambda query, key: abs(rows.mask.shape[1] - 1 - key - rows.place(query)) <= 1, lambda query, keys: True
    ),
    "near_diagonal": lambda rows: rows.on(lambda query, key: abs(key - rows.place(query)) <= 1, lambda query, keys: True),
    "previous": lambda rows: at(rows, -1),
    "next": lambda rows: at(rows, 1),
    "same": lambda rows: at(rows, 0),
    "first": lambda rows: rows.on(
        lambda query, key: key == 0, lambda query, keys: 0 in keys and (query > 0 or rows.kind == "cross")
    ),
    "last": lambda rows: rows.on(
        lambda query, key: key == rows.mask.shape[1] - 1,
        lambda query, keys: rows.mask.shape[1] - 1 in keys and (query < rows.mask.shape[1] - 1 or rows.kind == "cross"),
    ),
    "special": lambda rows: sort(rows, lambda key: rows.keys.special[key]),
    "punctuation": lambda rows: sort(rows, lambda key: rows.keys.texts[key] in (",", ".")),
    "duplicate": lambda rows: equal(rows, 0),
    "induction": lambda rows: equal(rows, 1),
    "norm": norm,
}
"""By name of the measure; an error of alignment needs somebody's alignment."""


def by_loop(name: str, trace: Trace, attention: Attention, head: int) -> float:
    """A measure of one head; NaN where no row counts."""
    rows = Rows(trace, attention, head)
    return PLAIN[name](rows) if any(True for _ in rows.chosen()) else math.nan
