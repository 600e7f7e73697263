"""Statistics of a head, each with its formula, computed in float64 from the recorded weights.

Notation: w[i, j] is the weight of query row i on key j; there are n rows and m keys, counted from 0. The *place* of row i among the
keys is p(i) = i in self-attention, and p(i) = i · (m - 1) / (n - 1) in cross-attention, where the first row is at the first key
and the last row at the last (0 where there is one row).

Every reading is a mean over the query rows that may look at some key and whose weights are all numbers. Other rows are counted,
never averaged. Without any row a reading is NaN.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from cachetools import cached

from model.trace.types import Array, Attention, Site, Trace
from viz.i18n.translate import _
from viz.labels import tokens
from viz.metrics.aggregation import lengths

READINGS = ("entropy", "mean_maximum", "mean_distance", "special_share", "diagonality")
"""Fields of HeadStatistics that are means over rows, in the order in which they are shown."""


@dataclass(frozen=True)
class HeadStatistics:
    """The readings of one head.

    Attributes:
        entropy: mean of -Σj w ln w, in nats: 0 means one key, ln m uniform weights on m keys.
        mean_maximum: mean of maxj w, from 0 to 1.
        mean_distance: mean of Σj w · |p(i) - j|, in key tokens.
        special_share: mean of Σj w over special tokens (start, end, padding), from 0 to 1.
        diagonality: mean of Σj w over keys with |p(i) - j| ≤ 1, from 0 to 1.
        rows: number of query rows in the means.
        rows_left_out: number of rows whose keys are all masked, or with a weight that is not finite.
    """

    entropy: float
    mean_maximum: float
    mean_distance: float
    special_share: float
    diagonality: float
    rows: int
    rows_left_out: int


@dataclass(frozen=True)
class Explanation:
    """Title and meaning of a reading; the meaning includes the formula."""

    title: str
    meaning: str


def explanations() -> Mapping[str, Explanation]:
    """Title and meaning of each of READINGS."""
    return {
        "entropy": Explanation(
            _("entropy (nats)"),
            _("Mean over rows of −Σ w ln w. 0 means that a row attends to one key; ln m, to all m keys equally."),
        ),
        "mean_maximum": Explanation(_("mean largest weight"), _("The largest weight of each row, averaged over rows.")),
        "mean_distance": Explanation(
            _("mean distance (tokens)"),
            _(
                "Mean over rows of Σ w · |p − j|: how far the keys that a row attends to are from its own position "
                "p. In cross-attention, rows are spread evenly over the keys."
            ),
        ),
        "special_share": Explanation(
            _("weight on special tokens"), _("Mean over rows of the weight on special tokens (start, end, padding).")
        ),
        "diagonality": Explanation(
            _("weight near the diagonal"),
            _("Mean over rows of the weight on keys at most 1 token away from the row’s own position."),
        ),
    }


def head_statistics(trace: Trace, attention: Attention, head: int) -> HeadStatistics:
    """The readings of one head.

    Args:
        trace: the run.
        attention: one of its sites.
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    attention.head(head)
    return _site_statistics(trace, attention)[head]


def all_heads(trace: Trace) -> pd.DataFrame:
    """Table of the readings of every head, one row per head.

    Returns:
        As `table_of_heads`, with the fields of HeadStatistics as columns.
    """
    return table_of_heads(
        {
            (site, head): vars(statistics)
            for site, attention in trace.attention.items()
            for head, statistics in enumerate(_site_statistics(trace, attention))
        }
    )


def table_of_heads(rows: Mapping[tuple[Site, int], Mapping[str, Any]]) -> pd.DataFrame:
    """A table with one row per head, given its columns by site and head.

    Returns:
        First the columns `kind` (in words), `pass` (where there is more than one), `layer` and `head` (counted from 1, as on
        screen). The index is (site, head): the site's text form, and the head counted from 0, as in links.
    """
    named = [
        {"kind": tokens.kind(site.stack, site.kind), "pass": site.pass_ + 1, "layer": site.layer + 1, "head": head + 1, **row}
        for (site, head), row in rows.items()
    ]
    index = pd.MultiIndex.from_tuples([(str(site), head) for site, head in rows], names=["site", "head"])
    table = pd.DataFrame(named, index=index)
    return table if any(site.pass_ for site, _head in rows) else table.drop(columns="pass")


@cached(WeakKeyDictionary(), key=lambda _trace, attention: attention)  # the page tells them at each choice
def _site_statistics(trace: Trace, attention: Attention) -> list[HeadStatistics]:
    """The readings of all heads of a site."""
    weights = attention.weights.astype(np.float64)  # [head, query, key]
    counted = counted_rows(attention)
    weights = np.where(counted[..., None], weights, 0.0)
    distance = distances(weights.shape[1], weights.shape[2], rescaled=attention.site.kind == "cross")  # [query, key]
    special = np.asarray(trace.tokens[attention.key_tokens].special[: weights.shape[2]], np.float64)  # [key]
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    by_row = (  # [head, query] each, in the order of READINGS
        -(weights * logs).sum(axis=-1),
        weights.max(axis=-1),
        (weights * distance).sum(axis=-1),
        weights @ special,
        (weights * (distance <= 1)).sum(axis=-1),
    )
    rows = counted.sum(axis=-1)  # [head]
    means = [np.divide(r.sum(axis=-1), rows, out=np.full(len(rows), np.nan), where=rows > 0).tolist() for r in by_row]
    left_out = (counted.shape[1] - rows).tolist()
    return list(map(HeadStatistics, *means, rows.tolist(), left_out))


def counted_rows(attention: Attention) -> Array:
    """Which rows count in a mean, [head, query] of bool: some key is allowed, and all weights are finite."""
    counted: Array = np.logical_and(np.isfinite(attention.weights).all(axis=-1), attention.mask.any(axis=-1))
    return counted


def distances(queries: int, keys: int, rescaled: bool) -> Array:
    """|p(i) - j| for every query row i and key j: [query, key], float64.

    Args:
        queries, keys: their numbers.
        rescaled: spread the rows evenly over the keys, as in cross-attention.
    """
    row, key = np.arange(queries)[:, None], np.arange(keys)[None, :]
    steps = max(queries - 1, 1)
    # In whole numbers up to the division, so that a distance of exactly 1 is 1.
    apart: Array = np.abs(row * (keys - 1) - key * steps) / steps if rescaled else np.abs(row - key).astype(np.float64)
    return apart


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
