"""The parts above a chart: its title, the names of its curves, and the color bar of its cells."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from viz.features.print import fonts
from viz.features.print.axes import LINE, number, plain
from viz.features.print.options import SMALLEST_FONT
from viz.features.print.palette import hexadecimal, painted
from viz.features.print.plotly_marks import DrawContext, look_of, marker, stroke
from viz.features.print.shapes import MM, Rect, Shape, Text
from viz.figures.theme import LIGHT

_STEPS = 64
"""Rectangles of a color bar."""


class Scale(NamedTuple):
    """A scale of colors: the numbers at its ends, its colors as Plotly has them, and how its bar is labeled."""

    low: float
    high: float
    colours: Sequence[Any]
    bar: Mapping[str, Any]


_STOPS = [(at / (len(LIGHT.weights) - 1), colour) for at, colour in enumerate(LIGHT.weights)]
WEIGHTS = Scale(0, 1, _STOPS, {"tickvals": (0, 0.5, 1)})
"""The scale of weights, from 0 to 1."""


def wrapped(text: str, size: float, room: float) -> list[str]:
    """A text in lines of at most so many millimeters, broken at blanks."""
    lines: list[str] = []
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and fonts.width(longer, size) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def title(text: str, pen: DrawContext, y: float) -> tuple[list[Shape], float]:
    """The title of a figure from `y` down, if it has one, and where it ends."""
    if not (text and pen.options.title):
        return [], y
    size = pen.options.font_size + 1
    lines = wrapped(text, size, pen.options.width - 2)
    step = LINE * size * MM
    drawn: list[Shape] = [Text(1, y + step * (at + 0.85), line, size, pen.palette.scheme.text) for at, line in enumerate(lines)]
    return drawn, y + step * len(lines) + 0.8


def entries(traces: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The traces that a legend names, each name once."""
    by_name: dict[str, Mapping[str, Any]] = {}
    for trace in traces:
        if trace.get("name") and trace.get("showlegend", True) and trace["type"] != "heatmap":
            by_name.setdefault(str(trace["name"]), trace)
    return list(by_name.values())


def names(traces: Sequence[Mapping[str, Any]], pen: DrawContext, y: float) -> tuple[list[Shape], float]:
    """A legend from `y` down, in as many lines as it needs, and where it ends."""
    size, x, drawn = pen.options.font_size, 1.0, list[Shape]()
    step, sample = LINE * size * MM + 0.4, 5.0
    for trace in traces:
        name = plain(trace["name"])
        wide = sample + 1 + fonts.width(name, size) + 3
        if x > 1 and x + wide - 3 > pen.options.width - 1:
            x, y = 1.0, y + step
        middle = y + step / 2
        drawn += _sample(trace, x, middle, sample, pen)
        drawn.append(Text(x + sample + 1, middle + 0.36 * size * MM, name, size, pen.palette.scheme.text))
        x += wide
    return drawn, y + step + 0.4


def _sample(trace: Mapping[str, Any], x: float, y: float, wide: float, pen: DrawContext) -> list[Shape]:
    """A short piece of a curve, and its point."""
    mode, drawn = trace.get("mode", "lines"), list[Shape]()
    if "lines" in mode:
        drawn += stroke([(x, y), (x + wide, y)], trace.get("line") or {}, pen)
    if "markers" in mode:
        look = {"color": (trace.get("line") or {}).get("color")} | (trace.get("marker") or {})
        if look.get("colorscale"):  # the colors of its points say something else than whose they are
            look |= {"colorscale": None, "color": pen.palette.scheme.card}
        drawn += marker((x + wide / 2, y), look_of(look, 0), pen)
    return drawn


def scales(traces: Sequence[Mapping[str, Any]]) -> list[Scale]:
    """The scales that have a bar: those of heatmaps and those of dots."""
    heatmaps = [(trace, "z") for trace in traces if trace["type"] == "heatmap" and trace.get("showscale", True)]
    dots = [(trace.get("marker") or {}, "c") for trace in traces]
    return [
        Scale(float(part[f"{axis}min"]), float(part[f"{axis}max"]), part["colorscale"], part["colorbar"])
        for part, axis in (*heatmaps, *dots)
        if part.get("colorbar")
    ]


def colour_bar(scale: Scale, named: str, pen: DrawContext, right: float, y: float) -> tuple[list[Shape], float]:
    """The color bar of a scale with its name, whose right end is at `right`, from `y` down, and where it ends."""
    low, end, _colours, bar = scale
    size = max(SMALLEST_FONT, 0.9 * pen.options.font_size)
    high, wide, text = 0.32 * size * MM, min(26.0, 0.4 * pen.options.width), size * MM
    left, top = right - wide, y + LINE * text
    stops = pen.palette.stops([(float(position), colour) for position, colour in scale.colours])
    shades = painted((np.arange(_STEPS) + 0.5) / _STEPS, stops)
    step = wide / _STEPS
    drawn: list[Shape] = [
        Rect(left + at * step, top, step + (0.02 if at + 1 < _STEPS else 0), high, fill=hexadecimal(shade))
        for at, shade in enumerate(shades)
    ]
    drawn.append(Rect(left, top, wide, high, stroke=pen.palette.scheme.line, width_of_stroke=0.1))
    drawn.append(Text(right, y + 0.85 * text, named, size, pen.palette.scheme.faint, "end"))
    values = [float(value) for value in bar.get("tickvals") or (low, end)]
    for value, words in zip(
        values, bar.get("ticktext") or [number(value, bar.get("tickformat", "")) for value in values], strict=True
    ):
        x = left + wide * (value - low) / ((end - low) or 1.0)
        half = fonts.width(words, size) / 2
        x = min(max(x, left + half), right - half)
        drawn.append(Text(x, top + high + 0.95 * text, words, size, pen.palette.scheme.faint, "middle"))
    return drawn, top + high + LINE * text + 0.8
