"""The other panels of the page Explore, beside the weights: a reading, the calculation of a cell, statistics, the logit lens."""

from collections.abc import Callable, Iterator, Mapping

from model.errors import HeadlightError
from model.trace.types import Site
from viz import export, labels
from viz.page import Page
from viz.presenting import panels, tables
from viz.presenting.panels import Panel
from viz.presenting.resolve import CannotShow
from viz.readings import heads
from viz.texts import _, joined, number, sentence
from viz.views import lens, reading
from viz.walk import calculation

Drawn = tuple[Panel, bytes]
"""A panel with its scene."""


def of_reading(page: Page) -> Iterator[Drawn]:
    """The reading that the link asks for; nothing where that is the weights of the head.

    Raises:
        CannotShow: this run has no such reading.
    """
    shown = reading.shown(page)
    if reading.is_raw(page, shown):
        if shown.notes:
            raise CannotShow(joined(shown.notes))
        return
    rows, keys = labels.queries(page.trace, page.attention), labels.keys(page.trace, page.attention)
    said = joined((shown.reading.meaning, *shown.notes))
    title = reading.title(page, shown)
    if shown.values.ndim == 1:
        yield Panel("Bars", "reading", title, said), tables.bars(rows, shown.values.tolist(), page.view.query)
        return
    axes = labels.query_axis(page.trace, page.attention.site), labels.key_axis(page.trace, page.attention.site)
    columns = [keys[key] for key in shown.keys]
    yield Panel("Cells", "reading", title, said), panels.numbers(shown.values, rows, columns, axes)


def of_cell(page: Page, query: int, key: int) -> Iterator[Drawn]:
    """How the weight of a cell was calculated, and the whole row as numbers.

    Raises:
        CannotShow: this run has no calculation.
    """
    try:
        found = page.engine.explain(page.view.request(), str(page.attention.site), page.head, query, key)
    except HeadlightError as error:
        raise CannotShow(sentence(error)) from error
    lines = [*calculation.score(found), *calculation.weight(found), calculation.Line(calculation.verdict(found))]
    lines += calculation.share(found)
    yield Panel("Text", "calculation", calculation.title(page, query, key)), tables.text(lines)
    table = calculation.table(page, found)
    yield Panel("Table", "row", _("The whole row as numbers")), tables.of_frame(table, key)


def of_parts(page: Page) -> Iterator[Drawn]:
    """The parts of the page that the link opens.

    Raises:
        HeadlightError, CannotShow: a part cannot be computed.
    """
    for name in page.view.opened.split():
        yield _PARTS[name](page)


def _numbers(page: Page) -> Drawn:
    shown = reading.shown(page)
    if max(page.attention.mask.shape) > reading.LONGEST:
        raise CannotShow(_("Tables are drawn for at most {most} tokens per side.", most=reading.LONGEST))
    raw = shown.values.ndim == 2
    table = (
        export.map_table(page.trace, page.attention, shown.values, shown.keys)
        if raw
        else export.row_table(page.trace, page.attention, shown.values, shown.quantity)
    )
    title = _("{title}: {quantity}", title=reading.title(page, shown), quantity=shown.quantity)
    return Panel("Table", "numbers", title), tables.of_frame(table, page.view.query, 2)


def _heads(page: Page) -> Drawn:
    found, explained = heads.all_heads(page.trace), heads.explanations()
    rows = [
        [labels.site(Site.parse(site), head), *(number(value, ".3f") for value in values)]
        for (site, head), values in zip(found.index, found[list(explained)].to_numpy(float).tolist(), strict=True)
    ]
    columns = [_("head"), *(explanation.title for explanation in explained.values())]
    chosen = list(found.index).index((str(page.attention.site), page.head))
    return Panel("Table", "heads", _("Statistics of all heads")), tables.table(columns, rows, chosen)


def _lens(page: Page) -> Drawn:
    if reason := lens.reason_against(page):
        raise CannotShow(reason)
    found, words = lens.computed(page.view.request(keep=("hidden",)), page.engine, page.info.spec)
    positions, layers, title = lens.axes(page, found)
    best = found.probabilities[:, :, 0].T  # [position, layer]
    said = [
        [f"{word} {number(share, '.2f')}" for word, share in zip(*row, strict=True)]
        for row in zip(words[:, :, 0].T, best, strict=True)
    ]
    rows = [[position, *texts] for position, texts in zip(positions, said, strict=True)]
    columns = [title, *(_("after layer {layer}", layer=layer) for layer in layers)]
    heading = _("Logit lens: the most likely next token after each layer")
    return Panel("Table", "lens", heading), tables.table(columns, rows, page.view.query, best)


_PARTS: Mapping[str, Callable[[Page], Drawn]] = {"numbers": _numbers, "heads": _heads, "lens": _lens}
