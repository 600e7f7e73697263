"""The panels of the page Explore: the heads of a run, a reading, the calculation of a cell, and the parts that a link opens."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.engine.api import Explain
from model.errors import HeadlightError
from model.trace.types import Site
from viz.canvas import standalone
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import matrix, overlay, sound
from viz.canvas.scenes.attention import ReadingScene
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.transport import changed, unpack
from viz.export import tables as export
from viz.feature import cell_panels, folded_parts
from viz.figures.layout import axis, picture, scale
from viz.figures.theme import scheme
from viz.i18n.translate import _, error_message, join_sentences, number
from viz.labels import measures, tokens
from viz.labels.sounds import hearing
from viz.metrics import heads
from viz.metrics.aggregation import without_first
from viz.panels import Bars, NotDrawable, OfRun, Panel, Plot, Scene, Table, Text, TextLine
from viz.session.state import Page
from viz.url.view_state import ViewState
from viz.views.explore import logit_lens, reading
from viz.views.step import cell_calculation

LONGEST = 64
"""Most tokens per side of a head that is drawn as lines."""


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The heads of the run; first what else the link opens: a reading, parts, the calculation of a cell."""
    before = [*of_reading(page), *of_parts(page)]
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
        return [_sound(page), atlas]
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
    trace, site, own = page.trace, page.attention.site, page.attention
    if max(own.mask.shape) > LONGEST:
        return
    weights = without_first(parts.allowed(own.head(page.head), own.mask)) if rest else None
    read = None if weights is None else ReadingScene("without-first", tokens.head_name(trace, site, page.head), weights)
    drawn = changed(scene.lines(trace, site, page.head, page.view.query, read), strings.lines_alone())
    content = Scene("Lines", drawn, follows=True)
    yield Panel("lines", "", content, width="half", paper=lambda: (printed(page, "lines"),))


def _sound(page: Page) -> Panel:
    """The sound that a run has read, with the words at their times."""
    data = sound.scene(page.trace, page.attention.site, page.head, page.view.query)
    plot = Plot(lambda dark: _spectrogram(page, dark), name="spectrogram", title=_("The sound"))
    return Panel("sound", _("The sound"), Scene("Sound", data), paper=lambda: (plot, printed(page, "head")))


def _spectrogram(page: Page, dark: bool) -> go.Figure:
    """The spectrogram of the sound, for print."""
    heard = hearing(page.trace)
    assert heard is not None
    colours, codes = scheme(dark), sound.shades(page.trace, heard)
    words = sound.timed(page.trace, heard, page.attention.site, page.head).words
    cells = {
        "type": "heatmap",
        "x": [(place + 0.5) * heard.read.step for place in range(codes.shape[1])],
        "y": list(range(1, len(codes) + 1)),
        "z": codes.astype(np.float64),
        "zmin": 0,
        "zmax": 255,
        "colorscale": scale((colours.card, colours.second, colours.text)),
        "showscale": False,
    }
    named = {"tickvals": [(one.start + one.end) / 2 for one in words], "ticktext": [tokens.word(one.text) for one in words]}
    layout = {
        "xaxis": axis(colours, _("Words")) | named if words else axis(colours, _("Time in seconds")),
        "yaxis": axis(colours, _("Spectrogram")),
    }
    return picture(dark, 220, [cells], layout)


def of_reading(page: Page) -> Iterator[Panel]:
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
    words = join_sentences((shown.reading.meaning, *shown.notes))
    if shown.values.ndim == 1:
        yield Panel("reading", reading.title(page, shown), Bars(rows, shown.values.tolist(), page.view.query), words)
        return
    axes = tokens.query_axis(page.trace, page.attention.site), tokens.key_axis(page.trace, page.attention.site)
    cells = matrix.numbers(shown.values, rows, [keys[key] for key in shown.keys], axes)
    yield Panel("reading", reading.title(page, shown), Scene("Cells", cells), words)


def of_cell(page: Page) -> list[Panel]:
    """What the panel of the link's cell shows: how its weight was calculated, or what a feature says of it."""
    query, key = page.view.query, page.view.key
    shown = cell_panels().get(page.view.cell)
    if shown is not None and shown.panels is not None:
        return list(shown.panels(page, query, key))
    return list(calculation(page, query, key))


def calculation(page: Page, query: int, key: int) -> Iterator[Panel]:
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
        TextLine(cell_calculation.verdict(found)),
        *cell_calculation.share(found),
    ]
    yield Panel("calculation", cell_calculation.title(page, query, key), Text(lines))
    yield Panel("row", _("The whole row as numbers"), Table(cell_calculation.table(page, found), key))


def of_parts(page: Page) -> Iterator[Panel]:
    """The parts of the page that the link opens.

    Raises:
        HeadlightError, NotDrawable: a part cannot be computed.
    """
    opened = page.view.opened.split()
    yield from (part(page) for name, part in _PARTS.items() if name in opened)
    for folded in folded_parts():
        if folded.name in opened and folded.panels is not None:
            yield from folded.panels(page)


def _numbers(page: Page) -> Panel:
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
    return Panel("numbers", title, Table(table, page.view.query, decimals=2))


def _heads(page: Page) -> Panel:
    table, titles = heads.all_heads(page.trace), measures.titles()
    frame = table[list(heads.SHOWN)].rename(columns=titles)
    frame.index = pd.Index([tokens.site(Site.parse(site), head) for site, head in table.index], name=_("head"))
    chosen = list(table.index).index((str(page.attention.site), page.head))
    return Panel("heads", _("Statistics of all heads"), Table(frame, chosen))


def _lens(page: Page) -> Panel:
    if reason := logit_lens.reason_against(page):
        raise NotDrawable(reason)
    lens, words = logit_lens.computed(page.view.request(keep=("hidden",)), page.engine, page.info.spec)
    positions, layers, title = logit_lens.axes(page, lens)
    likeliest = lens.probabilities[:, :, 0].T  # [position, layer]
    texts = [
        [f"{word} {number(share, '.2f')}" for word, share in zip(*row, strict=True)]
        for row in zip(words[:, :, 0].T, likeliest, strict=True)
    ]
    columns = [_("after layer {layer}", layer=layer) for layer in layers]
    frame = pd.DataFrame(texts, index=pd.Index(positions, name=title), columns=columns)
    heading = _("Logit lens: the most likely next token after each layer")
    return Panel("lens", heading, Table(frame, page.view.query, shades=likeliest))


_PARTS: Mapping[str, Callable[[Page], Panel]] = {"numbers": _numbers, "heads": _heads, "lens": _lens}
