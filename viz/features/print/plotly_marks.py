"""The marks between the axes of a chart: cells, bars, lines and points. From plotly's traces to shapes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.trace.types import Array
from viz.features.print import fonts
from viz.features.print.axes import Axis, plain
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.palette import Palette, hexadecimal, ink_on, painted
from viz.features.print.shapes import MM, Circle, Line, Picture, Polygon, Rect, Shape, Text

MOST_VECTORS = 40_000
"""Most cells that are drawn as rectangles; more become an image."""

_SHARP = 600
"""Least pixels along an image: viewers that smooth images then blur no cell."""

_OVERLAP = 0.03
"""Millimeters by which cells without gaps overlap, so that no viewer shows hairlines between them."""

DASHES: Mapping[str, tuple[float, ...]] = {
    "dash": (1.6, 1.0),
    "dot": (0.4, 0.8),
    "dashdot": (1.6, 0.8, 0.4, 0.8),
    "longdash": (3.0, 1.0),
    "longdashdot": (3.0, 0.8, 0.4, 0.8),
}
"""Lengths of strokes and gaps in millimeters, by plotly's names."""


@dataclass(frozen=True)
class DrawContext:
    """The axes and options of every mark.

    Attributes:
        options: of the figure.
        palette: its colors.
        pixel: millimeters of a pixel of the screen.
    """

    options: Options
    palette: Palette
    pixel: float

    @classmethod
    def of(cls, options: Options) -> "DrawContext":
        """The pen of a figure: 13 pixels of the screen, the size of its text, become the figure's font size."""
        return cls(options, Palette.of(options.colours), options.font_size * MM / 13)


def numbers(values: Any) -> Array:
    """Values of a trace as floats; what is absent is NaN."""
    return np.array([math.nan if value is None else float(value) for value in values], float)


def cells(trace: Mapping[str, Any], x: Axis, y: Axis, pen: DrawContext) -> tuple[list[Shape], list[str]]:
    """A heatmap: its cells and their texts, and notes about what was left out."""
    z = np.asarray(trace["z"], float)
    low, high = trace.get("zmin", float(np.nanmin(z, initial=0))), trace.get("zmax", float(np.nanmax(z, initial=1)))
    stops = pen.palette.stops([(float(position), colour) for position, colour in trace["colorscale"]])
    colours = painted((np.nan_to_num(z) - low) / ((high - low) or 1.0), stops)
    edges = (_edges(trace.get("x"), z.shape[1], x), _edges(trace.get("y"), z.shape[0], y))
    notes = []
    image = pen.options.maps == "image"
    if not image and z.size > MOST_VECTORS:
        image = True
        notes.append("image")
    drawn = [_image(colours, ~np.isnan(z), edges)] if image else _rectangles(colours, ~np.isnan(z), edges, trace, pen)
    texts, left_out = _texts(trace, colours, ~np.isnan(z), edges, pen)
    return [*drawn, *texts], notes + (["texts"] if left_out else [])


def _edges(places: Any, count: int, axis: Axis) -> Array:
    """Edges of cells along an axis, in millimeters, [count + 1]."""
    middles = np.arange(count, dtype=float) if places is None else np.asarray(places, float)
    step = middles[1] - middles[0] if count > 1 else 1.0
    bounds = np.append(middles - step / 2, middles[-1] + step / 2) if count else np.zeros(1)
    return np.array([axis.at(bound) for bound in bounds])


def _image(colours: Array, painted: Array, edges: tuple[Array, Array]) -> Shape:
    (across, down), pixels = edges, np.dstack([colours, np.where(painted, 255, 0).astype(np.uint8)])
    pixels = pixels[:, ::-1] if across[0] > across[-1] else pixels
    pixels = pixels[::-1] if down[0] > down[-1] else pixels
    times = max(1, math.ceil(_SHARP / max(pixels.shape[:2])))
    left, top = min(across), min(down)
    return Picture(left, top, max(across) - left, max(down) - top, np.repeat(np.repeat(pixels, times, 0), times, 1))


