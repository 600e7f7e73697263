"""Panels on paper: figures of the run, or a panel's own content as a figure, a table, or sentences in Markdown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from viz.canvas.wire.transport import unpack
from viz.features.print.catalogue import Choice, Figure, of_chart, standard_figures
from viz.features.print.options import Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Circle, Drawing, Shape, Text
from viz.features.print.shapes import Line as Stroke
from viz.figures.layout import axis, colour_bar, counted, fitting_height, picture, scale, token_axis
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import localized
from viz.panels import Aligned, Arrows, Bars, Chart, Curves, Markup, OfRun, Panel, Picture, Plot, Scene, Table
from viz.panels import Text as Sentences

MOST_NUMBERS = 400
"""Cells up to which each has its number."""

ARROWS_PER_ROW = 4

MOST_NAMED = 32
"""Cells up to which an axis names each by its number."""


def figures_of(panel: Panel) -> list[Figure]:
    """The figures of a panel; none of a table and of sentences."""
    title = panel.title or panel.note.rstrip(".:")
    if isinstance(panel.content, Plot) and panel.paper is None:
        parts: list[Figure | Table | str | None] = [figure_of(panel.content, title)]
    else:
        parts = [content_of(panel, title)] if panel.paper is None else [figure_of(part, title) for part in panel.paper()]
    return [part for part in parts if isinstance(part, Figure)]


def figure_of(part: OfRun | Plot, title: str) -> Figure | None:
    """What paper draws in the place of a panel; None: the run has no such figure.

    Args:
        title: of the panel.
    """
    if isinstance(part, Plot):
        return of_chart(part.name or "figure", part.title or title, part.draw(False), part.alt)
    named = (figure for figure in _of_run(part) if figure.name == part.figure)
    return next((replace(figure, title=part.before + figure.title) for figure in named), None)


def _of_run(part: OfRun) -> tuple[Figure, ...]:
    """All figures that a run has with what is selected."""
    choice = Choice(part.trace.at(part.site), part.head, part.query, part.key, part.hypothesis, part.overlay)
    return standard_figures(part.trace, choice)


def figures_for(picture: Picture) -> list[Figure]:
    """The figures to choose from for a picture on a page."""
    figures = list[Figure]()
    for part in picture.printed():
        match part:
            case Figure():
                figures.append(part)
            case Panel():
                figures += figures_of(part)
            case OfRun(figure=""):
                figures += _of_run(part)
            case OfRun() | Plot():
                figures += filter(None, [figure_of(part, "")])
    return figures


def content_of(panel: Panel, title: str) -> Figure | Table | str | None:
    """The content of a panel as a figure, a table, or sentences in Markdown; None: paper draws nothing of it.

    Args:
        title: of a figure.
    """
    match panel.content:
        case Scene(kind="Cells", data=data):
            return _cells(data, title)
        case Chart() as chart:
            return of_chart(panel.name, title, _printed(chart), chart.alt)
        case Arrows() as arrows:
            return _arrows(arrows, title)
        case Markup(instead=instead) | Plot(instead=Table() | Bars() as instead):
            return content_of(replace(panel, content=instead), title)
        case Plot() as plot:
            return figure_of(plot, title)
        case Curves() as curves:
            return of_chart(panel.name, title, curves.plot(False), curves.alt)
        case Table() as table:
            return table
        case Bars() | Aligned() as numbers:
            return numbers.table
        case Sentences() as text:
            return text.markdown
    return None


def _printed(chart: Chart) -> go.Figure:
    """Lines with powers of ten on their axes, where paper chooses the ticks."""
    figure = chart.figure(False)
    if chart.plot is None:
        figure.update_layout(height=300).update_yaxes(exponentformat=None, dtick=None).update_xaxes(exponentformat=None, dtick=None)
    return figure


def _number(value: float, decimals: int = 2) -> str:
    return "−∞" if value == -np.inf else localized(f"{value:z.{decimals}f}").replace("-", "−")


def _counted(names: Sequence[str]) -> bool:
    """Whether cells are many and have only numbers for names, so that an axis of numbers names them."""
    return len(names) > MOST_NAMED and counted(names)


def _axis(colours: Scheme, title: str, names: Sequence[str]) -> dict[str, Any]:
    return axis(colours, title) | {"range": [0.5, len(names) + 0.5]} if _counted(names) else token_axis(colours, title, names)


def _cells(data: bytes, title: str) -> Figure:
    """A table of numbers as colors; some of its cells may have a frame around them."""
    header, blobs = unpack(data)
    colours, kind = scheme(False), header["scale"]
    there, known = blobs["there"].astype(bool), blobs["exact"].astype(np.float64)
    values = there.astype(float) if kind == "mask" else np.where(there, known, np.nan)
    largest = 1.0 if kind != "scores" else float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    least = -largest if kind == "scores" else 0.0
    shades = {"scores": colours.diverging, "weights": colours.weights, "mask": (colours.masked, colours.card)}
    rows, columns = header["queries"], header["keys"]
    cells: dict[str, Any] = {
        "type": "heatmap",
        "x": list(range(1, len(columns) + 1) if _counted(columns) else range(len(columns))),
        "y": list(range(1, len(rows) + 1) if _counted(rows) else range(len(rows))),
        "z": values,
        "zmin": least,
        "zmax": largest,
        "colorscale": scale(shades[kind]),
        "colorbar": colour_bar(colours, (least, (least + largest) / 2, largest)) | {"tickformat": ".2g"},
        "showscale": kind != "mask",
    }
    if values.size <= MOST_NUMBERS:
        shown, decimals = there | (kind == "mask"), 0 if kind == "mask" else 2
        texts = [
            [_number(value, decimals) if is_shown else "" for value, is_shown in zip(*row, strict=True)]
            for row in zip(known, shown, strict=True)
        ]
        cells |= {"text": texts, "texttemplate": "%{text}"}
    layout: dict[str, Any] = {
        "xaxis": _axis(colours, header["texts"]["key"], columns),
        "yaxis": _axis(colours, header["texts"]["query"], rows) | {"autorange": "reversed"},
    }
    if frame := header.get("frame"):
        top, left, bottom, right = (place - 0.5 for place in frame)
        edges = {"x0": left, "x1": right, "y0": top, "y1": bottom}
        layout["shapes"] = [{"type": "rect", "line": {"color": colours.accent, "width": 3}, **edges}]
    drawn = picture(False, fitting_height(values.shape), [cells], layout, bar=header["texts"].get("value", ""))
    return of_chart("cells", title, drawn)


def _arrows(own: Arrows, title: str) -> Figure:
    """Pairs of columns, each in a circle of its own: dotted before they are rotated, an arrow after."""

    def draw(options: Options) -> Drawing:
        pen, side = DrawContext.of(options), options.width / ARROWS_PER_ROW
        colours, high = pen.palette.scheme, side + 2 * options.font_size * MM
        drawn = list[Shape]()
        for place, (name, *pairs) in enumerate(zip(own.names, *own.unit, strict=True)):
            row, column = divmod(place, ARROWS_PER_ROW)
            x, y, radius = (column + 0.5) * side, row * high + 0.5 * side, 0.42 * side
            before, after = ((x + radius * across, y - radius * up) for across, up in pairs)
            drawn.append(Circle(x, y, radius, stroke=colours.line))
            drawn.append(Stroke(((x, y), before), colours.faint, 0.3, (0.6, 0.6)))
            drawn.append(Stroke(((x, y), after), colours.accent, 0.6))
            drawn.append(Circle(*after, 0.9, fill=colours.accent))
            drawn.append(Text(x, (row + 1) * high - options.font_size * MM, name, options.font_size, colours.faint, "middle"))
        rows = -(-len(own.names) // ARROWS_PER_ROW)
        return Drawing(options.width, rows * high, colours.background, tuple(drawn), title)

    return Figure("arrows", title, draw)
