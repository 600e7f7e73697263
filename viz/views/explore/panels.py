"""The panels of the page Explore: the heads of a run, a reading, the calculation of a cell, and the parts that a link opens."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import pandas as pd
import plotly.graph_objects as go

from model.engine.api import Texts
from model.requests.request import Decoding
from model.trace.types import Site
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import continuations, matrix, overlay
from viz.canvas.scenes.attention import ReadingScene
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.transport import changed, unpack
from viz.feature import cell_panels, folded_parts
from viz.figures import heatmap, row_entropy
from viz.i18n.translate import _, join_sentences, number, titled
from viz.labels import alt_text, measures, tokens
from viz.labels.sounds import hearing
from viz.metrics import heads as head_measures
from viz.metrics.aggregation import without_first
from viz.metrics.similar_heads import Likeness, most_alike
from viz.panels import Bars, NotDrawable, OfRun, Panel, Plot, Scene, Table
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import lens_panels, reading, sound_panels
from viz.views.explore.reading import SiteReading
from viz.views.step import cell_panels as of_cells

LONGEST = 64
"""Most tokens per side of a head that is drawn as lines."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The heads of the run; first what else the link opens: a reading, parts, the calculation of a cell."""
    before = [*of_link_reading(page), *of_parts(page)]
    if min(page.view.query, page.view.key) >= 0:
        before += of_cell(page)
    on_image = hearing(page.trace) is not None or overlay.fits(page.trace, page.attention.site)
    opens = not before and not on_image and (bool(link.site) or _is_chosen(page))
    return [*before, *of_run(page, opens, "whole" if opens else "half")]


def _is_chosen(page: Page) -> bool:
    """Whether the view selects a row, or another head than the first."""
    return page.view.query >= 0 or page.view.head > 0


def of_run(page: Page, opens: bool | None = None, width: Literal["whole", "half"] = "half") -> list[Panel]:
    """Strips, atlas and lines of a run; of an image or a sound what lies over it.

    Args:
        opens: whether the selected head opens large; None: where the view selects one.
        width: of the overview.
    """
    trace, site, head, query = page.trace, page.attention.site, page.head, page.view.query
    rest = overviews.leaves_out(page.view.hide, trace) == "first"
    data, pieces = standalone.atlas_with_parts(trace, site, head, query, rest)
    if first := unpack(data)[0].get("first"):
        data = changed(data, {}, first={**first, "button": ""})  # the link decides
    opens = _is_chosen(page) if opens is None else opens
    figure, content = "head" if opens else "atlas", Scene("Atlas", data, pieces, follows=True)
    atlas = Panel("atlas", "", content, width=width, selected={"large": opens}, paper=lambda: (printed(page, figure),))
    if hearing(trace) is not None:
        return [sound_panels.of_sound(page, printed(page, "head")), atlas]
    if overlay.fits(trace, site):
        image = Scene("Overlay", overlay.scene(trace, site, head, query, page.view.overlay), follows=True)
        return [Panel("overlay", "", image, width="half", paper=lambda: (printed(page, "image"),)), atlas]
    strips = Panel("strips", "", Scene("Strips", scene.strips(trace, site, query), follows=True), paper=tuple)
    return [strips, atlas, *_lines(page, rest)]


def printed(page: Page, figure: str, before: str = "") -> OfRun:
    """What paper draws of the page's run in the place of a drawing.

    Args:
        figure: its name among the figures that every run has.
        before: a sentence before its title.
    """
    query = page.view.query if page.view.query < page.attention.weights.shape[1] else -1
    view = page.view
    return OfRun(
        figure, page.trace, page.attention.site, page.head, query, hypothesis=view.hypothesis, overlay=view.overlay, before=before
    )


def _lines(page: Page, rest: bool) -> Iterator[Panel]:
    """The selected head as lines, unless it has too many tokens."""
    trace, attention = page.trace, page.attention
    if max(attention.mask.shape) > LONGEST:
        return
    weights = without_first(parts.allowed(attention.head(page.head), attention.mask)) if rest else None
    title = tokens.head_name(trace, attention.site, page.head)
    read = None if weights is None else ReadingScene("without-first", title, weights)
    drawn = changed(scene.lines(trace, attention.site, page.head, page.view.query, read), strings.lines_alone())
    content = Scene("Lines", drawn, follows=True)
    yield Panel("lines", "", content, width="half", paper=lambda: (printed(page, "lines"),))


def of_link_reading(page: Page) -> Iterator[Panel]:
    """The reading that the link asks for; nothing where that is the weights of the head.

    Raises:
        NotDrawable: this run has no such reading.
    """
    site_reading = reading.of_page(page)
    if reading.is_raw(page, site_reading) and site_reading.notes:
        raise NotDrawable(join_sentences(site_reading.notes))
    if site_reading.reading.name == "writes":
        raise NotDrawable(_("What a cell writes is shown on Explore only, for the cell under the pointer."))
    if site_reading.reading.name != "head" or reading.hides(page) == "special":  # else the heads themselves show it
        yield of_reading(page, site_reading)


