"""What kind of head each head is, by a few means of its weights: enough to sort, filter and find a thousand heads.

Computed with the overview, which reads each weight anyway. Each reading is a mean over the rows that may attend to at least two
keys and whose weights are finite; NaN without such a row. w[i, j] is the weight of query row i on key j.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from model.trace.types import Array
from viz.i18n.translate import N_

READINGS = ("first", "largest", "distance", "previous", "own", "next")
"""`first`: w[i, 0]. `largest`: maxj w[i, j]. `distance`: Σj w[i, j] · |p(i) − j|, where p is the row's place as in
`viz.metrics.head_statistics`. `previous`, `own`, `next`: w on the key before, at and after the row's place in self-attention."""

KINDS = ("previous", "own", "next", "first")
"""Readings that name a kind: a head is of the first one of these that has more than MOST of its weight."""

TITLES = (N_("previous token"), N_("own token"), N_("next token"), N_("first token"), N_("other heads"))
"""KINDS in words, and last the heads of no kind."""

ORDERS: Mapping[str, tuple[str, bool, str]] = MappingProxyType(
    {
        "first": (N_("least on the first token"), False, N_("weight on the first token")),
        "largest": (N_("sharpest"), True, N_("mean largest weight")),
        "distance": (N_("farthest"), True, N_("mean distance (tokens)")),
        "previous": (N_("most on the previous token"), True, N_("weight on the previous token")),
        "own": (N_("most on the own token"), True, N_("weight on the own token")),
    }
)
"""How heads can be sorted: by name of a reading its direction in words, whether the largest come first, and what it is."""

MOST = 0.5
"""Share of a head's weight above which it is called after where that lies."""


def readings(weights: Array, mask: Array, distance: Array, rescaled: bool) -> Array:
    """READINGS of heads.

    Args:
        weights: [head, query, key], masked ones 0.
        mask: [query, key] of bool.
        distance: [query, key], |p(i) − j|.
        rescaled: whether rows are spread over the keys, as in cross-attention: then no key is the one before a row.

    Returns:
        [reading, head] of float64.
    """
    counted = np.isfinite(weights).all(axis=-1) & (mask.sum(axis=-1) >= 2)  # [head, query]
    known = np.nan_to_num(weights) if not counted.all() else weights
    by_row = np.zeros((len(READINGS), *counted.shape), known.dtype)  # [reading, head, query]
    there = np.zeros(by_row.shape, bool)  # the rows of each mean
    there[:3] = counted
    by_row[0], by_row[1] = known[..., 0], known.max(axis=-1)
    by_row[2] = np.einsum("hqk,qk->hq", known, distance.astype(np.float32, copy=False))
    for at, offset in enumerate(() if rescaled else (-1, 0, 1), start=3):
        line = np.diagonal(known, offset, axis1=1, axis2=2)
        rows = slice(max(0, -offset), max(0, -offset) + line.shape[-1])
        by_row[at, :, rows], there[at, :, rows] = line, counted[:, rows]
    total, count = np.where(there, by_row, 0).sum(axis=-1, dtype=np.float64), there.sum(axis=-1)
    return np.asarray(np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0))


def kinds(found: Array) -> Array:
    """The kind of each head: [head], the place of the first one of KINDS that fits; len(KINDS) where none does.

    Args:
        found: [reading, head], `readings` of the heads.
    """
    fits = np.nan_to_num(found[[READINGS.index(name) for name in KINDS]]) > MOST  # [kind, head]
    return np.asarray(np.where(fits.any(axis=0), fits.argmax(axis=0), len(KINDS)))


def heads_at_first(shares: Array) -> float:
    """The share of a run's heads that have more than MOST of their weight on the first token; 0 without a head that has a share.

    Args:
        shares: [head], the reading `first` of all heads of the run.
    """
    finite = shares[np.isfinite(shares)]
    return float((finite > MOST).mean()) if len(finite) else 0.0
