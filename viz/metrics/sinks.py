"""Where the rest of a row goes: the first token's share, and the share of a learned sink, head by head.

Sources: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3; OpenAI 2025, gpt-oss: a learned
number of each head joins the scores in the softmax, and its weight weighs no value.
"""

import numpy as np

from model.trace.types import Array

SINK = 1e-3
"""Rows whose weights lack more than this have a sink; below, it is rounding."""


def first_shares(weights: Array, mask: Array, keys: range = range(1)) -> Array:
    """Mean weight on the first key over rows that may attend to at least two keys: [head]; NaN without such a row.

    Args:
        weights: [head, query, key].
        mask: [query, key] of bool.
        keys: other keys than the first, whose weights are added up.
    """
    rows = mask.sum(axis=1) > 1
    if not rows.any():
        return np.full(len(weights), np.nan)
    return np.asarray(np.asarray(weights[:, :, keys.start : keys.stop], np.float64).sum(axis=2)[:, rows].mean(axis=1))


def sink_shares(weights: Array, mask: Array) -> Array:
    """What the rows of each head lack to 1: [head, query], float64; 0 where it is rounding, and in rows without a key."""
    lack = 1 - np.asarray(weights[:], np.float64).sum(axis=-1)
    return np.where((lack > SINK) & mask.any(axis=1, keepdims=True).T, lack, 0.0)


def without_sink(weights: Array) -> Array:
    """Rows [query, key] as a softmax without the sink gives them: each divided by its sum."""
    rows = weights.astype(np.float64)
    sums = rows.sum(axis=-1, keepdims=True)
    divided: Array = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    return divided
