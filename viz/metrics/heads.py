"""What the heads of a run do: their measures as the catalogue has them, the kind of each, and its attention sink.

Sources of sinks: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3; OpenAI 2025, gpt-oss: a
learned number of each head joins the scores in the softmax, and its weight weighs no value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from model.measures.of_run import of_site, weight_on
from model.measures.rows import choosing
from model.trace.types import Array, Attention, Site, Trace
from viz.i18n.translate import N_
from viz.labels import tokens
from viz.metrics.aggregation import relative_lengths

if TYPE_CHECKING:
    import pandas as pd

SHOWN = ("entropy", "largest", "distance", "special", "near_diagonal")
"""Measures that Explore shows of a head, in their order."""


@dataclass(frozen=True)
class HeadStatistics:
    """The measures of one head.

    Attributes:
        values: by name of SHOWN; NaN where a measure has no meaning.
        rows: number of rows that have a choice, over which they are means.
        rows_left_out: number of the other rows.
    """

    values: Mapping[str, float]
    rows: int
    rows_left_out: int


def head_statistics(trace: Trace, attention: Attention, head: int) -> HeadStatistics:
    """The measures of one head.

    Args:
        trace: the run.
        attention: one of its sites.
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    attention.head(head)
    return _of_site(trace, attention)[head]


_STATISTICS: WeakKeyDictionary[Attention, list[HeadStatistics]] = WeakKeyDictionary()
"""Of each site, because the page asks for them at each choice."""


def _of_site(trace: Trace, attention: Attention) -> list[HeadStatistics]:
    if attention not in _STATISTICS:
        counts, queries = choosing(attention).sum(axis=1).tolist(), len(attention.mask)
        rows: Array = of_site(trace, attention, SHOWN)
        _STATISTICS[attention] = [
            HeadStatistics(dict(zip(SHOWN, values, strict=True)), count, queries - count)
            for values, count in zip(rows.tolist(), counts, strict=True)
        ]
    return _STATISTICS[attention]


def all_heads(trace: Trace) -> "pd.DataFrame":
    """Table of the measures of every head, one row per head.

    Returns:
        As `table_of_heads`, with the columns SHOWN, `rows` and `rows_left_out`.
    """
    return table_of_heads(
        {
            (site, head): {**numbers.values, "rows": numbers.rows, "rows_left_out": numbers.rows_left_out}
            for site, attention in trace.attention.items()
            for head, numbers in enumerate(_of_site(trace, attention))
        }
    )


def table_of_heads(rows: Mapping[tuple[Site, int], Mapping[str, Any]]) -> "pd.DataFrame":
    """A table with one row per head, given its columns by site and head.

    Returns:
        First the columns `kind` (in words), `pass` (where there is more than one), `layer` and `head` (counted from 1, as on
        screen). The index is (site, head): the site's text form, and the head counted from 0, as in links.
    """
    named = [
        {"kind": tokens.kind(site.stack, site.kind), "pass": site.pass_ + 1, "layer": site.layer + 1, "head": head + 1, **row}
        for (site, head), row in rows.items()
    ]
    import pandas as pd  # the overview, which reads other things of this module, is drawn without it

    index = pd.MultiIndex.from_tuples([(str(site), head) for site, head in rows], names=["site", "head"])
    table = pd.DataFrame(named, index=index)
    return table if any(site.pass_ for site, _head in rows) else table.drop(columns="pass")


READINGS = ("first", "largest", "distance", "previous", "same", "next")
"""Measures that tell the kind of a head, and by which a thousand heads are sorted, filtered and found. They are computed with the
overview, which reads each weight anyway. A role of a survey is something else: it is judged over many texts.
"""

KINDS = ("previous", "same", "next", "first")
"""Measures that name a kind: a head is of the first one of these that has more than MOST of its weight."""

TITLES = (
    N_("mostly on the previous token"),
    N_("mostly on the own token"),
    N_("mostly on the next token"),
    N_("mostly on the first token"),
    N_("other heads"),
)
"""KINDS in words, and last the heads of no kind."""

ORDERS: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "first": (N_("least on the first token"), False),
        "largest": (N_("sharpest"), True),
        "distance": (N_("farthest"), True),
        "previous": (N_("most on the previous token"), True),
        "same": (N_("most on the own token"), True),
    }
)
"""How heads can be sorted: by name of a measure its direction in words, and whether the largest come first."""

MOST = 0.5
"""Share of a head's weight above which it is called after where that lies."""


def kinds(readings: Array) -> Array:
    """The kind of each head: [head], the place of the first one of KINDS that fits; len(KINDS) where none does.

    Args:
        readings: [measure, head], the measures READINGS of the heads.
    """
    fits = np.nan_to_num(readings[[READINGS.index(name) for name in KINDS]]) > MOST  # [kind, head]
    return np.asarray(np.where(fits.any(axis=0), fits.argmax(axis=0), len(KINDS)))


def heads_at_first(shares: Array) -> float:
    """The share of a run's heads that have more than MOST of their weight on the first token; 0 without a head that has a share.

    Args:
        shares: [head], the measure `first` of all heads of the run.
    """
    finite = shares[np.isfinite(shares)]
    return float((finite > MOST).mean()) if len(finite) else 0.0


SINK = 1e-3
"""Rows whose weights lack more than this have a sink; below, it is rounding."""


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


SINK_SHARE = 0.5
"""A key is a sink where it holds more than this share of a head's weight."""

SMALL_VALUE = 0.5
"""A value is called small where it is shorter than this part of the mean over the keys."""


@dataclass(frozen=True)
class Sink:
    """Attention sink: a key that gets most of a head's weight.

    Attributes:
        key: counted from 0; the first key, or a special token.
        share: mean weight on it, from 0 to 1; of the first key the measure `first`.
        value: length of its value vector, relative to the mean length; None: values were not recorded.
    """

    key: int
    share: float
    value: float | None = None


def sink(trace: Trace, attention: Attention, head: int) -> Sink | None:
    """The sink of one head; None: neither the first nor a special key has more than SINK_SHARE of the weight.

    Args:
        trace: the run.
        attention: one of its sites; with `v`, the length of the sink's value is computed.
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    weights = attention.head(head).astype(np.float64)[choosing(attention)[head]]
    if not len(weights):
        return None
    key = int(weights.sum(axis=0).argmax())
    share = float(weight_on(trace, attention, [key])[head])
    if not share > SINK_SHARE or not (trace.tokens[attention.key_tokens].special[key] or key == 0):
        return None
    return Sink(key, share, None if attention.v is None else float(relative_lengths(attention.v[head])[key]))
