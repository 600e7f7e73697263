"""The panels of the page Circuit: the graph of all heads, its edges as numbers, and how strongly heads compose by their weights."""

from dataclasses import replace

import numpy as np
import pandas as pd

from model.features.circuit.circuits import SIDES, Circuit, CircuitGraph, Edge, Side
from model.features.what_if.results import Head
from model.trace.types import Site, Tokens
from viz.features.circuit import graph_scene as scene
from viz.features.circuit import stream_parts
from viz.features.circuit.view import CircuitView
from viz.figures import importance
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.panels import NotDrawable, Panel, Plot, Scene, Table
from viz.session.state import Page

MOST_SAID = 3
"""Edges of the selected head that a sentence names, for each side."""


def question(page: Page) -> Circuit:
    """What the page asks: all rows, or the row that the view names."""
    row = counted_row(page)
    return Circuit(page.view.request(), None if row < 0 else row)


def counted_row(page: Page) -> int:
    """The row that is counted; -1: all, also where a link names a row that the run does not have."""
    row = page.view.of(CircuitView).row
    return row if row < len(written_tokens(page)) else -1


def written_tokens(page: Page) -> Tokens:
    """The tokens that the rows of the writing stack read."""
    attention = next(iter(page.trace.of("decoder", "self") or page.trace.attention.values()))
    return page.trace.tokens[attention.query_tokens].first(len(attention.mask))


def title() -> str:
    """What the graph shows."""
    return _("Which earlier heads each head used in this run")


def of_graph(page: Page, graph: CircuitGraph) -> Panel:
    """The graph, whose edges have at least the share of the view, and what it leaves out."""
    page = with_threshold(page, graph)
    edges, left = drawn_edges(page, graph)
    drawn = [
        scene.Edge(
            edge.side,
            (Site.parse(edge.part.place), edge.part.head),
            (Site.parse(edge.head.site), edge.head.head),
            edge.share,
            edge.used < 0,
            edge_in_words(edge),
        )
        for edge in edges
    ]
    fields = {"count": len(edges), "least": number(page.view.of(CircuitView).least, ".2f"), "left": left}
    words = _(
        "Edges shown: {count:,}, with a share of at least {least}. Of everything that heads used from "
        "earlier heads, {left} is not shown. Thin: small share; a bar at the end: negative. The table also "
        "lists what heads used from embeddings, positions, feed-forward networks and biases.",
        **fields,
    )
    content = Scene("Circuit", scene.scene(page.trace, drawn, page.attention.site, page.head))
    return Panel("circuit", title(), content, words, paper=tuple)


def with_threshold(page: Page, graph: CircuitGraph) -> Page:
    """The page with the smallest share that is drawn: the chosen one, else the one of `CircuitGraph.readable_share`."""
    least = max(0.01, page.view.of(CircuitView).least or graph.readable_share())
    return replace(page, view=page.view.changed(least=least))


def drawn_edges(page: Page, graph: CircuitGraph) -> tuple[list[Edge], str]:
    """The edges between heads that are shown, and the share that is not, in percent."""
    least = page.view.of(CircuitView).least
    return [edge for edge in graph.edges(least) if edge.part.kind == "head"], number(graph.left_out(least), ".0%")


def side_name(side: Side) -> str:
    """The side of a head, in the plural."""
    return {"query": _("queries"), "key": _("keys"), "value": _("values")}[side]


def head_name(head: Head) -> str:
    """The name of a head, counted from 1."""
    return tokens.site(Site.parse(head.site), head.head)


def edge_in_words(edge: Edge) -> str:
    """An edge in words."""
    fields = {"part": stream_parts.name(edge.part), "head": head_name(edge.head), "share": number(edge.share, ".2f")}
    return {
        "query": _("{part} → queries of {head}: share {share}", **fields),
        "key": _("{part} → keys of {head}: share {share}", **fields),
        "value": _("{part} → values of {head}: share {share}", **fields),
    }[edge.side]


