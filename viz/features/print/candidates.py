"""The decoding of a run for paper: a row for each step with its most likely tokens, the chosen one framed."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from model.trace.steps import Candidate, Step
from model.trace.types import Trace
from viz.features.print import axes, fonts, legend
from viz.features.print.notes import TALLEST, no_room, without_font
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.palette import hexadecimal, ink_on, painted
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Rect, Shape, Text
from viz.i18n.translate import _
from viz.labels import tokens

_EDGE, _GAP, _PAD = 1.0, 0.5, 0.6
_NARROWEST = 14.0
"""Least millimeters of a column: a narrow figure has fewer columns."""


def candidates(trace: Trace, options: Options, title: str = "", description: str = "") -> Drawing:
    """The sheet of all steps of a decode. A cell has the color of its probability, and says it in percent."""
    pen = DrawContext.of(options)
    above, y = legend.title(title, pen, _EDGE)
    bar, y = legend.colour_bar(legend.WEIGHTS, _("probability"), pen, options.width - _EDGE, y)
    size, high = _row(len(trace.steps), options, TALLEST - y)
    steps = trace.steps[: math.floor((TALLEST - y) / high)]
    left = _EDGE + fonts.width(str(len(trace.steps)), size) + 1.2
    columns = _columns(steps, options.width - left - _EDGE)
    wide = (options.width - left - _EDGE + _GAP) / columns - _GAP
    drawn = [*above, *bar]
    for number, step in enumerate(steps):
        top = y + number * high
        drawn.append(Text(left - 1.2, top + high / 2 + 0.3 * size * MM, str(step.index + 1), size, pen.palette.scheme.faint, "end"))
        for column, candidate in enumerate(_listed(step, columns)):
            box = (left + column * (wide + _GAP), top, wide, high - _GAP)
            drawn += _cell(candidate, candidate.id == step.chosen.id, box, size, pen)
    lost = len(trace.steps) - len(steps)
    notes = [*([no_room(lost)] if lost else []), *without_font(drawn)]
    bottom = y + len(steps) * high + _EDGE
    return Drawing(options.width, bottom, pen.palette.scheme.background, tuple(drawn), title, description, tuple(notes))


def _row(count: int, options: Options, room: float) -> tuple[float, float]:
    """Points of the tokens, and millimeters from one row to the next."""
    sizes = (options.font_size, SMALLEST_FONT)
    heights = [axes.LINE * MM * (size + SMALLEST_FONT) + 1.2 + _GAP for size in sizes]
    fits = count * heights[0] <= room
    return (sizes[0], heights[0]) if fits else (sizes[1], heights[1])


def _columns(steps: Sequence[Step], room: float) -> int:
    most = max(len(step.candidates) + (step.chosen not in step.candidates) for step in steps)
    return max(1, min(most, math.floor(room / _NARROWEST)))


def _listed(step: Step, columns: int) -> list[Candidate]:
    """The most likely tokens of a step, best first, and always the chosen one: sampling may choose an unlikely one."""
    listed = list(step.candidates[:columns])
    return listed if any(candidate.id == step.chosen.id for candidate in listed) else [*listed[: columns - 1], step.chosen]


def _cell(
    candidate: Candidate, chosen: bool, box: tuple[float, float, float, float], size: float, pen: DrawContext
) -> Iterator[Shape]:
    (x, y, wide, high), scheme, probability = box, pen.palette.scheme, math.exp(candidate.log_probability)
    stops = [(at / (len(scheme.weights) - 1), colour) for at, colour in enumerate(scheme.weights)]
    fill = hexadecimal(painted(np.array(probability), stops))
    yield Rect(x, y, wide, high, fill, scheme.text if chosen else None, 0.4)
    middle, line = x + wide / 2, y + 0.3 + 0.9 * axes.LINE * size * MM
    if pen.options.labels:
        yield Text(middle, line, axes.shortened(tokens.word(candidate.text), size, wide - 2 * _PAD), size, ink_on(fill), "middle")
    below = line + axes.LINE * SMALLEST_FONT * MM
    yield Text(middle, below, tokens.number(probability, ".1%"), SMALLEST_FONT, ink_on(fill), "middle")
