"""Edges: what hiding each edge of attention does to one target token."""

from functools import partial

import numpy as np
import streamlit as st

from model.features.what_if.questions import Edges
from model.features.what_if.results import EdgeEffects
from model.requests.edits import Forbid
from model.trace.types import Site, Tokens
from viz.features.what_if.importance_run import request, token_choice, token_key
from viz.features.what_if.remembered import forget_what_is_gone
from viz.features.what_if.undo import change_edits
from viz.figures.annotated_heatmap import grid
from viz.i18n.translate import _, join_sentences
from viz.labels import tokens as labels
from viz.session.state import Page, decimals
from viz.widgets.clickable_figures import clickable


def draw(page: Page) -> None:
    """Draws sites by keys for one target token, and on demand the heads of one site."""
    asked, last = int(st.session_state.get(token_key("edges")) or 0), max(1, len(page.trace.steps)) - 1
    found = page.engine.ask(Edges(request(page), min(asked, last)))
    token_choice(found, "edges", whole=False)
    st.caption(
        _(
            "Change in this token’s log-probability (nats) when no row may attend to a key, in all heads of an "
            "attention layer together. Click or tap to hide that key from the query above."
        )
    )
    for strip in dict.fromkeys(found.strips):
        _map(page, found, strip, [labels.site(Site.parse(site)) for site in found.sites])
    sites = {"": _("no attention layer")} | {site: labels.site(Site.parse(site)) for site in found.sites}
    forget_what_is_gone("matters:edges:site", sites)
    site = st.selectbox(_("Show the heads of"), list(sites), format_func=sites.__getitem__, key="matters:edges:site")
    if site:
        each = page.engine.ask(Edges(request(page), found.token, site))
        names = [_("head {head}", head=head + 1) for head in each.heads]
        _map(page, each, each.strips[0], names)


def _map(page: Page, found: EdgeEffects, strip: str, names: list[str]) -> None:
    """Draws the rows whose keys are those of one strip."""
    rows = [row for row, own in enumerate(found.strips) if own == strip]
    tokens: Tokens = page.trace.tokens[strip]
    values = found.changes[rows]
    used = np.flatnonzero(~np.isnan(values).all(axis=0))
    values = values[:, : int(used.max(initial=0)) + 1]
    keys = [labels.word(text) for text in tokens.texts[: values.shape[1]]]
    form = f"+{decimals(4)}"
    emptied = [_("This would leave a row without any key.")]

    def said(row: int, column: int, change: float) -> str:
        gaps = {"place": names[row], "key": keys[column], "number": labels.number(change, form)}
        return join_sentences([_("{place}, key “{key}”: {number} nats", **gaps), *(emptied if found.emptied[row, column] else [])])

    hover = [[said(row, column, values[line, column]) for column in range(len(keys))] for line, row in enumerate(rows)]
    figure = grid([names[row] for row in rows], keys, values, hover, page.dark, _("nats"))
    each = "heads" if found.heads[rows[0]] >= 0 else "sites"
    places = tuple((found.sites[row], found.heads[row]) for row in rows)
    act = partial(_forbid, places, found.first + found.token - 1)
    token = labels.word(found.tokens[found.token])
    alt = _("What hiding each edge does to “{token}”: one row per attention layer or head, one column per key", token=token)
    clickable(figure, f"matters-edges-{each}-{strip}", act, alt, (page.trace, alt.partition(":")[0]))


def _forbid(places: tuple[tuple[str, int], ...], query: int, at: list[int]) -> None:
    """Forbids the clicked edge, or allows it again."""
    row, key = at
    site, head = places[row]
    rows = () if site.startswith("encoder") else (query,)
    wanted = Forbid(site=site, head=() if head < 0 else (head,), query=rows, key=(key,))
    change_edits(lambda edits: edits.with_or_without(wanted), site=site, head=max(head, 0))
