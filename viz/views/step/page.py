"""The page Step through: the decoding token by token, or the computation stage by stage."""

from functools import partial

import streamlit as st

from model.trace.beam_tree import hypotheses
from model.trace.types import Site, Trace
from viz.feature import draw_parts
from viz.i18n.translate import _
from viz.labels import tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, decimals, update
from viz.views.step import cell_dialog, computation, panels
from viz.widgets import download
from viz.widgets.cards import card, choose_picture, expander_state, one_screen, panel
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
            (_tree if picture == "tree" else _player)(page)
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
    _search(page)
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
        counts = {"weights": weights, "most": MOST_WEIGHTS}
        st.info(_("This layer has {weights:,} weights; only up to {most:,} can be animated. Explore shows them all.", **counts))
        return False
    with panel("player"):
        draw_content(page, panels.of_player(page), "player", chosen=update, printable=False)
    if page.view.key >= 0:
        cell_dialog.dialog(page)
    if not page.trace.steps:
        st.info(_("This run generated nothing, so there is nothing to step through."), icon=":material/info:")
    return True


ANOTHER = {"query": -1, "key": -1, "step": -1}
"""Fields that another hypothesis resets: they name rows of the old one."""


def _search(page: Page) -> None:
    """Draws the search, if the run has one; every page then shows the chosen hypothesis."""
    if not page.trace.tree:
        return
    with card("search", "content"):
        st.markdown("**" + _("The beam search") + "**")
        st.caption(
            _(
                "Each column is a step and each box a hypothesis so far, with its total log-probability. Finished "
                "hypotheses are numbered, best log-probability per token first; the highlighted one is shown on every "
                "page."
            )
        )
        if page.info.recorded:
            st.caption(_("This is a recorded run: it holds the attention of only one hypothesis, the highlighted one."))
        else:
            st.selectbox(
                _("Hypothesis shown"),
                range(len(hypotheses(page.trace.tree))),
                format_func=partial(_in_words, page.trace, decimals(3)),
                **bind("hypothesis", **ANOTHER),
            )
        _tree(page)
        opened = expander_state("part-search", page.view.opened, ("search",))
        with st.expander(_("The search as a table"), icon=":material/table:", **opened) as part:
            if part.open:
                _search_numbers(page)


def _tree(page: Page) -> None:
    """Draws the tree of the search; a click on a finished hypothesis shows it, unless the run is recorded."""
    count = 0 if page.info.recorded else len(hypotheses(page.trace.tree))
    draw_content(page, panels.tree(page), "tree", chosen=partial(_show_hypothesis, count), printable=False)


def _show_hypothesis(count: int, **fields: str | int) -> None:
    """Shows another of the `count` final hypotheses, if it exists."""
    if fields.get("hypothesis") in range(count):
        update(**fields, **ANOTHER)


def _in_words(trace: Trace, form: str, rank: int) -> str:
    """A hypothesis as one line of text."""
    index = hypotheses(trace.tree)[rank]
    node, text = trace.tree[index], panels.text_of_hypothesis(trace, index)
    mean, total = tokens.number(node.mean, form), tokens.number(node.total, form)
    return _("{rank} · {text} · {mean} per token, {total} in total", rank=rank + 1, text=text, mean=mean, total=total)


def _search_numbers(page: Page) -> None:
    trace = page.trace
    draw_content(page, panels.of_search(trace), "search-numbers")
    table = panels.table_of_search(trace)
    download.csv(table, trace, "search", label=_("Download the search as CSV"), key="search-csv")
    printed = OfRun("tree", trace, page.attention.site, page.head, hypothesis=page.view.hypothesis)
    draw_parts("picture", Picture("tree", trace, lambda: [printed]))