def _rectangles(
    colours: Array, painted: Array, edges: tuple[Array, Array], trace: Mapping[str, Any], pen: DrawContext
) -> list[Shape]:
    across, down = edges
    fields = [0.6 * pen.pixel * float(trace.get(name) or 0) for name in ("xgap", "ygap")]
    shapes: list[Shape] = []
    for row, column in np.argwhere(painted):
        left, right = sorted(across[column : column + 2])
        top, bottom = sorted(down[row : row + 2])
        wide, high = (
            size - gap if gap else size + (_OVERLAP if at + 1 < count else 0)
            for size, gap, at, count in zip((right - left, bottom - top), fields, (column, row), painted.shape[::-1], strict=True)
        )
        x, y = float(left + fields[0] / 2), float(top + fields[1] / 2)
        shapes.append(Rect(x, y, float(wide), float(high), fill=hexadecimal(colours[row, column])))
    return shapes


def _texts(
    trace: Mapping[str, Any], colours: Array, painted: Array, edges: tuple[Array, Array], pen: DrawContext
) -> tuple[list[Shape], bool]:
    """Texts in cells, as large as the figure's font if they have room; and whether they were left out because they have none."""
    if trace.get("text") is None or not trace.get("texttemplate") or not painted.any():
        return [], False
    across, down = edges
    texts = {(int(row), int(column)): plain(trace["text"][row][column]) for row, column in np.argwhere(painted)}
    texts = {cell: text for cell, text in texts.items() if text}
    widest = max((fonts.width(text, 1.0) for text in texts.values()), default=0.0)
    wide, high = abs(across[1] - across[0]), abs(down[1] - down[0])
    size = min(pen.options.font_size, 0.92 * wide / (widest or 1.0), high / (1.05 * MM))
    if not texts or size < SMALLEST_FONT:
        return [], bool(texts)
    textcolor = (trace.get("textfont") or {}).get("color")
    return [
        Text(
            float(across[column] + across[column + 1]) / 2,
            float(down[row] + down[row + 1]) / 2 + 0.36 * size * MM,
            text,
            size,
            pen.palette.colour(textcolor) if textcolor else ink_on(hexadecimal(colours[row, column])),
            "middle",
        )
        for (row, column), text in texts.items()
    ], False


def bars(trace: Mapping[str, Any], x: Axis, y: Axis, gap: float, pen: DrawContext) -> list[Shape]:
    """Bars from 0, with their texts at the ends; as wide as they say, or with a gap between them, a part of 1."""
    flat = trace.get("orientation") == "h"
    along, across = (x, y) if flat else (y, x)
    values, places = numbers(trace["x" if flat else "y"]), numbers(trace["y" if flat else "x"])
    colours = _one_for_each((trace.get("marker") or {}).get("color"), len(values))
    widths = _one_for_each(trace.get("width"), len(values))
    texts = trace.get("text") or [""] * len(values)
    shapes: list[Shape] = []
    for value, position, width, colour, text in zip(values, places, widths, colours, texts, strict=True):
        if math.isnan(value):
            continue
        start, end = sorted((along.at(0.0), along.at(value)))
        half = (1 - gap if width is None else width) / 2
        first, last = sorted((across.at(position - half), across.at(position + half)))
        box = (start, first, end - start, last - first) if flat else (first, start, last - first, end - start)
        shapes.append(Rect(*box, fill=pen.palette.colour(colour or pen.palette.scheme.accent)))
        if text and flat:
            size = max(SMALLEST_FONT, pen.options.font_size * 0.9)
            middle = (first + last) / 2 + 0.36 * size * MM
            shapes.append(Text(max(start, end) + 0.8, middle, plain(text), size, pen.palette.scheme.text))
    return shapes


def _one_for_each(value: Any, count: int) -> Sequence[Any]:
    return [value] * count if value is None or isinstance(value, str | float | int) else list(value)


