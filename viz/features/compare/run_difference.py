"""Changes of attention between two runs, site by site and head by head.

    change of a row i of head h = ½ Σj |w₂[h, i, j] - w₁[h, i, j]|      total variation distance: the share of its weight that moved

The change of a head is the mean over the rows that could choose, on either side, and hold numbers on both.

A difference of two weights that is not larger than `rounding` counts as none, and so does a row with no larger one: a network
computes such differences where nothing was changed, because it adds numbers in another order when the batch is another.

Two tokens correspond where `aligning.counterparts` says so, up to the first token that the runs wrote differently: each
goes on from what it wrote. A row is compared where it has a counterpart, and where each
key that either side lets it look at has one too: tokens that do not correspond are never subtracted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from model.measures.rows import choosing, moved
from model.trace.types import Array, Attention, Site, Tokens, Trace
from viz.labels import tokens
from viz.metrics.alignment import counterparts
from viz.metrics.heads import table_of_heads

Reason: TypeAlias = Literal["first", "second", "tokens"]
"""Why a site cannot be compared: only the first or the second run has it, or no row's tokens have counterparts."""


@dataclass(frozen=True, eq=False)
class Change:
    """Change of the weights at one site of two runs, in the rows and columns that both have.

    Attributes:
        first, second: the attention of the site in each run.
        rows: [query], indices of the compared queries.
        keys: number of compared keys, counted from the first.
        by_row: [head, query compared], the change of each row; NaN if no run allows two keys in it, or a weight is not finite.
        rounding: differences of weights up to this size count as none.
    """

    first: Attention
    second: Attention
    rows: Array
    keys: int
    by_row: Array
    rounding: float = 0.0

    @property
    def heads(self) -> int:
        """Number of heads that both runs have."""
        return len(self.by_row)

    def weights(self, head: int) -> tuple[Array, Array]:
        """The weights of one head in each run, [query compared, key compared]."""
        return self.first.head(head)[self.rows, : self.keys], self.second.head(head)[self.rows, : self.keys]

    def difference(self, head: int) -> Array:
        """w₂ - w₁ of one head: [query compared, key compared], float64; 0 where it is not larger than rounding."""
        return apart(*self.weights(head), self.rounding)

    @property
    def changed(self) -> bool:
        """Whether any weight of any head changed by more than rounding."""
        return any(bool(np.any(np.nan_to_num(self.difference(head)))) for head in range(self.heads))

    @property
    def mask(self) -> Array:
        """[query compared, key compared]: whether the query may attend to the key in either run."""
        both: Array = self.first.mask[self.rows, : self.keys] | self.second.mask[self.rows, : self.keys]
        return both


ROUNDING = 1e-5
"""Largest difference of two weights that is rounding in float32: about a hundred times its smallest step below 1, 6·10⁻⁸."""


def rounding(first: Trace, second: Trace) -> float:
    """Largest difference of two weights of these runs that is rounding: ROUNDING, or how far either run was measured to differ
    from float32 if it ran in a lower precision.
    """
    measured = [trace.model.get("from_float32", {}).get("weights") or 0.0 for trace in (first, second)]
    return max(ROUNDING, *measured)


def apart(first: Array, second: Array, rounding: float) -> Array:
    """other - one in float64, 0 where it is not larger than `rounding`."""
    difference = second.astype(np.float64) - first
    return np.where(np.abs(difference) <= rounding, 0.0, difference)


def changes(first: Trace, second: Trace) -> tuple[dict[Site, Change], dict[Site, Reason]]:
    """The sites that can be compared, in the order of the first run, and the reason for each other site."""
    strips = {name: _counterparts(first, second, name) for name in first.tokens if name in second.tokens}
    changes, refused, smallest = dict[Site, Change](), dict[Site, Reason](), rounding(first, second)
    for site in dict.fromkeys((*first.attention, *second.attention)):
        if site not in first.attention or site not in second.attention:
            refused[site] = "first" if site in first.attention else "second"
            continue
        change = _change(first.at(site), second.at(site), strips, smallest)
        if len(change.rows):
            changes[site] = change
        else:
            refused[site] = "tokens"
    return changes, refused


def _counterparts(first: Trace, second: Trace, name: str) -> int:
    """How many places of a strip, from the first on, correspond in both runs."""
    pair = first.tokens[name].texts, second.tokens[name].texts
    reach = counterparts(first.tokens[name], second.tokens[name])
    start = min(_first_written(first, name), _first_written(second, name))
    return next((position for position in range(start, reach) if pair[0][position] != pair[1][position]), reach)


