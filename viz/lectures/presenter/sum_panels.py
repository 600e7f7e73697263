"""Panels of sums: why a cell has its score, why a token was generated, and which earlier heads each head used (docs/why.md)."""

from model.attribution.questions import Prune
from model.attribution.sums import Why, Writes
from viz.features.circuit import page as circuit
from viz.features.circuit import why, writes
from viz.figures.costs import Line
from viz.i18n.translate import _, join_sentences, number
from viz.lectures.presenter import tables
from viz.lectures.presenter.explore_panels import PanelWithScene
from viz.lectures.presenter.headless_page import NotDrawable
from viz.lectures.presenter.panels import Panel
from viz.session.state import Page


def of_score(page: Page, query: int, key: int) -> PanelWithScene:
    """The score of a cell as a table: parts of the query × parts of the key, with sums.

    Raises:
        HeadlightError: it is not known.
    """
    found = page.engine.ask(Why(page.view.request(), str(page.attention.site), page.head, query, key, why.compared(page)))
    texts = why.cell_texts(page, found)
    down, across, values = why.with_sums(found)
    rows = [[one, *(number(float(value), "z.2f") for value in row)] for one, row in zip(down, values, strict=True)]
    panel = Panel("Table", "why", why.title(found, texts), join_sentences(why.sentences(found, texts)))
    return panel, tables.table(["", *across], rows, len(rows) - 1)


def of_token(page: Page) -> PanelWithScene:
    """The logit of the step's token as bars: the strongest parts, the others, and their sum.

    Raises:
        HeadlightError: it is not known.
        NotDrawable: the run generated no token.
    """
    if reason := writes.reason_against(page):
        raise NotDrawable(reason)
    found = page.engine.ask(Writes(page.view.request(), writes.token(page), writes.rival(page)))
    names, values = writes.strongest(found)
    return Panel("Bars", "writes", writes.title(found), writes.meaning(found)), tables.bars(names, values, len(values) - 1)


def of_circuit(page: Page) -> PanelWithScene:
    """The graph of all heads, with the edges of at least the view's share.

    Raises:
        HeadlightError: it is not known.
    """
    found = page.engine.ask(circuit.question(page))
    scene, said = circuit.graph(page, found)
    return Panel("Circuit", "circuit", circuit.title(), said), scene


def of_prune(page: Page) -> PanelWithScene:
    """The log-probability of what was written over the number of heads silenced, with a dot where a word changes.

    Raises:
        HeadlightError: the run is not possible.
    """
    found = page.engine.ask(Prune(page.view.request()))
    totals, breaks = found.curve.sum(axis=1).tolist(), found.breaks_at
    lines = [Line(_("log-probability of what was written"), totals)]
    said = _("Always the head that costs least is silenced next.")
    if breaks is not None:
        gaps = {"breaks": breaks, "all": len(totals) - 1}
        told = _("The dot: {breaks} of {all} are silenced, and a word changes for the first time.", **gaps)
        said = join_sentences([said, told])
    mark = (float(breaks), totals[breaks]) if breaks is not None else None
    scene = tables.chart(range(len(totals)), lines, (_("heads silenced"), _("log-probability")), mark=mark)
    return Panel("Chart", "prune", _("Heads silenced one after another"), said), scene
