"""Measures: one number for each head in one run, the mean over those rows of its map for which the measure has a meaning.

Most measures are a weight on some keys: row q of a head scores Σ_k w[q, k] P[q, k], where P says how much key k counts for row q.
These are *patterns*; all patterns of a map are one matrix product. The others are formulas of the whole map. docs/survey.md derives
each and says what it leaves out.

Rows that have no meaning for a measure do not count: the first token has no previous one. Where no row counts, the number is NaN.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from model.survey.alignment import Gold, error_rate
from model.survey.words import MARKS
from model.trace.types import Array, Attention, Trace

Unit: TypeAlias = Literal["share", "nats", "tokens", "length"]

VERSION = 2
"""Version of the formulas. A survey of another version is not added to or compared."""


OF_HEADS = ("change", "copying")
"""Numbers of a head that are no means over texts: how much its map changes from text to text, and its copying score."""


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: as in a table of a survey.
        unit: `share` of a row's weight, from 0 to 1; `nats`; `tokens`; or `length` of a vector.
        highest: end of the last bin of its histogram; larger numbers count in it.
        of: the kinds of sites that have it: `self`, `cross`, or both; `memory` and `unknown` sites have the measures of both.
    """

    name: str
    unit: Unit
    highest: float = 1.0
    of: tuple[str, ...] = ("self", "cross")


@dataclass(frozen=True, eq=False)
class Map:
    """What the measures of one site need besides its weights.

    Attributes:
        kind: of the site.
        allowed: [query, key] of bool.
        queries, keys: ids of the tokens of its rows and columns; empty where they have none.
        special, punctuation: [key] of bool: tokens that stand for no text; tokens of punctuation alone.
    """

    kind: str
    allowed: Array
    queries: Array
    keys: Array
    special: Array
    punctuation: Array

    @cached_property
    def choice(self) -> Array:
        """[query], whether a row may attend to at least two keys: with one, its weights could not be others."""
        return np.asarray(self.allowed.sum(axis=1) >= 2)

    @cached_property
    def offset(self) -> Array:
        """[query, key], key minus query in tokens. In cross-attention the diagonal leads from the first pair to the last."""
        queries, keys = self.allowed.shape
        rows = np.arange(queries, dtype=np.float64)
        if self.kind == "cross" and queries > 1:
            rows *= (keys - 1) / (queries - 1)
        return np.asarray(np.arange(keys)[None, :] - rows[:, None])

    def equal(self, shift: int = 0) -> Array:
        """[query, key], whether the token `shift` before the key is the token of the row, at another position than the row."""
        queries, keys = self.allowed.shape
        found = np.zeros((queries, keys), bool)
        if len(self.queries) and len(self.keys):
            found[:, shift:] = self.queries[:, None] == self.keys[None, : keys - shift]
            places = np.arange(keys) - shift
            found &= places[None, :] != np.arange(queries)[:, None]
        return found & self.allowed

    @cached_property
    def patterns(self) -> tuple[list[int], Array, Array]:
        """The patterns that such a site has: their columns among MEASURES; P [measure, query and key], each row times its share in
        the mean over the rows that count; and whether no row counts [measure].
        """
        there = {measure: pattern(self) for measure, pattern in PATTERNS.items() if self.has(measure)}
        rows = np.array([counts / max(counts.sum(), 1) for _, counts in there.values()])  # [measure, query]
        shares = np.array([pattern for pattern, _ in there.values()], np.float64) * rows[:, :, None]
        names = list(MEASURES)
        return [names.index(measure.name) for measure in there], shares.reshape(len(there), -1), np.asarray(~rows.any(axis=1))

    def has(self, measure: Measure) -> bool:
        """Whether a measure is one of such a site."""
        return self.kind in measure.of or self.kind not in ("self", "cross")


Pattern: TypeAlias = Callable[[Map], tuple[Array, Array]]
"""P [query, key] of a pattern, and the rows [query] of bool that count."""


def _at(offset: int) -> Pattern:
    """The key `offset` after the row, where the row may attend to it and to another one."""

    def pattern(own: Map) -> tuple[Array, Array]:
        there = (own.offset == offset) & own.allowed
        return there, there.any(axis=1) & own.choice

    return pattern


def _first(own: Map) -> tuple[Array, Array]:
    there = np.zeros_like(own.allowed)
    there[:, 0] = True
    rows = own.choice & own.allowed[:, 0]
    return there, np.asarray(rows if own.kind == "cross" else rows & (np.arange(len(rows)) > 0))