def scatter(trace: Mapping[str, Any], x: Axis, y: Axis, pen: DrawContext) -> Iterator[Shape]:
    """Lines, points and their texts."""
    mode = trace.get("mode", "lines+markers")
    places = [(x.at(a), y.at(b)) for a, b in zip(numbers(trace["x"]), numbers(trace["y"]), strict=True)]
    if "lines" in mode:
        line = trace.get("line") or {}
        yield from stroke(places, line, pen, float(trace.get("opacity", 1)))
    finite = [(point, index) for index, point in enumerate(places) if all(map(math.isfinite, point))]
    if "markers" in mode:
        look = {"color": (trace.get("line") or {}).get("color")} | (trace.get("marker") or {})
        for point, index in finite:
            yield from marker(point, look_of(look, index), pen)
    if "text" in mode:
        for (across, down), index in finite:
            yield _beside(trace, across, down, index, pen)


def look_of(marker: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The look of one point where some parts of it are given for each point."""
    look_here = {}
    for name, value in marker.items():
        several = isinstance(value, list | tuple | np.ndarray) and name != "colorscale"
        if not several or index < len(value):
            look_here[name] = look_of(value, index) if isinstance(value, Mapping) else value[index] if several else value
    return look_here


def _beside(trace: Mapping[str, Any], across: float, down: float, index: int, pen: DrawContext) -> Text:
    """The text of a point, below it on the side that has room."""
    where = trace.get("textposition")
    left = "left" in str(where[index] if isinstance(where, list | tuple) else where)
    text = trace["text"][index] if not isinstance(trace["text"], str) else trace["text"]
    size = pen.options.font_size
    shift = -1.2 if left else 1.2
    return Text(across + shift, down + 1.6 * size * MM, plain(text), size, pen.palette.scheme.text, "end" if left else "start")


def stroke(
    places: Sequence[tuple[float, float]], line: Mapping[str, Any], pen: DrawContext, opacity: float = 1.0
) -> Iterator[Shape]:
    """A line through points, interrupted where there is no number."""
    wide = max(0.15, 0.75 * pen.pixel * float(line.get("width", 2)))
    colour = pen.palette.colour(line.get("color") or pen.palette.scheme.accent)
    dash = DASHES.get(line.get("dash", "solid"), ())
    piece: list[tuple[float, float]] = []
    for point in [*places, (math.nan, math.nan)]:
        if all(map(math.isfinite, point)):
            piece.append(point)
        else:
            if len(piece) > 1:
                yield Line(tuple(piece), colour, wide, dash, opacity)
            piece = []


def marker(point: tuple[float, float], look: Mapping[str, Any], pen: DrawContext) -> Iterator[Shape]:
    """One point: a circle, a square, a diamond, a cross, a ring or an upright stroke."""
    opacity, symbol = float(look.get("opacity", 1)), look.get("symbol", "circle")
    if opacity == 0:
        return
    (x, y), half = point, pen.pixel * float(look.get("size", 6)) / 2
    edge = look.get("line") or {}
    if look.get("colorscale"):  # its color is a number
        part = (np.array(look["color"], float) - look["cmin"]) / (look["cmax"] - look["cmin"])
        colour = hexadecimal(painted(part, pen.palette.stops(look["colorscale"])))
    else:
        colour = pen.palette.colour(look.get("color") or edge.get("color") or pen.palette.scheme.accent)
    wide = max(0.15, 0.75 * pen.pixel * float(edge.get("width", 1)))
    rim = pen.palette.colour(edge["color"]) if edge.get("color") else None
    if symbol == "circle-open":
        yield Circle(x, y, half, stroke=colour, width_of_stroke=wide, opacity=opacity)
    elif symbol == "line-ns":
        yield Line(((x, y - half), (x, y + half)), rim or colour, wide)
    elif symbol in ("square", "diamond", "cross"):
        yield Polygon(_corners(symbol, x, y, half), colour, rim, wide, opacity)
    else:
        yield Circle(x, y, half, fill=colour, stroke=rim, width_of_stroke=wide, opacity=opacity)


def _corners(symbol: str, x: float, y: float, half: float) -> tuple[tuple[float, float], ...]:
    third = 1 / 3
    cross = [(-third, -1), (third, -1), (third, -third), (1, -third), (1, third), (third, third)]
    around: dict[str, list[tuple[float, float]]] = {
        "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
        "diamond": [(0, -1), (1, 0), (0, 1), (-1, 0)],
        "cross": [*cross, *((-across, -down) for across, down in cross)],
    }
    return tuple((x + half * across, y + half * down) for across, down in around[symbol])
