"""All heads of a run on one sheet: for each kind of attention a row for each layer, and in it a small heatmap for each head."""

import math
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Attention, Trace
from viz.canvas.wire.overviews import row_label
from viz.canvas.wire.parts import allowed, pool
from viz.features.print import axes, fonts, legend
from viz.features.print.notes import LINE_OF_TITLE, TALLEST
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.palette import hexadecimal, painted
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Line, Picture, Rect, Shape, Text
from viz.i18n.translate import _
from viz.labels import tokens

FINEST = 96
"""Most cells along a tile: with more of them, each block of cells shows its largest weight."""

_GAP, _EDGE = 0.7, 1.0
MOST_VECTORS = 60_000
"""Most cells of an overview that are drawn as rectangles; more become images."""


@dataclass(frozen=True, eq=False)
class _Group:
    """The sites of one kind of attention, in the order of the run."""

    title: str
    axes: str
    sites: tuple[Attention, ...]


def atlas(trace: Trace, options: Options, title: str = "", description: str = "") -> Drawing:
    """The overview of all heads of a run."""
    pen, groups = DrawContext.of(options), _groups(trace)
    drawn, y = legend.title(title, pen, _EDGE)
    bar, y = legend.colour_bar(legend.WEIGHTS, _("weight"), pen, options.width - _EDGE, y)
    left = _EDGE + max(fonts.width(row_label(trace, site.site), _small(pen)) for group in groups for site in group.sites) + _GAP
    side = _side(groups, options, left)
    notes = _notes(groups)
    cells = sum(site.heads * min(site.mask.size, FINEST**2) for group in groups for site in group.sites)
    vectors = options.maps == "vector" and cells <= MOST_VECTORS
    drawn += bar
    for group in groups:
        more, y = _drawn(trace, group, pen, left, y, side, vectors)
        drawn += more
    return Drawing(options.width, y + _EDGE, pen.palette.scheme.background, tuple(drawn), title, description, tuple(notes))


def _groups(trace: Trace) -> list[_Group]:
    by_kind: dict[tuple[str, ...], list[Attention]] = {}
    for site, attention in trace.attention.items():
        by_kind.setdefault((site.stack, site.kind, attention.query_tokens, attention.key_tokens), []).append(attention)
    return [_Group(tokens.kind(*kind[:2]), axes_of(trace, sites[0]), tuple(sites)) for kind, sites in by_kind.items()]


def axes_of(trace: Trace, attention: Attention) -> str:
    """The names of the rows and the columns of a map."""
    fields = {"query": tokens.query_axis(trace, attention.site), "key": tokens.key_axis(trace, attention.site)}
    return _("{query} ↓ · {key} →", **fields)


def _small(pen: DrawContext) -> float:
    return max(SMALLEST_FONT, 0.86 * pen.options.font_size)


def _side(groups: list[_Group], options: Options, left: float) -> float:
    """Side of a tile: all heads of a layer side by side, and all layers on one page."""
    most = max(site.heads for group in groups for site in group.sites)
    rows = sum(len(group.sites) for group in groups)
    titles = len(groups) * (3.2 * LINE_OF_TITLE * options.font_size * MM + 2)
    wide = (options.width - left - _EDGE) / most - _GAP
    return max(1.0, min(wide, (TALLEST - titles - 12) / rows - _GAP, 18.0))


def _blocks(mask: Array) -> tuple[int, int]:
    down, across = (math.ceil(size / FINEST) for size in mask.shape)
    return down, across


def _notes(groups: list[_Group]) -> list[str]:
    down, across = np.max([_blocks(site.mask) for group in groups for site in group.sites], axis=0)
    if down * across == 1:
        return []
    fields = {"down": down, "across": across}
    return [_("Each cell of this overview stands for a block ({down} × {across}) and shows its largest weight.", **fields)]


def _drawn(
    trace: Trace, group: _Group, pen: DrawContext, left: float, y: float, side: float, vectors: bool
) -> tuple[list[Shape], float]:
    """One kind of attention from `y` down, and where it ends."""
    scheme, size, small = pen.palette.scheme, pen.options.font_size, _small(pen)
    room = pen.options.width - 2 * _EDGE
    drawn: list[Shape] = [Text(_EDGE, y + size * MM, group.title, size, scheme.text)]
    y += axes.LINE * size * MM
    drawn.append(Text(_EDGE, y + 0.95 * small * MM, axes.shortened(group.axes, small, room), small, scheme.faint))
    y += axes.LINE * small * MM + 0.4
    heads, step = max(site.heads for site in group.sites), side + _GAP
    step_of_names = max(1, math.ceil(1.2 * fonts.width(str(heads), small) / step))
    if pen.options.labels:
        drawn += [
            Text(left + head * step + side / 2, y + 0.9 * small * MM, str(head + 1), small, scheme.faint, "middle")
            for head in range(0, heads, step_of_names)
        ]
        y += axes.LINE * small * MM
    for attention in group.sites:
        if pen.options.labels:
            middle = y + side / 2 + 0.36 * small * MM
            drawn.append(Text(left - _GAP, middle, row_label(trace, attention.site), small, scheme.faint, "end"))
        silenced = tokens.silenced(trace)
        for head in range(attention.heads):
            drawn += tile(attention, head, (left + head * step, y, side), pen, vectors)
            if (str(attention.site), head) in silenced:
                drawn += _crossed(left + head * step, y, side, scheme.text, scheme.card)
        y += step
    return drawn, y + 1.2


def tile(attention: Attention, head: int, box: tuple[float, float, float], pen: DrawContext, vectors: bool) -> list[Shape]:
    """The heatmap of one head in a square."""
    x, y, side = box
    down, across = _blocks(attention.mask)
    weights = pool(allowed(attention.head(head), attention.mask), down, across)
    open_cells = pool(attention.mask, down, across, np.logical_or)
    stops = [(at / (len(pen.palette.scheme.weights) - 1), colour) for at, colour in enumerate(pen.palette.scheme.weights)]
    masked = np.array([int(pen.palette.scheme.masked[at : at + 2], 16) for at in (1, 3, 5)], np.uint8)
    colours = np.where(open_cells[..., None], painted(np.nan_to_num(weights), stops), masked)
    frame = Rect(x, y, side, side, stroke=pen.palette.scheme.line, width_of_stroke=0.12)
    if not vectors:
        solid = np.full((*open_cells.shape, 1), 255, np.uint8)
        times = max(1, math.ceil(FINEST / max(open_cells.shape)))
        pixels = np.concatenate([colours, solid], axis=2)
        return [Picture(x, y, side, side, np.repeat(np.repeat(pixels, times, 0), times, 1)), frame]
    high, wide = side / open_cells.shape[0], side / open_cells.shape[1]
    ground = Rect(x, y, side, side, fill=pen.palette.scheme.masked)
    cells = [
        Rect(x + column * wide, y + row * high, wide, high, fill=hexadecimal(colours[row, column]))
        for row, column in np.argwhere(open_cells)
    ]
    return [ground, *cells, frame]


def _crossed(x: float, y: float, side: float, colour: str, edge: str) -> list[Shape]:
    """Two diagonals over a silenced head, with an edge, so that they are seen on any weight."""
    ends = (((x, y), (x + side, y + side)), ((x + side, y), (x, y + side)))
    wide = max(0.2, side / 18)
    return [Line(points, shade, width) for shade, width in ((edge, wide + 0.25), (colour, wide)) for points in ends]
