"""Axes of a chart for print: where numbers are drawn, which of them are named, and labels that fit."""

import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from viz.features.print import fonts
from viz.features.print.options import SMALLEST_FONT
from viz.features.print.shapes import MM, Text
from viz.i18n.translate import localized

LINE = 1.15
"""Distance of lines of text, in font sizes."""


def plain(text: Any) -> str:
    """A text of plotly, which is a subset of HTML, as plain text."""
    return html.unescape(re.sub(r"<[^<>]+>", " ", str(text or ""))).strip()


@dataclass(frozen=True)
class Axis:
    """One axis of a chart.

    Attributes:
        first, last: the numbers at its ends: left and right, bottom and top.
        log: whether its scale is logarithmic.
        ticks: numbers and their labels.
        title: its title.
        grid, zero: whether lines are drawn at the ticks, and at 0.
        tokens: whether its labels are tokens, each at its own cell.
        begin, end: its ends on the sheet, in millimeters, once it is placed.
    """

    first: float
    last: float
    log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    title: str = ""
    grid: bool = True
    zero: bool = False
    tokens: bool = False
    begin: float = 0.0
    end: float = 1.0

    def at(self, value: float) -> float:
        """The place of a number on the sheet."""
        if self.log:
            value = math.log10(value) if value > 0 else -math.inf
        return self.begin + (self.end - self.begin) * (value - self.first) / ((self.last - self.first) or 1.0)

    def placed(self, begin: float, end: float) -> "Axis":
        """The axis between two places."""
        return replace(self, begin=begin, end=end)

    @property
    def pitch(self) -> float:
        """Millimeters from one cell to the next, on an axis of cells."""
        return abs(self.end - self.begin) / (abs(self.last - self.first) or 1.0)


def read(given: Mapping[str, Any], spread: tuple[float, float], most: int) -> Axis:
    """An axis from plotly's description.

    Args:
        given: the layout's xaxis or yaxis.
        spread: the ends of what is drawn on it, for an axis without a range.
        most: most ticks of an axis of numbers.
    """
    log = given.get("type") == "log"
    turned = given.get("autorange") == "reversed"  # as plotly, which then ignores the range
    first, last = (None if turned else given.get("range")) or _ends(given, spread, log)
    if turned:
        first, last = last, first
    tokens = "categoryarray" in given
    ticks = _ticks(given, (float(first), float(last)), most, log)
    return Axis(
        float(first),
        float(last),
        log,
        ticks,
        plain((given.get("title") or {}).get("text")),
        grid=given.get("showgrid", True) and not tokens,
        zero=bool(given.get("zeroline")),
        tokens=tokens,
    )


def _ends(given: Mapping[str, Any], spread: tuple[float, float], log: bool) -> tuple[float, float]:
    low, high = spread
    if log:
        low, high = math.log10(max(low, 1e-12)), math.log10(max(high, 1e-12))
    if "categoryarray" in given:
        return -0.5, len(given["categoryarray"]) - 0.5
    low = min(low, 0.0) if given.get("rangemode") == "tozero" else low
    room = 0.04 * (high - low) or 0.5
    return (low if low == 0 and given.get("rangemode") == "tozero" else low - room), high + room


def _ticks(given: Mapping[str, Any], ends: tuple[float, float], most: int, log: bool) -> tuple[tuple[float, str], ...]:
    if "categoryarray" in given:
        names = given.get("labelalias") or {}
        return tuple((float(category), plain(names.get(str(category), category))) for category in given["categoryarray"])
    values = given.get("tickvals")
    if values is None:
        values = _tens(*ends, most) if log else _round_numbers(min(ends), max(ends), min(most, given.get("nticks") or most))
    texts = given.get("ticktext")
    named = (
        [plain(text) for text in texts] if texts is not None else [number(value, given.get("tickformat", "")) for value in values]
    )
    return tuple(zip(map(float, values), named, strict=False))


def _tens(first: float, last: float, most: int) -> list[float]:
    """Powers of ten between two powers, at most `most`, as evenly as may be."""
    low, high = sorted((math.ceil(min(first, last) - 1e-9), math.floor(max(first, last) + 1e-9)))
    return [10.0**power for power in range(low, high + 1, max(1, math.ceil((high - low + 1) / most)))]


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    """Round numbers from `low` to `high`, at most `most`: multiples of 1, 2 or 5 times a power of ten, as close as may be."""
    power = 10.0 ** math.floor(math.log10(((high - low) or 1.0) / max(most, 1)))
    for step in (factor * power for factor in (0.5, 1, 2, 5, 10, 20, 50)):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [round(step * count, 12) for count in range(first, last + 1)]
    return []


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, form: str = "") -> str:
    """A number at a tick: at most three digits, or a power of ten; a sign or commas where plotly's format asks for them."""
    if value >= 1e6 and math.log10(value).is_integer():
        return "10" + str(round(math.log10(value))).translate(_RAISED)
    text = f"{value:,.0f}" if abs(value) >= 1000 and float(value).is_integer() else f"{value:.3g}"
    return ("+" if form.startswith("+") and value > 0 else "") + localized(text).replace("-", "−")


@dataclass(frozen=True)
class Labels:
    """How the labels of an axis are written.

    Attributes:
        size: of their font, in points.
        turned: degrees; 0 is horizontal.
        each: every so many labels is written; 1: all.
        room: millimeters that they take across the axis.
    """

    size: float
    turned: float
    each: int
    room: float


def fitted(texts: Sequence[str], pitch: float, size: float, across: bool) -> Labels:
    """Labels of neighbors `pitch` millimeters apart: horizontal, else upright, else smaller, and at last only some of them.

    They are never slanted: readers of PDF files find no words in slanted text.

    Args:
        texts: the labels.
        pitch: millimeters between neighbors.
        size: points of the figure's font.
        across: whether the axis is horizontal.
    """
    if not texts:
        return Labels(size, 0.0, 1, 0.0)
    widest = max(fonts.width(text, size) for text in texts)
    if across and widest + 0.25 * size * MM <= pitch:
        return Labels(size, 0.0, 1, LINE * size * MM)
    smaller = min(size, max(SMALLEST_FONT, pitch / MM))
    step = max(1, math.ceil(SMALLEST_FONT * MM / pitch - 1e-6))
    widest = max(fonts.width(text, smaller) for text in texts)
    return Labels(smaller, -90.0 if across else 0.0, step, widest)


def shortened(text: str, size: float, room: float) -> str:
    """`text`, or as much of it as has room in so many millimeters, with an ellipsis."""
    if fonts.width(text, size) <= room:
        return text
    fits = next((end for end in range(len(text) - 1, 0, -1) if fonts.width(text[:end] + "…", size) <= room), 0)
    return text[:fits] + "…"


def below(axis: Axis, labels: Labels, y: float, colour: str) -> list[Text]:
    """Labels under an axis whose upper edge is `y`."""
    size = labels.size * MM
    drawn = []
    for value, text in axis.ticks[:: labels.each]:
        x = axis.at(value)
        if labels.turned == 0:
            drawn.append(Text(x, y + size, text, labels.size, colour, "middle"))
        else:
            drawn.append(Text(x + 0.36 * size, y + 0.3 * size, text, labels.size, colour, "end", labels.turned))
    return drawn


def beside(axis: Axis, labels: Labels, x: float, colour: str) -> list[Text]:
    """Labels left of an axis, which end at `x`."""
    down = 0.36 * labels.size * MM
    return [Text(x, axis.at(value) + down, text, labels.size, colour, "end") for value, text in axis.ticks[:: labels.each]]
