"""The map of a network for paper, as the paper's figure 1: encoder left, decoder right, input at the bottom, output at the top."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from model.trace import stages
from model.trace.types import Trace
from viz.canvas.scenes.network import Box, Column, Part, columns
from viz.features.print import axes, legend
from viz.features.print.notes import TALLEST, without_font
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Line, Polygon, Rect, Shape, Text
from viz.i18n.translate import _

_EDGE, _GAP, _PAD = 1.0, 1.4, 1.0
_BETWEEN = 9.0
"""Millimeters between the encoder and the decoder, where the arrows run."""

_WIDEST = 60.0
_TIP = 0.8


def network(trace: Trace, options: Options, title: str = "", description: str = "") -> Drawing:
    """The map of the network that ran."""
    pen = DrawContext.of(options)
    drawn, top = legend.title(title, pen, _EDGE)
    columns_ = columns(trace, stages.walk(trace), {})
    plans = [list(column.parts) for column in columns_]
    notes = []
    if max(_height(plan, options.font_size) for plan in plans) > 0.9 * TALLEST:
        plans, notes = (
            [_once(plan) for plan in plans],
            [_("Layers with the same parts are drawn once, because not all layers fit on the page.")],
        )
    size = options.font_size
    if (high := max(_height(plan, size) for plan in plans)) > 0.9 * TALLEST:
        size, high = SMALLEST_FONT, max(_height(plan, SMALLEST_FONT) for plan in plans)
    drawn += _columns(columns_, plans, top + high, size, pen)
    bottom = top + high + axes.LINE * size * MM + _EDGE
    notes += without_font(drawn)
    return Drawing(options.width, bottom, pen.palette.scheme.background, tuple(drawn), title, description, tuple(notes))


def _once(plan: list[Part]) -> list[Part]:
    """The parts with each run of equal layers as one, which is named after the first and the last of them."""
    parts = []
    for _key, run in groupby(plan, key=lambda part: [(box.title, box.reads_encoder) for box in part.boxes]):
        alike = list(run)
        ends = alike[0].title if len(alike) == 1 else f"{alike[0].title} – {alike[-1].title}"
        parts.append(Part(ends, alike[0].boxes))
    return parts


def _box_height(size: float) -> float:
    return axes.LINE * size * MM + 1.2


def _height(plan: Sequence[Part], size: float) -> float:
    """Millimeters of a column."""
    inside = sum(len(part.boxes) * (_box_height(size) + _GAP) for part in plan)
    return inside + sum(2 * _PAD + axes.LINE * SMALLEST_FONT * MM for part in plan if part.title)


def _columns(
    columns_: Sequence[Column], plans: Sequence[Sequence[Part]], bottom: float, size: float, pen: DrawContext
) -> Iterator[Shape]:
    """Both columns from `bottom` up, their names below, and the arrows from the encoder's output."""
    count = len(plans)
    wide = min(_WIDEST, (pen.options.width - 2 * _EDGE - (count - 1) * _BETWEEN) / count)
    left = (pen.options.width - count * wide - (count - 1) * _BETWEEN) / 2
    readers: list[float] = []
    for number, (column, plan) in enumerate(zip(columns_, plans, strict=True)):
        x = left + number * (wide + _BETWEEN)
        yield Text(x + wide / 2, bottom + 0.95 * size * MM, column.title, size, pen.palette.scheme.faint, "middle")
        yield from _parts(plan, x, wide, bottom, size, pen)
        readers += _readers(plan, bottom, size)
    if readers:
        yield from _arrows(left + wide, _top(plans[0], bottom, size), readers, pen)


def _boxes(plan: Sequence[Part], bottom: float, size: float) -> Iterator[tuple[Part, Box, float]]:
    """The boxes of a column with the upper edge of each, from below."""
    y = bottom
    for part in plan:
        y -= _PAD if part.title else 0
        for box in part.boxes:
            y -= _box_height(size)
            yield part, box, y
            y -= _GAP
        y -= _PAD + axes.LINE * SMALLEST_FONT * MM if part.title else 0


def _top(plan: Sequence[Part], bottom: float, size: float) -> float:
    """The middle of a column's uppermost box."""
    return list(_boxes(plan, bottom, size))[-1][2] + _box_height(size) / 2


def _readers(plan: Sequence[Part], bottom: float, size: float) -> list[float]:
    """The middles of the boxes that read the encoder's output."""
    return [y + _box_height(size) / 2 for _part, box, y in _boxes(plan, bottom, size) if box.reads_encoder]


def _parts(plan: Sequence[Part], x: float, wide: float, bottom: float, size: float, pen: DrawContext) -> Iterator[Shape]:
    """Frames of the layers, boxes, and the lines between them."""
    scheme, before = pen.palette.scheme, 0.0
    for _key, boxes in groupby(_boxes(plan, bottom, size), key=lambda boxed: id(boxed[0])):
        placed = list(boxes)
        name, high = placed[0][0].title, _box_height(size)
        if name:
            above = placed[-1][2] - _PAD - axes.LINE * SMALLEST_FONT * MM
            yield Rect(x, above, wide, placed[0][2] + high + _PAD - above, stroke=scheme.line)
            yield Text(x + _PAD, above + 0.95 * SMALLEST_FONT * MM, name, SMALLEST_FONT, scheme.faint)
        for _placed_part, box, y in placed:
            if before:
                yield Line(((x + wide / 2, before), (x + wide / 2, y + high)), scheme.faint, 0.2)
            yield Rect(x + 2 * _PAD, y, wide - 4 * _PAD, high, scheme.card, scheme.faint)
            if pen.options.labels:
                text = axes.shortened(box.title, size, wide - 5 * _PAD)
                yield Text(x + wide / 2, y + 0.6 + 0.85 * size * MM, text, size, scheme.text, "middle")
            before = y


def _arrows(x: float, start: float, readers: Sequence[float], pen: DrawContext) -> Iterator[Shape]:
    """Arrows from the encoder's output to the boxes that read it."""
    colour, middle = pen.palette.scheme.accent, x + _BETWEEN / 2
    yield Line(((x - 2 * _PAD, start), (middle, start)), colour, 0.3)
    yield Line(((middle, min(start, *readers)), (middle, max(start, *readers))), colour, 0.3)
    for y in readers:
        end = x + _BETWEEN + 2 * _PAD
        yield Line(((middle, y), (end - _TIP, y)), colour, 0.3)
        yield Polygon(((end, y), (end - 1.5 * _TIP, y - _TIP), (end - 1.5 * _TIP, y + _TIP)), colour)
