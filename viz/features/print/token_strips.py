"""The token strips of a run for paper: each token in a box, a generated one with its probability, in as many lines as they need."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from model.trace.types import Trace
from viz.canvas.scenes import attention
from viz.features.print import axes, fonts, legend
from viz.features.print.notes import TALLEST, no_room, without_font
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Rect, Shape, Text
from viz.labels import tokens as labels

_EDGE, _GAP, _PAD, _BAR = 1.0, 0.7, 0.8, 0.5
"""Millimeters: margin of the sheet, between boxes, inside a box, and the height of the bar of a probability."""

Chip = Mapping[str, Any]


@dataclass(frozen=True)
class _Strip:
    """A strip whose tokens are laid out in lines.

    Attributes:
        title: its title.
        lines: its tokens line by line.
        generated: whether its boxes have room for a probability.
    """

    title: str
    lines: tuple[tuple[Chip, ...], ...]
    generated: bool


def strips(trace: Trace, options: Options, title: str = "", description: str = "") -> Drawing:
    """The sheet of all strips of a run: the source, and the target that was given or generated."""
    strips_ = [attention.strip(trace, name) for name in trace.tokens]
    drawn, bottom, lost = _sheet(strips_, options.font_size, options, title)
    if bottom > TALLEST:
        drawn, bottom, lost = _sheet(strips_, SMALLEST_FONT, options, title)
    notes = [*([no_room(lost)] if lost else []), *without_font(drawn)]
    ground = DrawContext.of(options).palette.scheme.background
    return Drawing(options.width, bottom + _EDGE, ground, tuple(drawn), title, description, tuple(notes))


def _sheet(strips_: Sequence[Mapping[str, Any]], size: float, options: Options, title: str) -> tuple[list[Shape], float, int]:
    """The shapes at a font size, where they end, and how many tokens have no room on a page."""
    pen = DrawContext.of(options)
    drawn, y = legend.title(title, pen, _EDGE)
    least, lost = size == SMALLEST_FONT, 0
    for strip in (_laid_out(described, size, options.width - 2 * _EDGE) for described in strips_):
        high = _height(size, strip.generated)
        drawn.append(Text(_EDGE, y + 0.9 * size * MM, strip.title, size, pen.palette.scheme.faint))
        y += axes.LINE * size * MM + 0.6
        for line in strip.lines:
            if least and y + high > TALLEST:
                lost += len(line)
                continue
            drawn += _line(line, y, high, size, pen)
            y += high + _GAP
        y += 1.2
    return drawn, y - 1.2, lost


def _height(size: float, generated: bool) -> float:
    """Millimeters of a box: the token, and below it the probability with its bar."""
    return axes.LINE * size * MM + 1.0 + (axes.LINE * SMALLEST_FONT * MM + _BAR if generated else 0.0)


def _laid_out(strip: Mapping[str, Any], size: float, room: float) -> _Strip:
    lines: list[list[Chip]] = [[]]
    used = 0.0
    for token in strip["tokens"]:
        wide = _width(token, size, room)
        if lines[-1] and used + wide > room:
            lines.append([])
            used = 0.0
        lines[-1].append(token)
        used += wide + _GAP
    return _Strip(strip["title"], tuple(map(tuple, lines)), strip["generated"])


def _width(token: Chip, size: float, room: float) -> float:
    texts = [fonts.width(token["label"], size)]
    texts += [fonts.width(_percent(token), SMALLEST_FONT)] if "probability" in token else []
    return min(room, max(texts) + 2 * _PAD)


def _percent(token: Chip) -> str:
    return labels.number(token["probability"], ".0%")


def _line(tokens: Sequence[Chip], y: float, high: float, size: float, pen: DrawContext) -> Iterator[Shape]:
    """The boxes of one line, from the left."""
    x, room = _EDGE, pen.options.width - 2 * _EDGE
    for token in tokens:
        wide = _width(token, size, room)
        yield from _box(token, (x, y, wide, high), size, pen)
        x += wide + _GAP


def _box(token: Chip, box: tuple[float, float, float, float], size: float, pen: DrawContext) -> Iterator[Shape]:
    """A token. Special ones are faint; one that was given by hand in a decode has another frame."""
    (x, y, wide, high), scheme = box, pen.palette.scheme
    by_hand = token.get("byHand", False)
    yield Rect(x, y, wide, high, scheme.card, scheme.second if by_hand else scheme.line, 0.35 if by_hand else 0.2)
    line = y + 0.5 + 0.85 * axes.LINE * size * MM
    if pen.options.labels:
        ink = scheme.faint if token["special"] else scheme.text
        yield Text(x + wide / 2, line, axes.shortened(token["label"], size, wide - 2 * _PAD + 0.01), size, ink, "middle")
    if "probability" in token:
        below = line + axes.LINE * SMALLEST_FONT * MM
        yield Text(x + wide / 2, below, _percent(token), SMALLEST_FONT, scheme.faint, "middle")
        yield Rect(x, y + high - _BAR, wide * token["probability"], _BAR, fill=scheme.accent)
