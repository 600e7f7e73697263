"""Readings of one site that have a number for each query and key, or for each query. Pure functions of what ran, in float64.

Notation: w[h, i, j] is the weight of head h, query i, key j.
"""

from dataclasses import dataclass

import numpy as np

from model.trace.types import Array


def mean_over_heads(weights: Array) -> Array:
    """Mean over heads: 1/H Σh w[h, i, j].

    Args:
        weights: [head, query, key].

    Returns:
        [query, key]; a row sums to 1 if it does in every head.
    """
    mean: Array = weights.astype(np.float64).mean(axis=0)
    return mean


def max_over_heads(weights: Array) -> Array:
    """Maximum over heads, maxh w[h, i, j]: [head, query, key] -> [query, key]. NaN in one head gives NaN."""
    return np.asarray(weights.astype(np.float64).max(axis=0))


def value_weighted(weights: Array, values: Array, projection: Array | None = None) -> Array:
    """Euclidean norm ‖w[i, j] · v[j] W_O‖: length of the vector that the head moves from key j to query i.

    Args:
        weights: [query, key] of one head.
        values: [key, head_dim], that head's value vectors, biases included.
        projection: [model, head_dim], the head's columns of the output projection's matrix; None: ‖w[i, j] · v[j]‖.

    Returns:
        [query, key].

    Source: Kobayashi et al. 2020, "Attention is Not Only a Weight", section 3: ‖α f(x)‖, where f(x) = (x W_V + b_V) W_O.
    """
    return np.abs(weights.astype(np.float64)) * lengths(values, projection)[None, :]


def lengths(values: Array, projection: Array | None = None) -> Array:
    """Norms ‖v[j] W_O‖, or ‖v[j]‖ without a projection: [key, head_dim] -> [key]."""
    moved = values.astype(np.float64)
    if projection is not None:
        moved = moved @ projection.astype(np.float64).T
    return np.asarray(np.linalg.norm(moved, axis=-1))


def relative_lengths(values: Array) -> Array:
    """Norms ‖v[j]‖ divided by their mean: [key, head_dim] -> [key]; NaN where all are 0."""
    norms = lengths(values)
    return np.asarray(np.divide(norms, norms.mean(), out=np.full(norms.shape, np.nan), where=norms.mean() > 0))


def without_first(weights: Array) -> Array:
    """Rows without their first key, each divided by its sum: w[i, j] / Σ w[i, k] over k ≥ 1.

    In many language models most heads look at the first token most of the time, so their maps show little else.

    Args:
        weights: [query, key] or [head, query, key], none negative, masked ones 0.

    Returns:
        The same shape, float64. The first column is 0, and so is a row with all its weight on the first key: it is empty.

    Source: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.
    """
    kept = weights.astype(np.float64)
    kept[..., 0] = 0
    sums = kept.sum(axis=-1, keepdims=True)
    np.divide(kept, sums, out=kept, where=sums != 0)
    return kept


@dataclass(frozen=True, eq=False)
class Renormalized:
    """A map [query, key] without its hidden keys.

    Attributes:
        values: [query, key], kept keys only, each row divided by its sum; NaN if the sum is 0.
        share: mean over rows of the share that was on hidden keys; NaN without rows.
        emptied: number of rows with all their weight on hidden keys.
    """

    values: Array
    share: float
    emptied: int


def without(values: Array, hidden: Array) -> Renormalized:
    """Removes keys and rescales each row to the sum 1.

    Args:
        values: [query, key], none negative.
        hidden: [key] of bool.
    """
    kept = values[:, ~hidden].astype(np.float64)
    left, whole = kept.sum(axis=-1), values.astype(np.float64).sum(axis=-1)  # [query] each
    emptied, counted = (left == 0) & (whole > 0), whole > 0
    shares = 1 - left[counted] / whole[counted]
    remaining = np.divide(kept, left[:, None], out=np.full_like(kept, np.nan), where=left[:, None] > 0)
    return Renormalized(remaining, float(shares.mean()) if len(shares) else np.nan, int(emptied.sum()))
