"""Panels of a picture for print: numbers as cells, lines, arrows and tables, from the scenes that the screen draws."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Site, Trace
from viz.canvas.scenes import sound
from viz.export.print.catalogue import Figure, of_chart
from viz.export.print.options import Options
from viz.export.print.plotly_marks import DrawContext
from viz.export.print.shapes import MM, Circle, Drawing, Shape, Text
from viz.export.print.shapes import Line as Stroke
from viz.figures import costs
from viz.figures.layout import axis, colour_bar, counted, fitting_height, picture, scale, token_axis
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _, localized
from viz.labels import tokens
from viz.labels.sounds import hearing

MOST_NUMBERS = 400
"""Cells up to which each has its number."""

MOST_NAMED = 32
"""Cells up to which an axis names each by its number."""

ARROWS_PER_ROW = 4


def _table(header: Mapping[str, Any], _blobs: Mapping[str, Array], _title: str) -> dict[str, Any]:
    """Texts: titles of columns, rows, the row to emphasize, and a shade from 0 to 1 for each number."""
    return {name: header[name] for name in ("columns", "rows", "chosen", "shades")}


def _bars(header: Mapping[str, Any], _blobs: Mapping[str, Array], _title: str) -> dict[str, Any]:
    """The same of numbers with names."""
    most = max((abs(value) for value in header["values"]), default=0.0) or 1.0
    rows = [[name, _number(value)] for name, value in zip(header["texts"], header["values"], strict=True)]
    return {"columns": [], "rows": rows, "chosen": header["chosen"], "shades": [[abs(value) / most] for value in header["values"]]}


def _number(value: float, decimals: int = 2) -> str:
    return "−∞" if value == -np.inf else localized(f"{value:z.{decimals}f}").replace("-", "−")


def _counted(names: Sequence[str]) -> bool:
    """Whether cells are many and have only numbers for names, so that an axis of numbers names them."""
    return len(names) > MOST_NAMED and counted(names)


def _axis(colours: Scheme, title: str, names: Sequence[str]) -> dict[str, Any]:
    return axis(colours, title) | {"range": [0.5, len(names) + 0.5]} if _counted(names) else token_axis(colours, title, names)


def _cells(header: Mapping[str, Any], blobs: Mapping[str, Array], title: str) -> Figure:
    """A table of numbers as colors; some of its cells may have a frame around them."""
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


def spectrogram(trace: Trace, site: Site, head: int) -> Figure | None:
    """The spectrogram of the sound that a run has read, with the words at their times; None: it has read no sound.

    Args:
        site, head: tell the times where the model's folder names no heads that do.
    """
    if (heard := hearing(trace)) is None:
        return None
    colours, codes = scheme(False), sound.shades(trace, heard)
    words = sound.timed(trace, heard, site, head).words
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
    return of_chart("spectrogram", _("The sound"), picture(False, 220, [cells], layout))


def _chart(header: Mapping[str, Any], _blobs: Mapping[str, Array], title: str) -> Figure:
    """Lines over any numbers, with a dot or a dashed line across."""
    lines = [costs.Line(line["name"], line["values"], line["look"]) for line in header["lines"]]
    drawn = costs.lines(header["across"], lines, tuple(header["axes"]), False)
    for across_or_up, logarithmic in zip((drawn.layout.xaxis, drawn.layout.yaxis), header["logarithmic"], strict=True):
        across_or_up.update(type="log" if logarithmic else "linear")
    colours, extra = scheme(False), list[dict[str, Any]]()
    if (level := header["level"]) is not None:
        ends = {"x": [header["across"][0], header["across"][-1]], "y": [level, level]}
        extra.append(ends | {"type": "scatter", "mode": "lines", "line": {"color": colours.text, "width": 1, "dash": "dash"}})
    if mark := header["mark"]:
        dot = {"x": mark[:1], "y": mark[1:], "marker": {"size": 10, "color": colours.second}}
        extra.append(dot | {"type": "scatter", "mode": "markers"})
    drawn.update_layout(height=300)
    return of_chart("chart", title, go.Figure([*drawn.data, *(each | {"showlegend": False} for each in extra)], drawn.layout))


def _arrows(header: Mapping[str, Any], _blobs: Mapping[str, Array], title: str) -> Figure:
    """Pairs of columns, each in a circle of its own: dotted before they are rotated, an arrow after."""

    def draw(options: Options) -> Drawing:
        pen, side = DrawContext.of(options), options.width / ARROWS_PER_ROW
        colours, high = pen.palette.scheme, side + 2 * options.font_size * MM
        drawn = list[Shape]()
        for place, (name, *ends) in enumerate(zip(header["names"], header["before"], header["after"], strict=True)):
            row, column = divmod(place, ARROWS_PER_ROW)
            x, y, radius = (column + 0.5) * side, row * high + 0.5 * side, 0.42 * side
            before, after = ((x + radius * across, y - radius * up) for across, up in ends)
            drawn.append(Circle(x, y, radius, stroke=colours.line))
            drawn.append(Stroke(((x, y), before), colours.faint, 0.3, (0.6, 0.6)))
            drawn.append(Stroke(((x, y), after), colours.accent, 0.6))
            drawn.append(Circle(*after, 0.9, fill=colours.accent))
            drawn.append(Text(x, (row + 1) * high - options.font_size * MM, name, options.font_size, colours.faint, "middle"))
        rows = -(-len(header["names"]) // ARROWS_PER_ROW)
        return Drawing(options.width, rows * high, colours.background, tuple(drawn), title)

    return Figure("arrows", title, draw)


PRINTED: Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Array], str], Figure | dict[str, Any] | str]] = {
    "Cells": _cells,
    "Chart": _chart,
    "Arrows": _arrows,
    "Table": _table,
    "Bars": _bars,
    "Text": lambda header, _blobs, _title: str(header["markdown"]),
}
"""By the kind of a panel: from the header and the blobs of its scene and a title to a figure, a table or sentences in Markdown."""
