"""Tables of the heads of a run: their measures as the catalogue has them, and where each head is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import pandas as pd
from cachetools import cached

from model.measures.of_run import of_site
from model.measures.rows import choosing
from model.trace.types import Array, Attention, Site, Trace
from viz.labels import tokens

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


@cached(WeakKeyDictionary(), key=lambda _trace, attention: attention)  # the page asks for them at each choice
def _of_site(trace: Trace, attention: Attention) -> list[HeadStatistics]:
    counts, queries = choosing(attention).sum(axis=1).tolist(), len(attention.mask)
    rows: Array = of_site(trace, attention, SHOWN)
    return [
        HeadStatistics(dict(zip(SHOWN, values, strict=True)), count, queries - count)
        for values, count in zip(rows.tolist(), counts, strict=True)
    ]


def all_heads(trace: Trace) -> pd.DataFrame:
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
