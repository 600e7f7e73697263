"""One head through a training for paper: its map at every snapshot, one beside the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from model.trace.types import Attention, Trace
from viz.features.print import axes, fonts, legend
from viz.features.print.atlas import FINEST, MOST_VECTORS, axes_of, tile
from viz.features.print.notes import TALLEST
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Text
from viz.i18n.translate import _

_EDGE, _GAP = 1.0, 1.2
_NARROWEST, _WIDEST = 14.0, 28.0
"""Millimeters of a map's side."""


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A snapshot of a training.

    Attributes:
        title: the text below its map, such as “After 100 steps”.
        attention: the site, in the run of this snapshot.
    """

    title: str
    attention: Attention


def filmstrip(
    trace: Trace, snapshots: Sequence[Snapshot], head: int, options: Options, title: str = "", description: str = ""
) -> Drawing:
    """The sheet of one head at all snapshots, the first at the upper left.

    Args:
        trace: a run with the tokens of all snapshots, for the names of the axes.
        snapshots: the snapshots in the order of the training.
        head: counted from 0.
        options: how the figure is drawn.
        title: its title.
        description: the figure in words.
    """
    pen, size = DrawContext.of(options), options.font_size
    drawn, y = legend.title(title, pen, _EDGE)
    named = axes.shortened(axes_of(trace, snapshots[0].attention), size, options.width - 2 * _EDGE)
    drawn.append(Text(_EDGE, y + 0.9 * size * MM, named, size, pen.palette.scheme.faint))
    bar, y = legend.colour_bar(legend.WEIGHTS, _("weight"), pen, options.width - _EDGE, y + axes.LINE * size * MM)
    small = max(SMALLEST_FONT, 0.86 * size)
    columns, side = _plan(snapshots, small, options.width - 2 * _EDGE, TALLEST - y)
    vectors = options.maps == "vector" and len(snapshots) * min(snapshots[0].attention.mask.size, FINEST**2) <= MOST_VECTORS
    step, down = side + _GAP, side + _GAP + axes.LINE * small * MM
    drawn += bar
    for index, snapshot in enumerate(snapshots):
        x, top = _EDGE + index % columns * step, y + index // columns * down
        drawn += tile(snapshot.attention, head, (x, top, side), pen, vectors)
        named = axes.shortened(snapshot.title, small, side)
        drawn.append(Text(x + side / 2, top + side + small * MM, named, small, pen.palette.scheme.text, "middle"))
    height = y + math.ceil(len(snapshots) / columns) * down + _EDGE
    return Drawing(options.width, height, pen.palette.scheme.background, tuple(drawn), title, description)


def _plan(snapshots: Sequence[Snapshot], small: float, room: float, down: float) -> tuple[int, float]:
    """How many maps are side by side, and the side of one: wide enough for the names below, if a page has room for that."""
    widest = max(fonts.width(snapshot.title, small) for snapshot in snapshots)
    columns = max(1, math.floor((room + _GAP) / (max(_NARROWEST, min(widest, _WIDEST)) + _GAP)))
    while True:
        side = min((room + _GAP) / columns - _GAP, _WIDEST)
        if math.ceil(len(snapshots) / columns) * (side + _GAP + axes.LINE * small * MM) <= down or columns >= len(snapshots):
            return columns, side
        columns += 1
