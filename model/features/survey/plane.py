"""The queries and keys of one head in a plane, so that a query lies near the keys to which it gives high scores. No torch.

A score is a product, and a picture shows distances: |q − k|² = |q|² + |k|² − 2 q·k. Two changes leave every weight as it is and
bring the two together: all keys may be shifted by one vector, which adds the same number to all scores of a row; and queries may be
multiplied by a number by which keys are divided. Source: Yeh et al. 2023, "AttentionViz: A Global View of Transformer Attention".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Literal, TypeAlias

import numpy as np

from model.errors import CannotSurvey, phrase
from model.features.survey.reading import HeadInText
from model.trace.types import Array

Way: TypeAlias = Literal["components", "umap"]
"""How points come into a plane: by the first two principal components, or by UMAP (McInnes et al. 2018) from its library."""

ROWS = 2000
"""Rows in which the plane is compared with the scores: of more, as many at equal distances."""

PAIRS = 20_000
"""Random pairs of any query and any key that are compared, of the same text or not."""


@dataclass(frozen=True, eq=False)
class Plane:
    """Queries and keys in a plane. Axes: point (the queries of all texts, then the keys of all texts).

    Attributes:
        points: [point, 2].
        keys: [point] of bool.
        texts, positions: [point], the number of its text among those that were read, and its position there.
        scale: what the queries were multiplied by, and the keys divided by.
        variance: the share of the variance that lies along each axis; empty: the axes are no directions.
        in_rows: the mean over rows of the rank correlation between nearness in the plane and weight: 1 if each row's nearer keys
            have larger weights; NaN without a row.
        in_rows_unprojected: the same with distances in the whole space: what the projection could reach at most, nearly.
        rows: how many rows this is of.
        in_pairs: the rank correlation between nearness in the plane and q·k of random pairs.
    """

    points: Array
    keys: Array
    texts: Array
    positions: Array
    scale: float
    variance: tuple[float, ...]
    in_rows: float
    in_rows_unprojected: float
    rows: int
    in_pairs: float


def has_umap() -> bool:
    """Whether the library of UMAP is installed here."""
    return find_spec("umap") is not None


def plane(texts: Sequence[HeadInText], way: Way = "components") -> Plane:
    """Draws the queries and keys of some texts.

    Raises:
        CannotSurvey: the network does not tell its queries and keys, or the library of UMAP is not installed.
    """
    if any(text.q is None or text.k is None for text in texts):
        raise CannotSurvey(reason=phrase("this network does not expose its queries and keys"))
    q, k = (np.concatenate([np.asarray(getattr(text, name), np.float64) for text in texts]) for name in ("q", "k"))
    rows = _rows(texts)
    scale = _scale(q, k)
    queries, keys = aligned(q, k, scale)
    both = np.concatenate([queries, keys])
    # Queries and keys are drawn in one plane, so they are projected together.
    points, shares = _components(both) if way == "components" else (_umap(both), ())
    # Measured in the plane and in the whole space: the second says how much the projection itself has cost.
    near = [_in_rows(flat[: len(q)], flat[len(q) :], rows) for flat in (points, both)]
    lengths = [len(text.queries) for text in texts], [len(text.keys) for text in texts]
    return Plane(
        points,
        np.arange(len(both)) >= len(q),
        np.concatenate([np.repeat(np.arange(len(texts)), lengths_of_strip) for lengths_of_strip in lengths]),
        np.concatenate([np.arange(length) for lengths_of_strip in lengths for length in lengths_of_strip]),
        scale,
        shares,
        near[0],
        near[1],
        len(rows),
        _in_pairs(points[: len(q)], points[len(q) :], q, k),
    )


def _components(both: Array) -> tuple[Array, tuple[float, ...]]:
    """[point, 2], points along the first two principal components, and the shares of the variance along these."""
    centered = both - both.mean(axis=0)
    # `eigh` sorts from small to large, so the last two axes are the first two components.
    values, axes = np.linalg.eigh(centered.T @ centered)
    axes = axes[:, ::-1][:, :2]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])])  # of both directions always the same one
    points = np.zeros((len(both), 2))
    points[:, : axes.shape[1]] = centered @ axes
    shares = np.append(values[::-1], 0.0)[:2] / max(float(values.sum()), np.finfo(float).tiny)
    return points, (float(shares[0]), float(shares[1]))


def _umap(both: Array) -> Array:
    """[point, 2], the points as UMAP with the settings of its library places them, from seed 0.

    Raises:
        CannotSurvey: its library is not installed.
    """
    if not has_umap():
        raise CannotSurvey(reason=phrase("UMAP needs the package umap-learn, which is not installed here"))
    library = import_module("umap")  # compiles for seconds, and only for who asks
    layout: Array = library.UMAP(random_state=0, n_jobs=1).fit_transform(both)
    return np.asarray(layout, np.float64)


def aligned(q: Array, k: Array, scale: float) -> tuple[Array, Array]:
    """Queries c q, and keys k / c + mean(c q − k / c), so that both have the same mean; `scale` is c.

    Args:
        q, k: [query, head_dim], [key, head_dim].
    """
    # Neither step changes an attention weight: a factor that cancels in q·k, and the same vector added to all keys,
    # which adds the same number to all scores of a row.
    queries, keys = scale * q, k / scale
    return queries, keys + (queries.mean(axis=0) - keys.mean(axis=0))


@dataclass(frozen=True, eq=False)
class _Row:
    """A row: the place of its query among all queries, those of its allowed keys among all keys, and their weights."""

    query: int
    keys: Array
    weights: Array


def _rows(texts: Sequence[HeadInText]) -> list[_Row]:
    """The rows with at least three allowed keys and unequal weights; of more than ROWS, as many at equal distances."""
    rows, query, key = list[_Row](), 0, 0
    for text in texts:
        for row in np.flatnonzero(text.allowed.sum(axis=1) >= 3):
            allowed = np.flatnonzero(text.allowed[row])
            weights = np.asarray(text.weights[row, allowed], np.float64)
            if np.ptp(weights) > 0:
                rows.append(_Row(query + int(row), key + allowed, weights))
        query, key = query + len(text.queries), key + len(text.keys)
    return [rows[index] for index in np.unique(np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).round().astype(int))]


def _scale(q: Array, k: Array) -> float:
    """The factor that makes queries and keys spread equally far around their means.

    A larger one makes |k|² matter less, so that distances order the keys of a row better, and draws all keys into one point.
    """
    of_queries, of_keys = (float(((vectors - vectors.mean(axis=0)) ** 2).sum(axis=1).mean()) for vectors in (q, k))
    return (of_keys / of_queries) ** 0.25 if min(of_queries, of_keys) > 0 else 1.0


def _in_rows(queries: Array, keys: Array, rows: Sequence[_Row]) -> float:
    """The mean over rows of the rank correlation between nearness and weight."""
    correlations = [correlation(-np.linalg.norm(keys[row.keys] - queries[row.query], axis=1), row.weights) for row in rows]
    known = [value for value in correlations if np.isfinite(value)]
    return float(np.mean(known)) if known else float("nan")


def _in_pairs(queries: Array, keys: Array, q: Array, k: Array) -> float:
    """The rank correlation between nearness and q·k of random pairs."""
    chance = np.random.default_rng(0)
    some_queries, some_keys = chance.integers(len(q), size=PAIRS), chance.integers(len(k), size=PAIRS)
    nearness = -np.linalg.norm(queries[some_queries] - keys[some_keys], axis=1)
    return correlation(nearness, np.einsum("pd,pd->p", q[some_queries], k[some_keys]))


def correlation(values: Array, others: Array) -> float:
    """Spearman's rank correlation; equal numbers share the mean of their ranks. NaN where all are equal."""
    first, second = ranks(values), ranks(others)
    first, second = first - first.mean(), second - second.mean()
    length = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second / length) if length else float("nan")


def ranks(values: Array) -> Array:
    """The rank of each number, from 1; equal numbers share the mean of their ranks."""
    _, rank_of, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[rank_of])


def clusters(points: Array, count: int) -> Array:
    """[point], the cluster of each by k-means, from 0, the largest first.

    Args:
        points: [point, 2].
        count: most clusters.
    """
    from scipy.cluster.vq import kmeans2  # a third of a second, and only for who asks

    different = len(np.unique(points, axis=0))
    if different < 2:
        return np.zeros(len(points), int)
    spread = points / max(float(points.std()), np.finfo(float).tiny)
    _, clusters = kmeans2(spread, min(count, different), minit="++", seed=0, missing="warn")
    sizes = np.bincount(clusters, minlength=count)
    # The largest cluster is number 0, whichever one k-means came upon first.
    order = np.argsort(-sizes, kind="stable")
    return np.asarray(np.argsort(order, kind="stable")[clusters])
