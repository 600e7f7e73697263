"""The page Circuit: which earlier head each head's queries, keys and values used, as a graph beside the overview."""

import math
from functools import partial
from typing import Literal

import numpy as np
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.circuits import CircuitGraph
from viz import canvas
from viz.canvas.scenes import attention
from viz.features.circuit import graph_panels as panels
from viz.features.circuit import paths, stream_parts
from viz.features.circuit.view import CircuitView
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.panels import NotDrawable, needs_network
from viz.session import patient_engine
from viz.session.state import Page, bind, update
from viz.widgets import download, drawn_panels
from viz.widgets.cards import choose_picture, one_screen, panel, say
from viz.widgets.clickable_figures import choosing_point


def show(page: Page) -> None:
    """Draws the page; in big mode one of its pictures, as large as the screen."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    with patient_engine.show_pending():
        try:
            found = page.engine.ask(panels.question(page))
        except HeadlightError as error:
            say(error_message(error))
            return
        page = panels.with_threshold(page, found)
        if page.view.big:
            _one_picture(page, found)
            return
        with panel("circuit"):
            _about(page, found)
            graph, overview = st.columns([3, 2])
        with graph:
            _graph(page, found)
        with overview:
            overview_scene = attention.atlas(page.trace, page.attention.site, page.head, -1)
            canvas.draw("atlas", overview_scene, key="circuit-atlas", chosen=update)
        for sentence in panels.used_by_head(page, found):
            st.markdown(tokens.markdown(sentence))
        _table(page, found)
        with panel("composition"):
            _composition(page, found)
        paths.draw(page, found)


def _one_picture(page: Page, graph: CircuitGraph) -> None:
    """Draws the picture that big mode shows, which one it is, and the sentence that it needs."""
    names = {"graph": _("Graph of heads"), "composition": _("From the weights alone")}
    if page.trace.steps:
        names |= {"paths": _("Paths"), "kept": _("Strongest paths")}
    with one_screen():
        row = st.container(horizontal=True, vertical_alignment="center")
        with row:
            picture = choose_picture(names)
        if picture == "graph":
            with row:
                _threshold(page, graph, "collapsed")
            edges, left = panels.drawn_edges(page, graph)
            fields = {"count": len(edges), "left": left}
            st.caption(_("Edges shown: {count:,}. Of what heads used from earlier heads, {left} is not shown.", **fields))
            drawn_panels.draw_content(page, panels.of_graph(page, graph), "circuit", printable=False, chosen=update)
        elif picture == "composition":
            _composition_picture(page, graph, whole=False)
        else:
            paths.draw_picture(page, graph, picture == "kept")


def _about(page: Page, graph: CircuitGraph) -> None:
    """Draws the title, whether the sums are what ran, and the threshold."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{panels.title()}**", width="content")
        _badge(page, graph)
    rows, least = st.columns([1, 2])
    with rows:
        _rows(page)
    with least:
        _threshold(page, graph, "visible")


def _rows(page: Page) -> None:
    """Draws the choice of the rows that are counted."""
    written, tied = panels.written_tokens(page), bind("row")
    st.session_state[tied["key"]] = panels.counted_row(page)
    st.selectbox(
        _("Rows that are counted"),
        range(-1, len(written)),
        format_func=lambda row: _("all: the mean") if row < 0 else f"{row + 1} · {tokens.token(written, row)}",
        help=_("A head can use another head in a single row, which the mean over all rows hides: choose that row."),
        **tied,
    )


def _threshold(page: Page, graph: CircuitGraph, label: Literal["visible", "collapsed"]) -> None:
    """Draws the slider of the smallest share, which shows the one of the page where nobody has chosen another.

    It ends at the largest share of an edge between two heads.
    """
    largest = max((edge.share for edge in graph.edges(0.01) if edge.part.kind == "head"), default=0.0)
    bound = bind("least")
    st.session_state[bound["key"]] = page.view.of(CircuitView).least
    st.slider(
        _("Smallest share of an edge"),
        0.01,
        max(0.02, page.view.of(CircuitView).least, math.ceil(100 * largest) / 100),
        step=0.01,
        format="localized",
        help=_("A share is the size of what one part adds, divided by the sum of these sizes over all parts of that side."),
        label_visibility=label,
        **bound,
    )


def _graph(page: Page, found: CircuitGraph) -> None:
    """Draws the graph, and says what it leaves out."""
    graph = panels.of_graph(page, found)
    drawn_panels.draw_content(page, graph, "circuit", printable=False, chosen=update)
    st.caption(graph.words)
    for sentence in stream_parts.about_the_run(page, panels.is_finite(page)):
        st.caption(sentence)


def _badge(page: Page, graph: CircuitGraph) -> None:
    """Draws whether all sums are what the run recorded."""
    if not panels.is_finite(page):
        st.badge(_("Cannot be checked: it contains NaN or infinite values"), icon=":material/error:", color="red")
        return
    largest = tokens.power_of_ten(float(np.nanmax(graph.difference)))
    if graph.agrees:
        words = _("All sums match the run, largest difference {difference}", difference=largest)
        st.badge(words, icon=":material/check:", color="green")
    else:
        words = _("Some sums do not match the run, largest difference {difference}", difference=largest)
        st.badge(words, icon=":material/error:", color="red")


def _table(page: Page, graph: CircuitGraph) -> None:
    edges = panels.of_edges(graph)
    with st.expander(edges.title, icon=":material/table:"):
        drawn_panels.draw_content(page, edges, edges.name)
        download.csv(panels.table(graph), page.trace, "circuit", key="circuit-csv")


def _composition(page: Page, graph: CircuitGraph) -> None:
    """Draws composition by the weights alone against the share in this run, and the copying scores."""
    _composition_picture(page, graph, whole=True)
    if copying := panels.of_copying(graph):
        with st.expander(copying.title, icon=":material/table:"):
            drawn_panels.draw_content(page, copying, copying.name)


def _composition_picture(page: Page, graph: CircuitGraph, whole: bool) -> None:
    """Draws a point for each pair of heads and each side; a click selects the later head.

    Args:
        whole: whether its title and words are drawn, too.
    """
    try:
        composition = panels.of_composition(graph)
    except NotDrawable as reason:
        st.caption(str(reason))
        return
    if whole:
        drawn_panels.draw_words(composition)
    places = tuple((edge.head.site, edge.head.head) for edge in panels.composing(graph))
    clicked = choosing_point("composition", partial(_select, places))
    drawn_panels.draw_content(page, composition, "composition", fills=True, **clicked)


def _select(places: tuple[tuple[str, int], ...], index: int) -> None:
    site, head = places[index]
    update(site=site, head=head)
