"""Attention sinks: one token that gets most of a head's weight, whatever the row is about.

Rows that could choose are those that may look at two keys or more, all of whose weights are numbers.
"""

from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Attention, Trace
from viz.metrics.aggregation import lengths

SINK_SHARE = 0.5
"""A key is a sink where it holds more than this share of a head's weight."""

SMALL_VALUE = 0.5
"""A value is called small where it is shorter than this part of the mean over the keys."""


@dataclass(frozen=True)
class Sink:
    """Attention sink: a key that gets most of a head's weight.

    Attributes:
        key: counted from 0; the first key, or a special token.
        share: mean weight on it, over rows with at least two allowed keys, from 0 to 1.
        rows: number of those rows.
        value: length of its value vector, relative to the mean length; None: values were not recorded.
    """

    key: int
    share: float
    rows: int
    value: float | None = None


def rows_that_choose(attention: Attention) -> Array:
    """Rows with at least two allowed keys and finite weights: [head, query] of bool."""
    chosen = attention.mask.sum(axis=-1) >= 2
    return np.asarray(np.logical_and(np.isfinite(attention.weights).all(axis=-1), chosen))


def sink(trace: Trace, attention: Attention, head: int) -> Sink | None:
    """The sink of one head; None: neither the first nor a special key has more than SINK_SHARE of the weight.

    Args:
        trace: the run.
        attention: one of its sites; with `v`, the length of the sink's value is computed.
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    weights = attention.head(head).astype(np.float64)[rows_that_choose(attention)[head]]
    if not len(weights):
        return None
    shares = weights.mean(axis=0)  # [key]
    key = int(shares.argmax())
    special = trace.tokens[attention.key_tokens].special[key]
    if shares[key] <= SINK_SHARE or not (special or key == 0):
        return None
    return Sink(key, float(shares[key]), len(weights), None if attention.v is None else _relative(lengths(attention.v[head]), key))


def _relative(values: Array, key: int) -> float:
    mean = float(values.mean())
    return float(values[key]) / mean if mean else float("nan")
