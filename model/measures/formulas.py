"""Measures that are no weight on certain keys: of rows, and of whole maps."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from model.measures.rows import entropies, mean
from model.trace.types import Array

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
    """A step back by rounding alone is none."""
    keys = weights.shape[2]
    steps = np.diff(weights @ np.arange(keys, dtype=np.float64), axis=1)
    return mean(steps >= -ROUNDING * keys, rows[:, 1:] & rows[:, :-1])


FORMULAS: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {"entropy": _entropy, "largest": _largest, "coverage": _coverage, "monotony": _monotony}
)
"""[head] from weights [head, query, key] in float64 and the rows that count [head, query], by the name of the measure."""
