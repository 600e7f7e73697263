"""The page Step through: the decoding token by token, or the computation stage by stage."""

import streamlit as st

from model.trace.types import Site
from viz.feature import draw_parts
from viz.i18n.translate import _
from viz.labels import tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, update
from viz.views.step import beam_search, cell_dialog, computation, panels
from viz.widgets.cards import choose_picture, one_screen, panel
from viz.widgets.drawn_panels import draw_content

MOST_WEIGHTS = 2**24
"""Most weights of a layer for the step player: it holds them all, so that stepping never asks the server."""


def show(page: Page) -> None:
    """Draws the page."""
    clocks = {"token": _("Token by token"), "computation": _("Inside the network")}
    tied = bind("clock", key=-1)
    inside, picture = page.view.clock == "computation", "motion"
    with st.container(horizontal=True):
        st.segmented_control(
            _("Follow the run"), list(clocks), format_func=clocks.__getitem__, required=True, label_visibility="collapsed", **tied
        )
        if inside and page.view.big:
            picture = choose_picture({"motion": _("In motion"), "stage": _("One stage")})
        elif page.view.big:
            picture = choose_picture({"tree": _("The beam search"), "steps": _("All steps")}) if page.trace.tree else "steps"
    if inside:
        computation.draw(page, picture == "motion")
    elif page.view.big:
        with one_screen():
            (beam_search.draw_tree if picture == "tree" else _player)(page)
    else:
        _tokens(page)


def _figures(page: Page) -> OfRun:
    """The figures of the selected head, with the row from which the current step chose its token."""
    steps, query = page.trace.steps, page.view.query
    if steps and page.attention.query_tokens == tokens.written_strip(page.trace):
        query = steps[min(max(page.view.step, 0), len(steps) - 1)].computed[1] - 1
    return OfRun("", page.trace, page.attention.site, page.head, query, hypothesis=page.view.hypothesis)


def _tokens(page: Page) -> None:
    """Draws the decoding. All steps were computed when the sentence ran; the browser reveals them one by one."""
    beam_search.draw(page)
    sites = [str(site) for site in page.trace.attention]
    tied = bind("site", head=0, query=-1)
    st.session_state[tied["key"]] = page.view.site
    where, head = st.columns([3, 1])
    where.selectbox(_("Attention layer to watch"), sites, format_func=lambda text: tokens.site(Site.parse(text)), **tied)
    head.selectbox(_("Head"), range(page.attention.heads), format_func=lambda index: str(index + 1), **bind("head"))
    if _player(page):
        draw_parts("picture", Picture("player", page.trace, lambda: [_figures(page)], "candidates"))
    draw_parts("steps", page)


def _player(page: Page) -> bool:
    """Draws the player, and the calculation of the chosen cell; False: the layer has too many weights."""
    weights = page.attention.heads * page.attention.mask.size
    if weights > MOST_WEIGHTS:
        gaps = {"weights": weights, "most": MOST_WEIGHTS}
        st.info(_("This layer has {weights:,} weights; only up to {most:,} can be animated. Explore shows them all.", **gaps))
        return False
    with panel("player"):
        draw_content(page, panels.of_player(page), "player", chosen=update, printable=False)
    if page.view.key >= 0:
        cell_dialog.dialog(page)
    if not page.trace.steps:
        st.info(_("This run generated nothing, so there is nothing to step through."), icon=":material/info:")
    return True
