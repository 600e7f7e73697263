"""The panels of the feature Circuit: the graph of all heads, why a cell has its score, and what a token is made of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from model.features.circuit.circuits import CircuitGraph
from model.features.circuit.sums import LogitSum, Why, Writes
from model.features.what_if.questions import Heads
from viz.features.circuit import graph_panels, path_panels, stream_parts, why_panels, write_panels
from viz.i18n.translate import _, join_sentences
from viz.panels import NotDrawable, Panel
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import panels as explore


def panels(page: Page, _link: ViewState) -> list[Panel]:
    """The graph, with the edges of at least the view's share, and the heads.

    Raises:
        HeadlightError: the graph is not known.
    """
    return [graph_panels.of_graph(page, _graph(page)), *explore.of_run(page)]


def of_score(page: Page, query: int, key: int) -> list[Panel]:
    """The score of a cell: parts of the query × parts of the key, with sums.

    Raises:
        HeadlightError: it is not known.
    """
    question = Why(page.view.request(), str(page.attention.site), page.head, query, key, why_panels.compared(page))
    return [why_panels.of_score(page, page.engine.ask(question))]


def of_token(page: Page) -> list[Panel]:
    """The logit of the step's token as bars: the strongest parts, the others, and their sum.

    Raises:
        HeadlightError: it is not known.
        NotDrawable: the run generated no token.
    """
    return [write_panels.of_token(_logit_sum(page))]


def _logit_sum(page: Page) -> LogitSum:
    if reason := stream_parts.reason_against(page):
        raise NotDrawable(reason)
    return page.engine.ask(Writes(page.view.request(), write_panels.token(page), write_panels.rival(page)))


def _of_heads(page: Page) -> list[Panel]:
    return [write_panels.of_map(page, _logit_sum(page))]


def _of_sources(page: Page) -> list[Panel]:
    return [write_panels.of_sources(page, _logit_sum(page))]


def _of_totals(page: Page) -> list[Panel]:
    logit_sum = _logit_sum(page)
    return [write_panels.of_totals(logit_sum, page.engine.ask(Heads(page.view.request(), ("without",), by="mean")))]


def _of_numbers(page: Page) -> list[Panel]:
    return [write_panels.of_numbers(write_panels.table(_logit_sum(page)))]


PARTS_OF_TOKEN: Mapping[str, Callable[[Page], list[Panel]]] = {
    "writes-heads": _of_heads,
    "writes-keys": _of_sources,
    "writes-totals": _of_totals,
    "writes-numbers": _of_numbers,
}
"""Parts of what wrote a token, by their names in a link's `open`."""


def _graph(page: Page) -> CircuitGraph:
    return page.engine.ask(graph_panels.question(page))


def _of_graph(page: Page, _link: ViewState) -> Iterator[Panel]:
    circuit = _graph(page)
    graph = graph_panels.of_graph(page, circuit)
    used = graph_panels.used_by_head(graph_panels.with_threshold(page, circuit), circuit)
    yield replace(graph, words=join_sentences([graph.words, *used]))


def _of_edges(page: Page, _link: ViewState) -> Iterator[Panel]:
    yield graph_panels.of_edges(_graph(page))


def _of_composition(page: Page, _link: ViewState) -> Iterator[Panel]:
    circuit = _graph(page)
    yield graph_panels.of_composition(circuit)
    if copying := graph_panels.of_copying(circuit):
        yield copying


def _of_paths(page: Page, _link: ViewState) -> Iterator[Panel]:
    """What each path carries of what tells the sentence from the corrupted one of the link."""
    pairs = path_panels.pair_of_page(page)
    if not pairs or not page.trace.steps:
        raise NotDrawable(_("The link names no corrupted sentence, or this run generated nothing."))
    effects = page.engine.ask(path_panels.question(page, *pairs[0], shared=False))
    yield path_panels.map_of(page, effects, path_panels.strongest_side(effects)).panel
    yield path_panels.of_kept(effects)
    yield path_panels.of_table(effects)


PARTS: Mapping[str, Callable[[Page, ViewState], Iterator[Panel]]] = {
    "circuit": _of_graph,
    "circuit-edges": _of_edges,
    "composition": _of_composition,
    "paths": _of_paths,
}
"""As `viz.feature.FeaturePage.parts`."""