def _first_written(trace: Trace, name: str) -> int:
    """The first place of a strip that the model wrote; its length where all of it was given."""
    asked = trace.request
    decoded = asked.get("target") is None and asked.get("decoding", {}).get("max_length", 1) > 0
    wrote = decoded and name == tokens.written_strip(trace)
    return min((step.computed[1] for step in trace.steps if wrote), default=len(trace.tokens[name]))


def _change(first: Attention, second: Attention, strips: Mapping[str, int], smallest: float) -> Change:
    """The change at a site, given how many places of each strip correspond."""
    alike = (first.query_tokens, first.key_tokens) == (second.query_tokens, second.key_tokens)
    queries = min(strips.get(first.query_tokens, 0), len(first.mask), len(second.mask)) if alike else 0
    keys = min(strips.get(first.key_tokens, 0), first.mask.shape[1], second.mask.shape[1])
    looks_past = first.mask[:queries, keys:].any(axis=1) | second.mask[:queries, keys:].any(axis=1)
    rows = np.flatnonzero(~looks_past) if keys else np.zeros(0, np.int64)
    heads = min(first.heads, second.heads)
    choose = choosing(first)[:heads, rows] | choosing(second)[:heads, rows]
    sound = np.isfinite(first.weights[:heads, rows]).all(axis=-1) & np.isfinite(second.weights[:heads, rows]).all(axis=-1)
    by_head = [moved(first.weights[head, rows, :keys], second.weights[head, rows, :keys], smallest) for head in range(heads)]
    by_row = np.where(choose & sound, np.reshape(by_head, (heads, len(rows))), np.nan)
    return Change(first, second, rows, keys, by_row, smallest)


def table(changes: Mapping[Site, Change], queries: Mapping[Site, list[str]]) -> pd.DataFrame:
    """Table of all compared heads, the most changed first.

    Args:
        changes: the sites that can be compared.
        queries: the labels of each site's query rows.

    Returns:
        As `table_of_heads`, with the columns `moved` (the change of the head), `largest` (of a row), `row` (its label), `cell`
        (the largest difference of a single weight) and `rows` (that the mean is of).
    """
    rows = {(site, head): _row(change, head, queries[site]) for site, change in changes.items() for head in range(change.heads)}
    return table_of_heads(rows).sort_values("moved", ascending=False, kind="stable", na_position="last")


Kind: TypeAlias = tuple[str, str]
"""Stack and kind of attention: what shares a card of an overview."""


def changed_kinds(changes: Mapping[Site, Change]) -> tuple[dict[Site, Change], list[Kind]]:
    """The sites of those kinds of attention in which a weight changed by more than rounding, and the kinds in which none did."""
    kinds = {site: (site.stack, site.kind) for site in changes}
    changed = {kinds[site] for site, change in changes.items() if change.changed}
    drawn = {site: change for site, change in changes.items() if kinds[site] in changed}
    return drawn, [kind for kind in dict.fromkeys(kinds.values()) if kind not in changed]


def most_changed(changes: Mapping[Site, Change]) -> tuple[Site, int]:
    """Site and head of the largest mean change; the first of equal ones. `changes` holds at least one head."""

    def mean_change(head_of_site: tuple[Site, int]) -> float:
        rows = changes[head_of_site[0]].by_row[head_of_site[1]]
        return float(rows[~np.isnan(rows)].mean()) if not np.isnan(rows).all() else -1.0

    return max(((site, head) for site, change in changes.items() for head in range(change.heads)), key=mean_change)


def _row(change: Change, head: int, queries: list[str]) -> dict[str, object]:
    by_row = change.by_row[head]
    counted = np.flatnonzero(~np.isnan(by_row))
    largest = int(counted[by_row[counted].argmax()]) if len(counted) else None
    cells = np.abs(change.difference(head))
    return {
        "moved": float(by_row[counted].mean()) if len(counted) else np.nan,
        "largest": np.nan if largest is None else float(by_row[largest]),
        "row": "" if largest is None else queries[int(change.rows[largest])],
        "cell": float(np.nanmax(cells, initial=0.0)),
        "rows": len(counted),
    }


@dataclass(frozen=True)
class Written:
    """A token of a strip.

    Attributes:
        text: as typed or generated.
        log_probability: natural, given by the model at that step; None: the token was given, or not recorded.
    """

    text: str
    log_probability: float | None


def written(trace: Trace, name: str) -> tuple[Written, ...]:
    """The tokens of a strip; generated tokens with their recorded log-probabilities."""
    strip: Tokens = trace.tokens[name]
    steps = {step.computed[1]: step.chosen.log_probability for step in trace.steps} if name == tokens.written_strip(trace) else {}
    return tuple(Written(text, steps.get(position)) for position, text in enumerate(strip.texts))
