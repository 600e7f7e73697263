"""Edges: what hiding each edge of attention does to one target token."""

from functools import partial

import streamlit as st

from model.features.what_if.questions import Edges
from model.features.what_if.results import EdgeEffects
from model.requests.edits import Forbid
from model.trace.types import Site
from viz.features.what_if import edge_panels as panels
from viz.features.what_if.importance_run import request, token_choice, token_key
from viz.features.what_if.remembered import forget_what_is_gone
from viz.features.what_if.undo import change_edits
from viz.i18n.translate import _
from viz.labels import tokens as labels
from viz.session.state import Page
from viz.widgets import drawn_panels
from viz.widgets.clickable_figures import choosing_point


def draw(page: Page) -> None:
    """Draws sites by keys for one target token, and on demand the heads of one site."""
    asked, last = int(st.session_state.get(token_key("edges")) or 0), max(1, len(page.trace.steps)) - 1
    effects = page.engine.ask(Edges(request(page), min(asked, last)))
    token_choice(effects, "edges", whole=False)
    st.caption(panels.about())
    _maps(page, effects)
    sites = {"": _("no attention layer")} | {site: labels.site(Site.parse(site)) for site in effects.sites}
    forget_what_is_gone("matters:edges:site", sites)
    site = st.selectbox(_("Show the heads of"), list(sites), format_func=sites.__getitem__, key="matters:edges:site")
    if site:
        _maps(page, page.engine.ask(Edges(request(page), effects.token, site)))


def _maps(page: Page, effects: EdgeEffects) -> None:
    """Draws the maps of edges; a click on one hides it."""
    for edges in panels.maps(page, effects):
        act = partial(_forbid, edges.places, effects.first + effects.token - 1)
        drawn_panels.draw_content(page, edges.panel, edges.panel.name, **choosing_point(edges.panel.name, act))


def _forbid(places: tuple[tuple[str, int], ...], query: int, at: list[int]) -> None:
    """Forbids the clicked edge, or allows it again."""
    row, key = at
    site, head = places[row]
    rows = () if site.startswith("encoder") else (query,)
    wanted = Forbid(site=site, head=() if head < 0 else (head,), query=rows, key=(key,))
    change_edits(lambda edits: edits.with_or_without(wanted), site=site, head=max(head, 0))
