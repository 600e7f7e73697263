"""The panels of paths: what each path between two heads carries of what tells the sentence from a corrupted one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from model.features.circuit.circuits import SIDES, PathEffects, Paths, Side
from model.features.circuit.sums import Part
from model.features.what_if.results import Head
from model.requests.inputs import Given
from model.trace.types import Site
from viz.features.circuit import figures, stream_parts
from viz.features.circuit.view import CircuitView
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Plot, Table
from viz.session.state import Page

MOST_ROWS = 24
"""Heads on either side of the map: those that the largest effects lead to, or come from."""


LONG = 32
"""Most characters of a head's name on an axis of the map: "Decoder: layer 12, cross, head 16" is whole."""


MOST_PROJECTED = 8
"""The same in big mode, where the map fills the screen and its names are large."""


def pair_of_page(page: Page) -> list[tuple[Given, str]]:
    """The sentence of the page and the corrupted one, if there is one."""
    corrupted = page.view.of(CircuitView).corrupted
    return [(page.view.request().source, corrupted)] if corrupted.strip() else []


def question(page: Page, clean: Given, corrupted: str, shared: bool) -> Paths:
    """The question about one pair; chosen tokens continue the page's own sentence alone."""
    page_request = page.view.request()
    request = page_request if clean == page_request.source else replace(page_request, source=clean, begin=())
    return Paths(replace(request, edits=()), corrupted, max(page.view.step, 0), shared=shared)


def sentence(page: Page, effects: PathEffects, pairs: int) -> str:
    """What was measured, and its ends."""
    form = f".{page.digits(3)}f"
    fields = {
        "token": tokens.word(effects.tokens[effects.token]),
        "other": tokens.word(effects.other_text),
        "clean": number(effects.clean, form),
        "corrupted": number(effects.corrupted, form),
    }
    if pairs > 1:
        return _(
            "Means over all pairs ({pairs:,}). Logit of the token minus that of the other one: {clean} in the clean runs, "
            "{corrupted} in the corrupted ones.",
            pairs=pairs,
            **fields,
        )
    return _("Logit of “{token}” minus that of “{other}”: {clean} here, {corrupted} in the corrupted run.", **fields)


def strongest_side(effects: PathEffects) -> Side:
    """What the paths with the largest effect lead to."""
    return max(SIDES, key=lambda side: float(np.nanmax(np.abs(effects.effects[SIDES.index(side)]), initial=0.0)))


@dataclass(frozen=True, eq=False)
class PathMap:
    """The effects of the paths to one side: later heads by earlier heads.

    Attributes:
        panel: its picture; its points have their row and column as `customdata`.
        heads: site and head of each row.
    """

    panel: Panel
    heads: tuple[tuple[str, int], ...]


def map_of(page: Page, found: PathEffects, side: Side) -> PathMap:
    """The map of the paths to one side.

    Raises:
        NotDrawable: none leads there.
    """
    effects = found.effects[SIDES.index(side)]
    sizes = np.nan_to_num(np.abs(effects))
    most = MOST_PROJECTED if page.view.big else MOST_ROWS
    to = np.sort(np.argsort(-sizes.max(axis=1), kind="stable")[:most])
    since = np.sort(np.argsort(-sizes.max(axis=0), kind="stable")[:most])
    to = to[~np.isnan(effects[to]).all(axis=1)]
    since = since[~np.isnan(effects[:, since]).all(axis=0)]
    if not len(to) or not len(since):
        raise NotDrawable(_("No path leads there."))
    labels = [tokens.site(Site.parse(head.site), head.head) for head in found.heads]
    form = f"+.{page.digits(4)}f"

    def words(row: int, column: int) -> str:
        fields = {"since": labels[column], "to": labels[row], "effect": number(float(effects[row, column]), form)}
        return _("{since} → {to}: {effect}", **fields)

    hover = [[words(row, column) for column in since] for row in to]
    down, across = ([_short(found.heads[one], found.heads) for one in ones] for ones in (to, since))
    drawn = effects[np.ix_(to, since)]
    quantity = _("change of the logit difference")
    alt = _("Map of paths: one row per later head, one column per earlier head; the table below has the numbers")
    plot = Plot(
        lambda dark: grid(down, across, drawn, hover, dark, quantity, longest=LONG), alt, f"paths-{side}", alt.partition(":")[0]
    )
    heads = tuple((found.heads[row].site, found.heads[row].head) for row in to)
    return PathMap(Panel("paths", "", plot, sentence(page, found, 1)), heads)


def _short(head: Head, heads: Sequence[Head]) -> str:
    """The name of a head for an axis: with its stack where the run has two."""
    stack = Site.parse(head.site).stack
    name = stream_parts.short_name(Part("head", head.site, head.head))
    if all(Site.parse(other.site).stack == stack for other in heads):
        return name
    return _("{what}: {value}", what=tokens.stack(stack), value=name)


def of_kept(effects: PathEffects) -> Panel:
    """How much of the run a few paths carry: the log-probability by the number of paths kept."""
    ends = number(float(effects.kept_log_probability[0]), ".2f"), number(float(effects.kept_log_probability[-1]), ".2f")
    alt = _(
        "Log-probability of the token by the number of paths kept: from {none} without any to {all} with all",
        none=ends[0],
        all=ends[1],
    )
    words = _(
        "This many paths, those with the largest effects, are kept; on all others, the earlier head is read "
        "as in the corrupted run. Embeddings, feed-forward networks and what heads add directly to the "
        "logits are not cut."
    )
    plot = Plot(
        lambda dark: figures.kept(effects.kept, effects.kept_log_probability, dark), alt, "paths-kept", alt.partition(":")[0]
    )
    return Panel("kept", _("How much of the run do the strongest paths carry?"), plot, words)


def of_table(effects: PathEffects) -> Panel:
    """All paths as numbers, the largest effect first."""
    return Panel("paths-numbers", _("All paths as numbers"), Table(table(effects), decimals=4, named=False))


def table(effects: PathEffects) -> pd.DataFrame:
    """A row for each path, the largest effect first."""
    labels = [tokens.site(Site.parse(head.site), head.head) for head in effects.heads]
    places = np.argwhere(~np.isnan(effects.effects))
    order = np.argsort(-np.abs(effects.effects[tuple(places.T)]), kind="stable")
    sides = {"query": _("queries"), "key": _("keys"), "value": _("values")}
    rows = [
        (labels[since], sides[SIDES[side]], labels[to], effects.effects[side, to, since], effects.estimates[side, to, since])
        for side, to, since in places[order].tolist()
    ]
    return pd.DataFrame(rows, columns=[_("from"), _("side"), _("to"), _("effect"), _("estimate")])