def of_reading(page: Page, site_reading: SiteReading) -> Panel:
    """A reading of the selected site: cells, or bars where it has one number for each row."""
    rows, keys = tokens.queries(page.trace, page.attention), tokens.keys(page.trace, page.attention)
    if site_reading.values.ndim == 1:
        content: Bars | Scene = Bars(rows, site_reading.values.tolist(), page.view.query)
    else:
        axes = tokens.query_axis(page.trace, page.attention.site), tokens.key_axis(page.trace, page.attention.site)
        content = Scene("Cells", matrix.numbers(site_reading.values, rows, [keys[key] for key in site_reading.keys], axes))

    def on_page() -> Plot:
        return Plot(lambda dark: figure_of_reading(page, site_reading, dark), reading_in_words(page, site_reading), "reading")

    words = join_sentences((site_reading.reading.meaning, *site_reading.notes))
    return Panel("reading", reading.title(page, site_reading), content, words, on_page=on_page)


def figure_of_reading(page: Page, site_reading: SiteReading, dark: bool) -> go.Figure:
    """A reading as a figure."""
    trace, attention, query = page.trace, page.attention, page.view.query
    if site_reading.most is not None:
        return row_entropy.entropy(trace, attention, site_reading.values, site_reading.most, dark, query)
    cells = heatmap.Cells(site_reading.values, site_reading.quantity, site_reading.probabilities, site_reading.keys)
    return heatmap.cells(trace, attention, cells, dark, query)


def reading_in_words(page: Page, site_reading: SiteReading) -> str:
    """The figure of a reading in words; of derived numbers, where the largest and the smallest are."""
    title = reading.title(page, site_reading)
    if site_reading.values.ndim == 1:
        rows = tokens.queries(page.trace, page.attention, longest=None)
        return titled(title, alt_text.bars(rows, site_reading.values.tolist()))
    if site_reading.reading.name != "head":
        return titled(title, alt_text.table(site_reading.values, tokens.key_axis(page.trace, page.attention.site)))
    if len(site_reading.keys) < page.attention.mask.shape[1]:
        kept = alt_text.kept(page.trace, page.attention, site_reading.values, site_reading.keys.tolist())
        return titled(title, join_sentences((*site_reading.notes, kept)))
    return titled(title, alt_text.head(page.trace, page.attention, page.head))


def of_cell(page: Page) -> list[Panel]:
    """What the panel of the link's cell shows: how its weight was calculated, or what a feature says of it."""
    query, key = page.view.query, page.view.key
    brought = cell_panels().get(page.view.cell)
    if brought is not None and brought.panels is not None:
        return list(brought.panels(page, query, key))
    return list(of_cells.calculation(page, query, key))


def of_parts(page: Page) -> Iterator[Panel]:
    """The parts of the page that the link opens.

    Raises:
        HeadlightError, NotDrawable: a part cannot be computed.
    """
    opened = page.view.opened.split()
    yield from (part(page) for name, part in _PARTS.items() if name in opened)
    for folded in folded_parts():
        drawn = folded.parts if folded.panels is None else {folded.name: folded.panels, **folded.parts}
        for name, part_of in drawn.items():
            if name in opened:
                yield from part_of(page)


def next_row(page: Page) -> continuations.Row | None:
    """What a language model predicted after its prompt; None: another model, or it wrote nothing."""
    return continuations.after(page.trace, page.info.spec.get("suppressed", ())) if page.info.continues else None


def of_next(page: Page, row: continuations.Row) -> Panel:
    """What a language model may write next: its likeliest tokens as bars that move with temperature, top k and top p."""
    ids = row.likeliest()
    texts = page.engine.ask(Texts(page.info.name, strip="source", ids=ids, settings=page.view.parsed_settings()))
    samples = page.view.method == "sample"  # then the sidebar has temperature, top k and top p
    asked = page.view.decoding() if samples else Decoding()
    names = dict(zip(ids, map(tokens.word, texts), strict=True))
    start = asked.temperature, asked.top_k, asked.top_p
    last = tokens.word(page.trace.tokens["source"].texts[row.place])
    about = _(
        "The most likely tokens after “{token}”, as this run samples them. Click or tap a token to continue with it.",
        token=last,
    )
    turns = _(
        "The most likely tokens after “{token}”. Move a slider and the bars follow, without another run. Click or tap a "
        "token to continue with it.",
        token=last,
    )
    content = Scene("Next", continuations.scene(page.trace, row, names, start, turned=not samples))
    return Panel("next", _("What comes next"), content, about=about if samples else turns, width="half")