def is_finite(page: Page) -> bool:
    """Whether all weights of the run are numbers; those of a long run are computed when they are shown, and not for this."""
    kept = [attention.weights for attention in page.trace.attention.values() if isinstance(attention.weights, np.ndarray)]
    return all(bool(np.isfinite(weights).all()) for weights in kept)


def used_by_head(page: Page, graph: CircuitGraph) -> list[str]:
    """What the selected head used most, a sentence for each side; and whether it copies."""
    head = Head(str(page.attention.site), page.head)
    sentences, name = list[str](), head_name(head)
    used_edges = sorted(
        (edge for edge in graph.edges(page.view.of(CircuitView).least) if edge.head == head), key=lambda edge: -edge.share
    )
    for side in SIDES:
        used = [(stream_parts.name(edge.part), number(edge.share, ".2f")) for edge in used_edges if edge.side == side]
        used_parts = [_("{title} ({name})", title=part, name=share) for part, share in used]
        if used_parts:
            fields = {"head": name, "parts": " · ".join(used_parts[:MOST_SAID])}
            sentences.append(
                {
                    "query": _("{head}, used by its queries: {parts}", **fields),
                    "key": _("{head}, used by its keys: {parts}", **fields),
                    "value": _("{head}, used by its values: {parts}", **fields),
                }[side]
            )
    copying = graph.copying[graph.heads.index(head)]
    if not np.isnan(copying):
        sentences.append(
            _(
                "{head}: copying score {copying} (1: what it reads becomes more likely)",
                head=name,
                copying=number(copying, "+.2f"),
            )
        )
    return sentences


def of_edges(graph: CircuitGraph) -> Panel:
    """All edges of every size as numbers."""
    return Panel("circuit-edges", _("All edges as numbers"), Table(table(graph), decimals=4, named=False))


def table(graph: CircuitGraph) -> pd.DataFrame:
    """A row for each edge of every size, to the heads in the order of the run."""
    rows = [
        (stream_parts.name(edge.part), side_name(edge.side), head_name(edge.head), edge.share, edge.used, edge.composition)
        for edge in sorted(graph.edges(), key=lambda edge: -edge.share)
    ]
    return pd.DataFrame(rows, columns=[_("from"), _("side"), _("to"), _("share"), _("used"), _("composition")])


def of_composition(graph: CircuitGraph) -> Panel:
    """Composition by the weights alone against the share in this run: a point for each pair of heads and each side.

    Raises:
        NotDrawable: no head reads what an earlier head wrote.
    """
    edges = composing(graph)
    if not edges:
        raise NotDrawable(_("No head reads what an earlier head wrote."))
    chance = dict(zip(graph.heads, graph.chance.tolist(), strict=True))
    across = np.array([edge.composition / chance[edge.head] for edge in edges])
    shares, names = np.array([edge.share for edge in edges]), [edge_in_words(edge) for edge in edges]
    axes, sides = (_("composition, as a multiple of chance"), _("share in this run")), [side_name(edge.side) for edge in edges]
    alt = _("For each pair of heads: how strongly they compose by their weights, and the share in this run")
    words = _(
        "Each point is an edge between two heads. From left to right: the norm of the product of both heads’ "
        "matrices, as a multiple of that of random matrices. From bottom to top: its share in this run."
    )
    plot = Plot(
        lambda dark: importance.scatter(across, shares, names, sides, dark, axes), alt, "composition", alt.partition(":")[0]
    )
    return Panel("composition", _("From the weights alone: how strongly two heads compose"), plot, words)


def composing(graph: CircuitGraph) -> list[Edge]:
    """The edges between heads, whose composition is known."""
    return [edge for edge in graph.edges() if not np.isnan(edge.composition)]


def of_copying(graph: CircuitGraph) -> Panel | None:
    """The copying scores of all heads; None: no head has one."""
    rows = [row for row, value in enumerate(graph.copying) if not np.isnan(value)]
    scores = pd.DataFrame({_("head"): [head_name(graph.heads[row]) for row in rows], _("copying"): graph.copying[rows]})
    return Panel("copying", _("Copying scores of all heads"), Table(scores, decimals=2, named=False)) if rows else None