def _last(own: Map) -> tuple[Array, Array]:
    """The last token of the text, in rows before it: in a causal map no row before it may see it."""
    there = np.zeros_like(own.allowed)
    there[:, -1] = True
    rows = own.choice & own.allowed[:, -1]
    before = np.arange(len(rows)) < own.allowed.shape[1] - 1
    return there, np.asarray(rows if own.kind == "cross" else rows & before)


def _among(which: str) -> Pattern:
    """Keys of one sort besides the row itself, in rows that may attend to such keys and to others."""

    def pattern(own: Map) -> tuple[Array, Array]:
        there = getattr(own, which) & ((own.offset != 0) | (own.kind == "cross"))
        return there, np.asarray((own.allowed & there).any(axis=1) & (own.allowed & ~there).any(axis=1))

    return pattern


def _equal(shift: int) -> Pattern:
    """Keys whose token (or the token before them) is the row's own, elsewhere."""

    def pattern(own: Map) -> tuple[Array, Array]:
        there = own.equal(shift)
        return there, there.any(axis=1) & own.choice

    return pattern


def _near(own: Map) -> tuple[Array, Array]:
    return np.abs(own.offset) <= 1, own.choice


def _backwards(own: Map) -> tuple[Array, Array]:
    """Near the diagonal of the keys read backwards."""
    return np.abs(own.offset[:, ::-1]) <= 1, own.choice


def _distance(own: Map) -> tuple[Array, Array]:
    return np.abs(own.offset), own.choice


PATTERNS: Mapping[Measure, Pattern] = MappingProxyType(
    {
        Measure("distance", "tokens", 64.0): _distance,
        Measure("near_diagonal", "share"): _near,
        Measure("antidiagonal", "share", of=("cross",)): _backwards,
        Measure("previous", "share", of=("self",)): _at(-1),
        Measure("next", "share", of=("self",)): _at(1),
        Measure("same", "share", of=("self",)): _at(0),
        Measure("first", "share"): _first,
        Measure("last", "share"): _last,
        Measure("special", "share"): _among("special"),
        Measure("punctuation", "share"): _among("punctuation"),
        Measure("duplicate", "share", of=("self",)): _equal(0),
        Measure("induction", "share", of=("self",)): _equal(1),
    }
)
"""The measures that are a weight on some keys."""


def entropy(weights: Array, own: Map) -> Array:
    """[head], the mean of -Σ w ln w over rows with a choice, in nats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.where(weights > 0, -weights * np.log(weights), 0.0)
    return _mean(parts.sum(axis=2, dtype=np.float64), own.choice)


def largest(weights: Array, own: Map) -> Array:
    """[head], the mean of a row's largest weight over rows with a choice."""
    return _mean(weights.max(axis=2).astype(np.float64), own.choice)


def coverage(weights: Array, own: Map) -> Array:
    """[head], the mean over keys of min(1, Σ_q w[q, k]): how much of the source was read at all."""
    return np.asarray(np.minimum(weights.sum(axis=1, dtype=np.float64), 1.0).mean(axis=1))


def monotony(weights: Array, own: Map) -> Array:
    """[head], the share of neighboring rows whose mean key Σ_k k w[q, k] does not step back."""
    if len(own.allowed) < 2:
        return np.full(len(weights), np.nan)
    places = weights @ np.arange(weights.shape[2], dtype=np.float64)
    return np.asarray((np.diff(places, axis=1) >= 0).mean(axis=1))


FORMULAS: Mapping[Measure, Callable[[Array, Map], Array]] = MappingProxyType(
    {
        Measure("entropy", "nats", 8.0): entropy,
        Measure("largest", "share"): largest,
        Measure("coverage", "share", of=("cross",)): coverage,
        Measure("monotony", "share", of=("cross",)): monotony,
    }
)
"""The measures of whole maps: of weights [head, query, key]."""

NORM, ERROR_RATE = Measure("norm", "length", 16.0), Measure("alignment_error", "share", of=("cross",))
"""Measures that need more than a map: the head's context vectors, and an alignment that somebody typed."""

MEASURES: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in (*FORMULAS, *PATTERNS, NORM, ERROR_RATE)})
"""All measures by name, in the order of a table."""


