"""Numbers of single rows of weights, of one map or of two, and their means over the rows that count. All in float64."""

import numpy as np

from model.trace.types import Array, Attention


def choosing(attention: Attention) -> Array:
    """[head, query], whether a row counts: it may attend to at least two keys, and all its weights are finite."""
    return np.asarray(np.isfinite(attention.weights).all(axis=-1) & (attention.mask.sum(axis=-1) >= 2))


def mean(by_row: Array, rows: Array) -> Array:
    """[head], the mean of [head, query] over the rows that count; NaN where there is none."""
    counts = rows.sum(axis=-1)
    sums = np.where(rows, by_row, 0.0).sum(axis=-1, dtype=np.float64)
    return np.asarray(np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0))


def entropies(weights: Array) -> Array:
    """Entropy of each row, -Σ w ln w over the last axis, in nats: 0 for one key, ln m for m equal weights.

    NaN if a weight is not finite.
    """
    shares = np.asarray(weights, np.float64)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=-1) + 0.0)  # + 0.0, so that a row on one key reads 0 and not -0


def overlap(weights: Array, others: Array) -> Array:
    """What two rows have in common, Σ min(w, w') over the last axis: from 0 to 1."""
    return np.asarray(np.minimum(np.asarray(weights, np.float64), others).sum(axis=-1))


def moved(weights: Array, others: Array, rounding: float) -> Array:
    """Share of a row's weight that is on other keys, ½ Σ |w' - w| over the last axis: the total variation distance, from 0 to 1.

    Args:
        rounding: a row in which no weight differs by more is the same row.
    """
    differences = np.abs(np.asarray(others, np.float64) - weights)
    changed = differences.max(axis=-1, initial=0.0) > rounding
    return np.where(changed, differences.sum(axis=-1) / 2, 0.0)


def divergence(weights: Array, others: Array) -> Array:
    """Jensen-Shannon divergence of two rows in bits, H(½ (p + q)) - ½ H(p) - ½ H(q) over the last axis: from 0 (the same) to 1.

    Source: Lin 1991, "Divergence Measures Based on the Shannon Entropy", equation 4.1.
    """
    middle = (np.asarray(weights, np.float64) + others) / 2
    return _divergence(entropies(middle), entropies(weights), entropies(others))


def divergences(weights: Array) -> Array:
    """[head, head], the divergence of each two heads, the mean over their rows: weights [head, query, key]."""
    heads, alone = np.asarray(weights, np.float64), entropies(weights)
    means = np.zeros((len(heads), len(heads)))
    for head in range(len(heads)):
        middle = entropies((heads[head:] + heads[head]) / 2)
        means[head, head:] = _divergence(middle, alone[head:], alone[head]).mean(axis=1)
        means[head:, head] = means[head, head:]
    return means


def _divergence(middle: Array, first: Array, second: Array) -> Array:
    """In bits, of the entropies of the mean of two rows and of each of them."""
    return np.asarray(np.maximum((middle - (first + second) / 2) / np.log(2), 0.0))
