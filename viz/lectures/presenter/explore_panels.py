"""The other panels of the page Explore, beside the weights: a reading, the calculation of a cell, statistics, the logit lens."""

from collections.abc import Callable, Iterator, Mapping

from model.engine.api import Explain
from model.errors import HeadlightError
from model.trace.types import Site
from viz.canvas.scenes import matrix
from viz.export import tables as export
from viz.i18n.translate import _, error_message, join_sentences, number
from viz.labels import measures, tokens
from viz.lectures.presenter import tables
from viz.lectures.presenter.headless_page import NotDrawable
from viz.lectures.presenter.panels import Panel
from viz.metrics import heads
from viz.session.state import Page
from viz.views.explore import logit_lens, reading
from viz.views.step import cell_calculation

PanelWithScene = tuple[Panel, bytes]
"""A panel with its scene."""


def of_reading(page: Page) -> Iterator[PanelWithScene]:
    """The reading that the link asks for; nothing where that is the weights of the head.

    Raises:
        NotDrawable: this run has no such reading.
    """
    shown = reading.shown(page)
    if reading.is_raw(page, shown) and shown.notes:
        raise NotDrawable(join_sentences(shown.notes))
    if shown.reading.name == "writes":
        raise NotDrawable(_("What a cell writes is shown on Explore only, for the cell under the pointer."))
    if shown.reading.name == "head" and reading.hides(page) != "special":  # the heads themselves show it
        return
    rows, keys = tokens.queries(page.trace, page.attention), tokens.keys(page.trace, page.attention)
    said = join_sentences((shown.reading.meaning, *shown.notes))
    title = reading.title(page, shown)
    if shown.values.ndim == 1:
        yield Panel("Bars", "reading", title, said), tables.bars(rows, shown.values.tolist(), page.view.query)
        return
    axes = tokens.query_axis(page.trace, page.attention.site), tokens.key_axis(page.trace, page.attention.site)
    columns = [keys[key] for key in shown.keys]
    yield Panel("Cells", "reading", title, said), matrix.numbers(shown.values, rows, columns, axes)


def of_cell(page: Page, query: int, key: int) -> Iterator[PanelWithScene]:
    """How the weight of a cell was calculated, and the whole row as numbers.

    Raises:
        NotDrawable: this run has no calculation.
    """
    try:
        found = page.engine.ask(Explain(page.view.request(), str(page.attention.site), page.head, query, key))
    except HeadlightError as error:
        raise NotDrawable(error_message(error)) from error
    lines = [
        *cell_calculation.score(found),
        *cell_calculation.weight(found),
        cell_calculation.Line(cell_calculation.verdict(found)),
    ]
    lines += cell_calculation.share(found)
    yield Panel("Text", "calculation", cell_calculation.title(page, query, key)), tables.text(lines)
    table = cell_calculation.table(page, found)
    yield Panel("Table", "row", _("The whole row as numbers")), tables.of_frame(table, key)


def of_parts(page: Page) -> Iterator[PanelWithScene]:
    """The parts of the page that the link opens.

    Raises:
        HeadlightError, NotDrawable: a part cannot be computed.
    """
    for name in page.view.opened.split():
        if name in _PARTS:
            yield _PARTS[name](page)


def _numbers(page: Page) -> PanelWithScene:
    shown = reading.shown(page)
    if max(page.attention.mask.shape) > reading.LONGEST:
        raise NotDrawable(_("Tables are drawn for at most {most} tokens per side.", most=reading.LONGEST))
    raw = shown.values.ndim == 2
    table = (
        export.map_table(page.trace, page.attention, shown.values, shown.keys)
        if raw
        else export.row_table(page.trace, page.attention, shown.values, shown.quantity)
    )
    title = _("{title}: {quantity}", title=reading.title(page, shown), quantity=shown.quantity)
    return Panel("Table", "numbers", title), tables.of_frame(table, page.view.query, 2)


def _heads(page: Page) -> PanelWithScene:
    found, titles = heads.all_heads(page.trace), measures.titles()
    rows = [
        [tokens.site(Site.parse(site), head), *(number(value, ".3f") for value in values)]
        for (site, head), values in zip(found.index, found[list(heads.SHOWN)].to_numpy(float).tolist(), strict=True)
    ]
    columns = [_("head"), *(titles[name] for name in heads.SHOWN)]
    chosen = list(found.index).index((str(page.attention.site), page.head))
    return Panel("Table", "heads", _("Statistics of all heads")), tables.table(columns, rows, chosen)


def _lens(page: Page) -> PanelWithScene:
    if reason := logit_lens.reason_against(page):
        raise NotDrawable(reason)
    found, words = logit_lens.computed(page.view.request(keep=("hidden",)), page.engine, page.info.spec)
    positions, layers, title = logit_lens.axes(page, found)
    best = found.probabilities[:, :, 0].T  # [position, layer]
    said = [
        [f"{word} {number(share, '.2f')}" for word, share in zip(*row, strict=True)]
        for row in zip(words[:, :, 0].T, best, strict=True)
    ]
    rows = [[position, *texts] for position, texts in zip(positions, said, strict=True)]
    columns = [title, *(_("after layer {layer}", layer=layer) for layer in layers)]
    heading = _("Logit lens: the most likely next token after each layer")
    return Panel("Table", "lens", heading), tables.table(columns, rows, page.view.query, best)


_PARTS: Mapping[str, Callable[[Page], PanelWithScene]] = {"numbers": _numbers, "heads": _heads, "lens": _lens}
