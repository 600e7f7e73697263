"""One head as lines between its query tokens, left, and its key tokens, right, for paper."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Site, Trace
from viz.features.print import axes, fonts, legend
from viz.features.print.notes import TALLEST, left_out, without_font
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Anchor, Drawing, Line, Shape, Text
from viz.labels import tokens

FAINTEST = 0.004
"""Smaller weights would be invisible as lines, as on the screen."""

_EDGE = 1.0
_WIDEST = 1.3
"""Millimeters of a line of weight 1."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The tokens and weights of the lines.

    Attributes:
        weights: [query, key]; numbers that are not finite have no line.
        queries, keys: labels.
        titles: of the two sides.
        largest: the weight of the widest line.
        query: the row whose lines stand out; -1: none.
    """

    weights: Array
    queries: list[str]
    keys: list[str]
    titles: tuple[str, str]
    largest: float = 1.0
    query: int = -1


def of_head(trace: Trace, site: Site, head: int, query: int = -1) -> Sides:
    """The lines of a head.

    Raises:
        UnknownHead: the site has no such head.
    """
    attention = trace.at(site)
    names = tokens.queries(trace, attention), tokens.keys(trace, attention)
    titles = tokens.query_axis(trace, site), tokens.key_axis(trace, site)
    return Sides(attention.head(head), *names, titles, query=query)


def of_reading(trace: Trace, site: Site, values: Array, keys: Array, query: int = -1) -> Sides:
    """The lines of a reading.

    Args:
        values: [query, key shown].
        keys: [key shown], indices of the site's keys.
    """
    attention = trace.at(site)
    names, columns = tokens.keys(trace, attention), [int(key) for key in keys]
    titles = tokens.query_axis(trace, site), tokens.key_axis(trace, site)
    largest = float(np.nanmax(values, initial=0.0)) or 1.0
    return Sides(values, tokens.queries(trace, attention), [names[key] for key in columns], titles, largest, query)


def lines(sides: Sides, options: Options, title: str = "", description: str = "") -> Drawing:
    """The sheet of lines."""
    pen = DrawContext.of(options)
    drawn, y = legend.title(title, pen, _EDGE)
    count = max(len(sides.queries), len(sides.keys), 1)
    row = min(max(1.4 * options.font_size * MM, 0.8), (0.85 * TALLEST) / count)
    left, right = _ends(sides, options)
    top = y + 2 * axes.LINE * options.font_size * MM + 0.6
    drawn += _titles(sides, pen, y)
    drawn += _joined(sides, pen, (left, right), top, row)
    notes = []
    if options.labels:
        for names, x, anchor, axis in ((sides.queries, left, "end", 0), (sides.keys, right, "start", 1)):
            size, step = _size(row, options)
            drawn += _named(names[::step], (x, top, row * step), anchor, size, pen)  # type: ignore[arg-type]  # one of Anchor
            notes += [left_out(sides.titles[axis], step)] if step > 1 else []
    notes += without_font(drawn)
    height = top + row * count + _EDGE
    return Drawing(options.width, height, pen.palette.scheme.background, tuple(drawn), title, description, tuple(notes))


def _ends(sides: Sides, options: Options) -> tuple[float, float]:
    """Where the lines begin and end: labels take what they need, at most a third of the width."""
    if not options.labels:
        return _EDGE, options.width - _EDGE
    most = 0.33 * options.width
    room = [
        min(most, max((fonts.width(name, options.font_size) for name in side), default=0)) for side in (sides.queries, sides.keys)
    ]
    return _EDGE + room[0] + 1, options.width - _EDGE - room[1] - 1


def _size(row: float, options: Options) -> tuple[float, int]:
    """Points of the labels, and how many tokens share one."""
    size = min(options.font_size, row / MM)
    return (size, 1) if size >= SMALLEST_FONT else (SMALLEST_FONT, math.ceil(SMALLEST_FONT * MM / row))


def _titles(sides: Sides, pen: DrawContext, y: float) -> Iterator[Shape]:
    """The titles of both sides, each in a line of its own."""
    size, colour = pen.options.font_size, pen.palette.scheme.faint
    yield Text(_EDGE, y + size * MM, axes.shortened(sides.titles[0], size, pen.options.width - 2), size, colour)
    corner = pen.options.width - _EDGE, y + size * MM * (1 + axes.LINE)
    yield Text(*corner, axes.shortened(sides.titles[1], size, pen.options.width - 2), size, colour, "end")


def _named(names: list[str], box: tuple[float, float, float], anchor: Anchor, size: float, pen: DrawContext) -> Iterator[Shape]:
    x, top, row = box
    room = (x if anchor == "end" else pen.options.width - x) - _EDGE
    for at, name in enumerate(names):
        yield Text(
            x, top + row * (at + 0.5) + 0.36 * size * MM, axes.shortened(name, size, room), size, pen.palette.scheme.text, anchor
        )


def _joined(sides: Sides, pen: DrawContext, ends: tuple[float, float], top: float, row: float) -> Iterator[Shape]:
    """A curve for each weight; faint ones first, and those of the row that stands out last."""
    shares = np.nan_to_num(sides.weights / sides.largest, posinf=0, neginf=0)
    places = [(int(query), int(key)) for query, key in np.argwhere(shares >= FAINTEST)]
    places.sort(key=lambda line: (line[0] == sides.query, shares[line]))
    left, right = ends[0] + 0.8, ends[1] - 0.8
    bend = 0.38 * (right - left)
    for query, key in places:
        share = float(shares[query, key])
        strength = 0.75 if sides.query < 0 else 1.2 if query == sides.query else 0.14
        start, end = (top + row * (at + 0.5) for at in (query, key))
        points = ((left, start), (left + bend, start), (right - bend, end), (right, end))
        opacity = min(1.0, share**0.6 * strength)
        yield Line(points, pen.palette.scheme.accent, 0.12 + _WIDEST * share, (), opacity, curved=True)