def _next(page: Page) -> Panel:
    if (row := next_row(page)) is None:
        raise NotDrawable(_("This run generated nothing."))
    return of_next(page, row)


def of_facts(page: Page, site_reading: SiteReading) -> Panel:
    """The statistics of the selected head."""
    statistics, titles = head_measures.head_statistics(page.trace, page.attention, page.head), measures.titles()
    texts = [_("not defined") if math.isnan(value) else number(value, ".2f") for value in statistics.values.values()]
    frame = pd.DataFrame({"": texts}, index=pd.Index([titles[name] for name in statistics.values], name=""))
    return Panel("facts", _("This head"), Table(frame), join_sentences(notes_of_facts(page, site_reading)), width="half")


def notes_of_facts(page: Page, site_reading: SiteReading) -> list[str]:
    """What to know when reading the statistics of a head, sentence by sentence."""
    statistics = head_measures.head_statistics(page.trace, page.attention, page.head)
    notes = [] if reading.is_raw(page, site_reading) else [weights_alone()]
    if page.attention.site.stack == "decoder" and not page.trace.of_program:
        rows = tokens.queries(page.trace, page.attention)
        row = rows[min(max(page.view.query, 1), len(rows) - 1)]
        notes.append(_("Rows are labeled “token read → token generated next”, here “{row}”.", row=row))
    writes = bool(page.trace.steps)
    what = (
        _("Attention shows what a head attends to, not why the model chooses a word.")
        if writes
        else _("Attention shows what a head attends to, not what the model makes of it.")
    )
    return [*notes, measures.over_rows(statistics.rows), what]


def weights_alone() -> str:
    """What is said of statistics beside a reading that is not the weights of the head."""
    return _("These numbers describe the weights of the heads; they do not depend on the chosen view.")


def of_similar(page: Page, similar: tuple[Likeness, ...]) -> Panel:
    """The heads most similar to the selected one.

    Args:
        similar: as `viz.metrics.similar_heads.most_alike` finds them.
    """
    names = pd.Index([tokens.site(head.site, head.head) for head in similar], name=_("head"))
    frame = pd.DataFrame({_("divergence (bits)"): [head.divergence for head in similar]}, index=names)
    words = _("Jensen-Shannon divergence between the rows of two heads, averaged: 0 bits = identical, 1 bit = nothing in common.")
    about = _("Only heads with the same query and key tokens are compared. Similar heads may still move different things.")
    return Panel("alike", _("Similar heads"), Table(frame), words, about, width="half")


def of_numbers(page: Page, site_reading: SiteReading) -> Panel:
    """The numbers of a reading as a table; with more decimals on the page, which has room for them."""
    frame = reading.table(page, site_reading)
    title = _("{title}: {quantity}", title=reading.title(page, site_reading), quantity=site_reading.quantity)
    return Panel("numbers", title, Table(frame, page.view.query, decimals=2), on_page=lambda: Table(frame, decimals=4))


def _numbers(page: Page) -> Panel:
    if not reading.fits(page):
        raise NotDrawable(_("Tables are drawn for at most {most} tokens per side.", most=reading.LONGEST))
    return of_numbers(page, reading.of_page(page))


def of_heads(page: Page) -> Panel:
    """The statistics of all heads; on the page with columns by which they can be sorted."""
    table, titles = head_measures.all_heads(page.trace), measures.titles()
    frame = table[list(head_measures.SHOWN)].rename(columns=titles)
    frame.index = pd.Index([tokens.site(Site.parse(site), head) for site, head in table.index], name=_("head"))
    chosen = list(table.index).index((str(page.attention.site), page.head))
    titles |= {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "rows": _("rows with a choice")}
    titles |= {"rows_left_out": _("other rows")}
    sortable = Table(table, titles=titles, named=False)
    return Panel("heads", _("Statistics of all heads"), Table(frame, chosen), about=measures.of_rows(), on_page=lambda: sortable)


def _lens(page: Page) -> Panel:
    if reason := lens_panels.reason_against(page):
        raise NotDrawable(reason)
    return lens_panels.panel(page, lens_panels.of_run(page))


def _times(page: Page) -> Panel:
    if hearing(page.trace) is None or not (timed := sound_panels.timed_words(page)).words:
        raise NotDrawable(_("This run has no words with times."))
    return sound_panels.of_times(timed)


_PARTS: Mapping[str, Callable[[Page], Panel]] = {
    "next": _next,
    "facts": lambda page: of_facts(page, reading.of_page(page)),
    "times": _times,
    "alike": lambda page: of_similar(page, most_alike(page.trace, page.attention, page.head)),
    "numbers": _numbers,
    "heads": of_heads,
    "lens": _lens,
}
