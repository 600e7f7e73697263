"""The page Circuit: which earlier head each head's queries, keys and values used, as a graph beside the overview."""

import math
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.circuits import SIDES, Circuit, CircuitGraph, Edge, Side
from model.features.what_if.results import Head
from model.trace.types import Site, Tokens
from viz import canvas
from viz.canvas.scenes import attention
from viz.features.circuit import graph_scene as scene
from viz.features.circuit import paths, stream_parts
from viz.features.circuit.view import CircuitView
from viz.figures import importance
from viz.i18n.translate import _, error_message, number
from viz.labels import tokens
from viz.panels import needs_network
from viz.session import patient_engine
from viz.session.state import Page, bind, decimals, update
from viz.widgets import download, numeric_tables
from viz.widgets.cards import choose_picture, one_screen, panel, say
from viz.widgets.clickable_figures import clickable

MOST_SAID = 3
"""Edges of the selected head that a sentence names, for each side."""


def show(page: Page) -> None:
    """Draws the page; in big mode one of its pictures, as large as the screen."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    with patient_engine.show_pending():
        try:
            found = page.engine.ask(question(page))
        except HeadlightError as error:
            say(error_message(error))
            return
        page = with_threshold(page, found)
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
        for sentence in _of_head(page, found):
            st.markdown(tokens.markdown(sentence))
        _table(page, found)
        with panel("composition"):
            _composition(page, found)
        paths.draw(page, found)


def question(page: Page) -> Circuit:
    """What the page asks: all rows, or the row that the view names."""
    row = _row(page)
    return Circuit(page.view.request(), None if row < 0 else row)


def _row(page: Page) -> int:
    """The row that is counted; -1: all, also where a link names a row that the run does not have."""
    row = page.view.of(CircuitView).row
    return row if row < len(_written(page)) else -1


def _written(page: Page) -> Tokens:
    """The tokens that the rows of the writing stack read."""
    attention = next(iter(page.trace.of("decoder", "self") or page.trace.attention.values()))
    return page.trace.tokens[attention.query_tokens].first(len(attention.mask))


def _one_picture(page: Page, found: CircuitGraph) -> None:
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
                _threshold(page, found, "collapsed")
            edges, left = _shown(page, found)
            gaps = {"count": len(edges), "left": left}
            st.caption(_("Edges shown: {count:,}. Of what heads used from earlier heads, {left} is not shown.", **gaps))
            canvas.draw("circuit", graph(page, found)[0], key="circuit", chosen=update)
        elif picture == "composition":
            _composition_picture(page, found)
        else:
            paths.draw_picture(page, found, picture == "kept")


def side_name(side: Side) -> str:
    """The side of a head, in the plural."""
    return {"query": _("queries"), "key": _("keys"), "value": _("values")}[side]


def head_name(head: Head) -> str:
    """The name of a head, counted from 1."""
    return tokens.site(Site.parse(head.site), head.head)


def _about(page: Page, found: CircuitGraph) -> None:
    """Draws the title, whether the sums are what ran, and the threshold."""
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{title()}**", width="content")
        _badge(page, found)
    rows, least = st.columns([1, 2])
    with rows:
        _rows(page)
    with least:
        _threshold(page, found, "visible")


def _rows(page: Page) -> None:
    """Draws the choice of the rows that are counted."""
    written, tied = _written(page), bind("row")
    st.session_state[tied["key"]] = _row(page)
    st.selectbox(
        _("Rows that are counted"),
        range(-1, len(written)),
        format_func=lambda row: _("all: the mean") if row < 0 else f"{row + 1} · {tokens.token(written, row)}",
        help=_("A head can use another head in a single row, which the mean over all rows hides: choose that row."),
        **tied,
    )


def _threshold(page: Page, found: CircuitGraph, label: Literal["visible", "collapsed"]) -> None:
    """Draws the slider of the smallest share, which shows the one of the page where nobody has chosen another.

    It ends at the largest share of an edge between two heads.
    """
    largest = max((edge.share for edge in found.edges(0.01) if edge.part.kind == "head"), default=0.0)
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
    drawn, said = graph(page, found)
    canvas.draw("circuit", drawn, key="circuit", chosen=update)
    st.caption(said)
    for sentence in stream_parts.about_the_run(page, _is_sound(page)):
        st.caption(sentence)


def graph(page: Page, found: CircuitGraph) -> tuple[bytes, str]:
    """The scene of the graph, whose edges have at least the share of the view, and what it leaves out."""
    page = with_threshold(page, found)
    edges, left = _shown(page, found)
    drawn = [
        scene.Edge(
            edge.side,
            (Site.parse(edge.part.place), edge.part.head),
            (Site.parse(edge.head.site), edge.head.head),
            edge.share,
            edge.used < 0,
            _said(edge),
        )
        for edge in edges
    ]
    gaps = {"count": len(edges), "least": number(page.view.of(CircuitView).least, ".2f"), "left": left}
    said = _(
        "Edges shown: {count:,}, with a share of at least {least}. Of everything that heads used from "
        "earlier heads, {left} is not shown. Thin: small share; a bar at the end: negative. The table also "
        "lists what heads used from embeddings, positions, feed-forward networks and biases.",
        **gaps,
    )
    return scene.scene(page.trace, drawn, page.attention.site, page.head), said


def with_threshold(page: Page, found: CircuitGraph) -> Page:
    """The page with the smallest share that is drawn: the chosen one, else the one of `CircuitGraph.readable_share`."""
    least = max(0.01, page.view.of(CircuitView).least or found.readable_share())
    return replace(page, view=page.view.changed(least=least))


def _shown(page: Page, found: CircuitGraph) -> tuple[list[Edge], str]:
    """The edges between heads that are shown, and the share that is not, in percent."""
    least = page.view.of(CircuitView).least
    return [edge for edge in found.edges(least) if edge.part.kind == "head"], number(found.left_out(least), ".0%")


def title() -> str:
    """What the graph shows."""
    return _("Which earlier heads each head used in this run")


def _is_sound(page: Page) -> bool:
    """Whether all weights of the run are numbers; those of a long run are computed when they are shown, and not for this."""
    kept = [own.weights for own in page.trace.attention.values() if isinstance(own.weights, np.ndarray)]
    return all(bool(np.isfinite(weights).all()) for weights in kept)


def _badge(page: Page, found: CircuitGraph) -> None:
    """Draws whether all sums are what the run recorded."""
    if not _is_sound(page):
        st.badge(_("Cannot be checked: it contains NaN or infinite values"), icon=":material/error:", color="red")
        return
    gap = tokens.power_of_ten(float(np.nanmax(found.difference)))
    if found.agrees:
        said = _("All sums match the run, largest difference {difference}", difference=gap)
        st.badge(said, icon=":material/check:", color="green")
    else:
        said = _("Some sums do not match the run, largest difference {difference}", difference=gap)
        st.badge(said, icon=":material/error:", color="red")


def _said(edge: Edge) -> str:
    """An edge in words."""
    gaps = {"part": stream_parts.name(edge.part), "head": head_name(edge.head), "share": number(edge.share, ".2f")}
    return {
        "query": _("{part} → queries of {head}: share {share}", **gaps),
        "key": _("{part} → keys of {head}: share {share}", **gaps),
        "value": _("{part} → values of {head}: share {share}", **gaps),
    }[edge.side]


def _of_head(page: Page, found: CircuitGraph) -> list[str]:
    """What the selected head used most, a sentence for each side; and whether it copies."""
    head = Head(str(page.attention.site), page.head)
    said, name = list[str](), head_name(head)
    own = sorted((edge for edge in found.edges(page.view.of(CircuitView).least) if edge.head == head), key=lambda edge: -edge.share)
    for side in SIDES:
        used = [(stream_parts.name(edge.part), number(edge.share, ".2f")) for edge in own if edge.side == side]
        there = [_("{title} ({name})", title=part, name=share) for part, share in used]
        if there:
            gaps = {"head": name, "parts": " · ".join(there[:MOST_SAID])}
            said.append(
                {
                    "query": _("{head}, used by its queries: {parts}", **gaps),
                    "key": _("{head}, used by its keys: {parts}", **gaps),
                    "value": _("{head}, used by its values: {parts}", **gaps),
                }[side]
            )
    copying = found.copying[found.heads.index(head)]
    if not np.isnan(copying):
        said.append(
            _(
                "{head}: copying score {copying} (1: what it reads becomes more likely)",
                head=name,
                copying=number(copying, "+.2f"),
            )
        )
    return said


def table(found: CircuitGraph) -> pd.DataFrame:
    """A row for each edge of every size, to the heads in the order of the run."""
    rows = [
        (stream_parts.name(edge.part), side_name(edge.side), head_name(edge.head), edge.share, edge.used, edge.composition)
        for edge in sorted(found.edges(), key=lambda edge: -edge.share)
    ]
    return pd.DataFrame(rows, columns=[_("from"), _("side"), _("to"), _("share"), _("used"), _("composition")])


def _table(page: Page, found: CircuitGraph) -> None:
    with st.expander(_("All edges as numbers"), icon=":material/table:"):
        whole = table(found)
        numeric_tables.draw(whole, hide_index=True)
        download.csv(whole, page.trace, "circuit", key="circuit-csv")


def _composition(page: Page, found: CircuitGraph) -> None:
    """Draws composition by the weights alone against the share in this run, for each pair of heads and each side."""
    st.markdown("**" + _("From the weights alone: how strongly two heads compose") + "**")
    st.caption(
        _(
            "Each point is an edge between two heads. From left to right: the norm of the product of both heads’ "
            "matrices, as a multiple of that of random matrices. From bottom to top: its share in this run."
        )
    )
    _composition_picture(page, found)
    copies = [row for row, value in enumerate(found.copying) if not np.isnan(value)]
    if copies:
        with st.expander(_("Copying scores of all heads"), icon=":material/table:"):
            scores = pd.DataFrame({_("head"): [head_name(found.heads[row]) for row in copies], _("copying"): found.copying[copies]})
            numeric_tables.draw(scores, hide_index=True, decimals=int(decimals(2)[1]))


def _composition_picture(page: Page, found: CircuitGraph) -> None:
    """Draws a point for each pair of heads and each side."""
    edges = [edge for edge in found.edges() if not np.isnan(edge.composition)]
    if not edges:
        st.caption(_("No head reads what an earlier head wrote."))
        return
    chance = dict(zip(found.heads, found.chance.tolist(), strict=True))
    across = np.array([edge.composition / chance[edge.head] for edge in edges])
    shares, names = np.array([edge.share for edge in edges]), [_said(edge) for edge in edges]
    axes = _("composition, as a multiple of chance"), _("share in this run")
    figure = importance.scatter(across, shares, names, [side_name(edge.side) for edge in edges], page.dark, axes)
    alt = _("For each pair of heads: how strongly they compose by their weights, and the share in this run")
    places = tuple((edge.head.site, edge.head.head) for edge in edges)
    clickable(figure, "composition", partial(_select, places), alt, (page.trace, alt.partition(":")[0]), fills=True)


def _select(places: tuple[tuple[str, int], ...], index: int) -> None:
    site, head = places[index]
    update(site=site, head=head)
