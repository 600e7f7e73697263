"""The reading without the first token. Pure functions of what ran, in float64.

In many language models most heads look at the first token most of the time (Xiao et al. 2023, "Efficient Streaming Language Models
with Attention Sinks", section 3), so their maps show little else. Without that key, a row of weights w is w[i, j] / Σ w[i, k] over
k ≥ 1: the rest of the row, brought to the sum 1 again. What was left out is told as a head's *share of the first token*.
"""

import numpy as np

from model.trace.types import Array, Attention

MOST = 0.5
"""Pages open without the first token where, in more than half of the heads, more than this share of the weight goes to it."""


def rest(weights: Array) -> Array:
    """Rows without their first key, each divided by its sum.

    Args:
        weights: [query, key] or [head, query, key], none negative, masked ones 0.

    Returns:
        The same shape, float64. The first column is 0, and so is a row with all its weight on the first key: it is empty.
    """
    kept = weights.astype(np.float64)
    kept[..., 0] = 0
    sums = kept.sum(axis=-1, keepdims=True)
    np.divide(kept, sums, out=kept, where=sums != 0)
    return kept


def share(weights: Array, mask: Array) -> float:
    """A head's mean weight on the first key, over rows that may attend to at least two keys and whose weights are finite.

    Args:
        weights: [query, key].
        mask: [query, key] of bool, True where a query may attend to a key.

    Returns:
        From 0 to 1; NaN without such a row.
    """
    counted = (mask.sum(axis=-1) >= 2) & np.isfinite(weights).all(axis=-1)
    return float(weights[counted, 0].astype(np.float64).mean()) if counted.any() else float("nan")


def shares(attention: Attention) -> Array:
    """`share` of each head of a site: [head]."""
    return np.array([share(attention.head(head), attention.mask) for head in range(attention.heads)])


def emptied(weights: Array, mask: Array) -> int:
    """The number of rows of [query, key] that may attend to a key and have all their weight on the first one."""
    kept = np.where(mask, weights, 0)
    return int(((kept[:, 0] > 0) & (kept[:, 1:] == 0).all(axis=-1)).sum())


def heads_at_first(known: Array) -> float:
    """The share of a run's heads that have more than MOST of their weight on the first token; 0 without a head that has a share.

    Args:
        known: `share` of all heads of the run.
    """
    finite = known[np.isfinite(known)]
    return float((finite > MOST).mean()) if len(finite) else 0.0
