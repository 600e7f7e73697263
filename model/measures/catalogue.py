"""The catalogue of measures: one number for each head in one run, a mean over those rows of its map for which it has a meaning.

A row counts where it has a choice: it may attend to at least two keys, and all its weights are finite. With one key, its weight
is 1 whatever the head does. A measure may ask for more: the first token has no previous one. Without such a row, the number is NaN.

Most measures are a weight on some keys, a *pattern*: row q of a head scores Σ_k w[q, k] P[q, k], where P says how much key k counts
for row q. The others are computed from rows, or from the whole map.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from model.measures.maps import Map
from model.measures.rows import entropies, mean
from model.trace.types import Array

Unit: TypeAlias = Literal["share", "nats", "tokens", "length"]

Pattern: TypeAlias = Callable[[Map], tuple[Array, Array]]
"""P [query, key], and which rows [query] of bool count."""

Formula: TypeAlias = Callable[[Array, Array], Array]
"""[head] from weights [head, query, key] in float64 and the rows that count [head, query]."""

VERSION = 3
"""Version of the formulas. A survey of another version is not added to or compared."""

OF_HEADS = ("variation", "copying")
"""Numbers of a head that are no means over texts: how much its map varies from text to text, and its copying score."""


def _distance(site: Map) -> tuple[Array, Array]:
    return np.abs(site.offset), site.choice


def _near(site: Map) -> tuple[Array, Array]:
    return np.abs(site.scaled_offset) <= site.steps, site.choice


def _backwards(site: Map) -> tuple[Array, Array]:
    return np.abs(site.scaled_offset[:, ::-1]) <= site.steps, site.choice


def _at(offset: int) -> Pattern:
    """The key `offset` after the row, in rows that may attend to it and to another one."""

    def pattern(site: Map) -> tuple[Array, Array]:
        keys = (site.scaled_offset == offset * site.steps) & site.allowed
        return keys, keys.any(axis=1) & site.choice

    return pattern


def on_keys(site: Map, keys: Array) -> tuple[Array, Array]:
    """Some keys [key] besides the row's own token, in rows that may attend to one of them and to another key."""
    counted = keys & site.elsewhere
    return counted, np.asarray((site.allowed & counted).any(axis=1) & (site.allowed & ~counted).any(axis=1))


def _number(key: int) -> Pattern:
    """The key of a number; negative ones are counted from the end."""
    return lambda site: on_keys(site, np.arange(site.allowed.shape[1]) == key % max(site.allowed.shape[1], 1))


def _equal(shift: int) -> Pattern:
    """Keys whose token (or the token before them) is the row's own, elsewhere."""

    def pattern(site: Map) -> tuple[Array, Array]:
        keys = site.equal(shift)
        return keys, keys.any(axis=1) & site.choice

    return pattern


ROUNDING = 1e-6
"""Share of a map's width by which the mean key of a row may differ by rounding: in float32 it is about a tenth of this."""


def _entropy(weights: Array, rows: Array) -> Array:
    return mean(entropies(weights), rows)


def _largest(weights: Array, rows: Array) -> Array:
    return mean(weights.max(axis=2, initial=0.0), rows)


def _coverage(weights: Array, rows: Array) -> Array:
    """How much of the source was read at all; rows that do not count read nothing."""
    read = np.minimum(np.where(rows[..., None], weights, 0.0).sum(axis=1), 1.0).mean(axis=1)
    return np.where(rows.any(axis=1), read, np.nan)


def _monotony(weights: Array, rows: Array) -> Array:
    """Share of rows whose mean key does not come before that of the row above; a step back that rounding explains is none."""
    keys = weights.shape[2]
    steps = np.diff(np.einsum("hqk,k->hq", weights, np.arange(keys, dtype=np.float64)), axis=1)
    return mean(steps >= -ROUNDING * keys, rows[:, 1:] & rows[:, :-1])


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: in tables, links, claims and files.
        formula: of a row, or of the whole map; w is a weight, q the row, k the key, n the number of rows, m of keys.
        rows: which of the rows that have a choice count.
        unit: `share` of a row's weight, from 0 to 1; `nats`; `tokens`; or `length` of a vector.
        highest: end of the last bin of its histogram; larger numbers count in it.
        of: the kinds of sites that have it: `self`, `cross`, or both; `memory` and `unknown` sites have the measures of both.
        pattern, computed: how it is computed from weights: one of the two, or neither, where weights are not enough.
    """

    name: str
    formula: str
    rows: str = "all"
    unit: Unit = "share"
    highest: float = 1.0
    of: tuple[str, ...] = ("self", "cross")
    pattern: Pattern | None = None
    computed: Formula | None = None

    def exists_in(self, kind: str) -> bool:
        """Whether sites of a kind have it."""
        return kind in self.of or kind not in ("self", "cross")


_CATALOGUE = (
    Measure("entropy", "−Σ w ln w", unit="nats", highest=8.0, computed=_entropy),
    Measure("largest", "max w", computed=_largest),
    Measure("coverage", "of a whole map: mean over keys of min(1, Σ_q w)", of=("cross",), computed=_coverage),
    Measure(
        "monotony",
        "of a whole map: share of neighboring rows whose mean key Σ k w does not step back",
        of=("cross",),
        computed=_monotony,
    ),
    Measure("distance", "Σ w · |k − p(q)|", unit="tokens", highest=64.0, pattern=_distance),
    Measure("near_diagonal", "weight where |k − p(q)| ≤ 1", pattern=_near),
    Measure(
        "antidiagonal",
        "weight where |(m − 1 − k) − p(q)| ≤ 1: near the diagonal of the keys read backwards",
        of=("cross",),
        pattern=_backwards,
    ),
    Measure("previous", "weight on k = q − 1", "those that may attend to it", of=("self",), pattern=_at(-1)),
    Measure("next", "weight on k = q + 1", "those that may attend to it", of=("self",), pattern=_at(1)),
    Measure("same", "weight on k = q", "those that may attend to it", of=("self",), pattern=_at(0)),
    Measure("first", "weight on k = 0, the row's own token excepted", "those that may attend to it", pattern=_number(0)),
    Measure("last", "weight on k = m − 1, the row's own token excepted", "those that may attend to it", pattern=_number(-1)),
    Measure(
        "special",
        "weight on tokens that stand for no text, the row's own token excepted",
        "those that may attend to such tokens and to others",
        pattern=lambda site: on_keys(site, site.special),
    ),
    Measure(
        "punctuation",
        "weight on tokens of punctuation alone, the row's own token excepted",
        "those that may attend to such tokens and to others",
        pattern=lambda site: on_keys(site, site.punctuation),
    ),
    Measure("duplicate", "weight on the same token elsewhere", "those that may attend to one", of=("self",), pattern=_equal(0)),
    Measure(
        "induction",
        "weight on tokens that follow the same token elsewhere",
        "those that may attend to one",
        of=("self",),
        pattern=_equal(1),
    ),
    Measure("norm", "length ‖Σ w v‖ of the context vector, before W_O", unit="length", highest=16.0),
    Measure(
        "alignment_error",
        "of a whole map: 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)",
        "texts whose words somebody aligned",
        of=("cross",),
    ),
)

MEASURES: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in _CATALOGUE})
"""All measures by name, in the order of a table."""


def units(names: Sequence[str]) -> list[Unit]:
    """The units of measures."""
    return [MEASURES[name].unit for name in names]