def measured(trace: Trace, shuffled: int | None = None, gold: Gold | None = None) -> Array:
    """[head, measure], the measures of all heads of a run, in the order in which they ran; NaN where one has no meaning.

    Args:
        gold: the alignment of the text's words, for `alignment_error`; None: nobody typed one.
        shuffled: the seed of a random order of the keys that each row may attend to, in which its weights are dealt out again: what
            is left of a measure does not come from where the weights were. None: they stay where they are.
    """
    chance = None if shuffled is None else np.random.default_rng(shuffled)
    found, names = [], list(MEASURES)
    maps: dict[object, Map] = {}  # layers of one stack mostly share theirs, and what is made of it
    for own in trace.attention.values():
        key = own.site.kind, own.query_tokens, own.key_tokens, own.mask.shape, own.mask.tobytes()
        order = None if chance is None else _dealt(np.broadcast_to(own.mask, own.weights.shape[1:]), chance)
        found.append(_of_site(own, maps.get(key) or maps.setdefault(key, map_of(own, trace)), order))
        if own.context is not None and order is None:  # in another order the weights are not those that made the vectors
            found[-1][:, names.index(NORM.name)] = np.linalg.norm(own.context.astype(np.float64), axis=2).mean(axis=1)
        if gold is not None and own.site.kind in ERROR_RATE.of:
            weights = np.asarray(own.weights) if order is None else np.take_along_axis(np.asarray(own.weights), order[None], axis=2)
            strips = trace.tokens[own.query_tokens], trace.tokens[own.key_tokens]
            found[-1][:, names.index(ERROR_RATE.name)] = error_rate(weights, *strips, gold)
    return np.concatenate(found)


def _of_site(attention: Attention, own: Map, order: Array | None) -> Array:
    """[head, measure] of one site, its weights in another order if there is one. A long map is computed one head at a time."""
    found, names = np.full((attention.heads, len(MEASURES)), np.nan), list(MEASURES)
    columns, shares, none = own.patterns
    whole = isinstance(attention.weights, np.ndarray)
    for heads in [slice(0, attention.heads)] if whole else [slice(head, head + 1) for head in range(attention.heads)]:
        weights = np.asarray(attention.weights[heads])
        weights = weights if order is None else np.take_along_axis(weights, order[None], axis=2)
        sums = weights.reshape(len(weights), -1) @ shares.T.astype(weights.dtype)
        found[heads, columns] = np.where(none, np.nan, sums)
        for measure, formula in FORMULAS.items():
            if own.has(measure):
                found[heads, names.index(measure.name)] = formula(weights, own)
    return found


def _dealt(allowed: Array, chance: np.random.Generator) -> Array:
    """[query, key], for each place the key whose weight it gets: a random order of the keys that a row may attend to."""
    places = np.argsort(~allowed, axis=1, kind="stable")  # those that are allowed come first
    drawn = np.argsort(np.where(allowed, chance.random(allowed.shape), 2.0 + np.arange(allowed.shape[1])), axis=1)
    drawn = np.where(np.arange(allowed.shape[1]) < allowed.sum(axis=1, keepdims=True), drawn, places)
    order = np.empty_like(places)
    np.put_along_axis(order, places, drawn, axis=1)
    return order


def map_of(attention: Attention, trace: Trace) -> Map:
    """What the measures need of one site of a run."""
    queries, keys = attention.mask.shape
    rows, columns = trace.tokens[attention.query_tokens], trace.tokens[attention.key_tokens]
    special = np.array(columns.special[:keys], bool)
    punctuation = np.array([is_punctuation(text) for text in columns.texts[:keys]], bool) & ~special
    allowed = np.broadcast_to(np.asarray(attention.mask, bool), (queries, keys))
    return Map(attention.site.kind, allowed, np.array(rows.ids[:queries]), np.array(columns.ids[:keys]), special, punctuation)


@lru_cache(maxsize=4096)
def is_punctuation(text: str) -> bool:
    """Whether a token is punctuation alone, besides the signs of its tokenizer."""
    bare = text.strip(MARKS) or text.strip()
    return bool(bare) and all(unicodedata.category(sign).startswith("P") for sign in bare)


def _mean(values: Array, rows: Array) -> Array:
    """[head], the mean of [head, query] over some rows."""
    return np.asarray(values[:, rows].mean(axis=1)) if rows.any() else np.full(len(values), np.nan)


def units(names: Sequence[str]) -> list[Unit]:
    """The units of measures."""
    return [MEASURES[name].unit for name in names]
