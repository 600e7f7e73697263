"""Measures that are a weight on some keys.

Row q of a head scores Σ_k w[q, k] P[q, k], where P says how much key k counts for row q.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from model.measures.maps import Map
from model.trace.types import Array

Pattern: TypeAlias = Callable[[Map], tuple[Array, Array]]
"""P [query, key], and which rows [query] of bool count."""


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


PATTERNS: Mapping[str, Pattern] = MappingProxyType(
    {
        "distance": _distance,
        "near_diagonal": _near,
        "antidiagonal": _backwards,
        "previous": _at(-1),
        "next": _at(1),
        "same": _at(0),
        "first": _number(0),
        "last": _number(-1),
        "special": lambda site: on_keys(site, site.special),
        "punctuation": lambda site: on_keys(site, site.punctuation),
        "duplicate": _equal(0),
        "induction": _equal(1),
    }
)
"""The patterns by the name of their measure."""


@dataclass(frozen=True, eq=False)
class Cells:
    """A pattern on one map, as the few cells that it looks at.

    Attributes:
        indices: [cell], their places in the map read row by row.
        factors: [cell], how much the weight of each counts.
        rows: [query] of bool, the rows that count.
    """

    indices: Array
    factors: Array
    rows: Array

    def mean(self, weights: Array, finite: Array) -> Array:
        """[head], the mean over rows that count and are finite [head, query]; weights [head, query, key] are 0 in the others."""
        sums = weights.reshape(len(weights), -1)[:, self.indices] @ self.factors
        counts = (finite & self.rows).sum(axis=1)
        return np.asarray(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))


def cells(site: Map, pattern: Pattern) -> Cells:
    """The cells of a pattern on a map, made once."""
    if pattern not in site.made:
        keys, rows = pattern(site)
        indices = np.flatnonzero((keys != 0) & site.allowed & rows[:, None])
        site.made[pattern] = Cells(indices, keys.ravel()[indices].astype(np.float64), rows)
    made: Cells = site.made[pattern]
    return made
