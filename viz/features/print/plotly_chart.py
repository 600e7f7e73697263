"""A Plotly figure of the screen as a sheet: the same numbers on the same axes, laid out for paper."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from viz.features.print import axes, fonts, legend, plotly_marks
from viz.features.print.axes import Axis, Labels
from viz.features.print.notes import LINE_OF_TITLE, LONGEST_LABEL, TALLEST, left_out, shortened, without_font
from viz.features.print.options import Options
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Line, Rect, Shape, Text
from viz.i18n.translate import _

_EDGE, _GAP = 1.0, 0.8
_LARGEST_ROW = 6.0


def chart(figure: go.Figure, options: Options, title: str = "", description: str = "") -> Drawing:
    """The sheet of a figure.

    Args:
        figure: one of `viz.figures`: heatmaps, bars, lines and points.
        options: how it is drawn.
        title: its title.
        description: the figure in words.
    """
    return _Chart(figure, options).sheet(title, description)


@dataclass(frozen=True)
class _Box:
    """The area between the axes, in millimeters."""

    left: float
    top: float
    right: float
    bottom: float

    def part(self, domain: tuple[float, float], across: bool) -> tuple[float, float]:
        """Ends of an axis whose domain is a part of the area: from left to right, from bottom to top."""
        low, high = domain
        if across:
            return self.left + low * (self.right - self.left), self.left + high * (self.right - self.left)
        return self.bottom - low * (self.bottom - self.top), self.bottom - high * (self.bottom - self.top)


class _Chart:
    """A figure on its way to paper."""

    def __init__(self, figure: go.Figure, options: Options) -> None:
        self.options, self.pen = options, DrawContext.of(options)
        self.layout: dict[str, Any] = figure.layout.to_plotly_json()
        self.traces: list[dict[str, Any]] = [trace.to_plotly_json() for trace in figure.data]
        self.notes: list[str] = []
        across = {trace.get("xaxis", "x") for trace in self.traces}
        down = {trace.get("yaxis", "y") for trace in self.traces}
        self.axes = {name: self._axis(name) for name in sorted(across | down)}

    @property
    def font(self) -> float:
        """Millimeters of the figure's font size."""
        return self.options.font_size * MM

    def given(self, name: str) -> Mapping[str, Any]:
        """The layout of an axis: x2 is xaxis2."""
        axis: Mapping[str, Any] = self.layout.get(f"{name[0]}axis{name[1:]}", {})
        return axis

    def _axis(self, name: str) -> Axis:
        domain = self.given(name).get("domain") or (0, 1)
        share = domain[1] - domain[0]
        room = self.options.width * 0.75 if name[0] == "x" else self.layout.get("height", 360) * self.pen.pixel
        most = max(3, int(room * share / ((4.0 if name[0] == "x" else 2.2) * self.font)))
        axis = axes.read(self.given(name), self._spread(name), min(most, 8))
        named = axis.tokens or (name[0] == "y" and self.given(name).get("ticktext") is not None)
        return replace(axis, ticks=()) if named and not self.options.labels else axis

    def _spread(self, name: str) -> tuple[float, float]:
        """The smallest and the largest number on an axis."""
        kind, spread = name[0], list[float]()
        for trace in self.traces:
            if trace.get(f"{kind}axis", kind) != name or trace.get(kind) is None:
                continue
            values = plotly_marks.numbers(trace[kind])
            values = values[np.isfinite(values)]
            spread += [*values, 0.0] if trace["type"] == "bar" else list(values)
            if trace["type"] == "heatmap" and len(values):
                half = (values[1] - values[0]) / 2 if len(values) > 1 else 0.5
                spread += [values[0] - half, values[-1] + half]
        return (min(spread), max(spread)) if spread else (0.0, 1.0)

    def sheet(self, title: str, description: str) -> Drawing:
        """The whole figure."""
        above, y = self._above(title)
        box, labels = self._measured(y)
        self.axes = {
            name: axis.placed(*box.part(self.given(name).get("domain") or (0, 1), name[0] == "x"))
            for name, axis in self.axes.items()
        }
        drawn = [*above, *self._grid(), *self._marks(), *self._marked(box), *self._around(box, labels)]
        height = box.bottom + self._under(labels) + _EDGE
        self._say_what_was_left_out(labels, drawn)
        ground = self.pen.palette.scheme.background
        return Drawing(self.options.width, height, ground, tuple(drawn), title, description, tuple(self.notes))

    def _above(self, title: str) -> tuple[list[Shape], float]:
        """Title, legend and color bars, and where they end."""
        drawn, y = legend.title(title, self.pen, _EDGE)
        named = legend.entries(self.traces) if self.layout.get("showlegend") else []
        if named:
            more, y = legend.names(named, self.pen, y)
            drawn += more
        quantity = axes.plain((self.layout.get("title") or {}).get("text"))
        for scale in legend.scales(self.traces):
            more, y = legend.colour_bar(scale, quantity, self.pen, self.options.width - _EDGE, y)
            drawn += more
        return drawn, y

    def _measured(self, top: float) -> tuple[_Box, dict[str, Labels]]:
        """The area between the axes, and how labels are written: first those at the left, which set the width."""
        rows = [name for name in self.axes if name[0] == "y"]
        columns = [name for name in self.axes if name[0] == "x"]
        guess = self.layout.get("height", 360) * self.pen.pixel
        labels = {name: self._labels(name, self._row_pitch(name, guess)) for name in rows}
        longest = max((labels[name].room for name in rows), default=0.0)
        longest = min(longest, LONGEST_LABEL * self.options.width)
        titled = LINE_OF_TITLE * self.font if any(self.axes[name].title for name in rows) else 0.0
        left, right = _EDGE + titled + longest + _GAP, self.options.width - _EDGE - self._beyond()
        labels |= {name: self._labels(name, self._column_pitch(name, right - left)) for name in columns}
        return _Box(left, top, right, top + self._height(rows, columns, right - left, guess)), labels

    def _beyond(self) -> float:
        """Room at the right for half a label of the last tick, and for texts at the ends of bars."""
        last = [axis.ticks[-1][1] for name, axis in self.axes.items() if name[0] == "x" and axis.ticks and not axis.tokens]
        texts = [str(text) for trace in self.traces if trace["type"] == "bar" for text in (trace.get("text") or ())]
        size = self.options.font_size
        return max((fonts.width(text, size) / 2 for text in last), default=0.0) + max(
            (fonts.width(text, size) for text in texts), default=0.0
        )

    def _cells(self, name: str) -> float:
        """How many cells an axis has."""
        axis = self.axes[name]
        return max(1.0, abs(axis.last - axis.first))

    def _is_map(self) -> bool:
        return any(trace["type"] == "heatmap" for trace in self.traces)

    def _named(self, name: str) -> bool:
        """Whether the labels of an axis belong to cells, each with its own place."""
        return self.axes[name].tokens or (name[0] == "y" and self.given(name).get("ticktext") is not None)

    def _row_pitch(self, name: str, guess: float) -> float:
        if not self._named(name):
            return math.inf
        return max(self._least_row(), min(_LARGEST_ROW, guess / self._cells(name)))

    def _least_row(self) -> float:
        """Height of a row whose label still has room; without labels, of a thin one."""
        return axes.LINE * self.font if self.options.labels else 0.9

    def _column_pitch(self, name: str, room: float) -> float:
        if not self._named(name):
            return math.inf
        domain = self.given(name).get("domain") or (0, 1)
        return room * (domain[1] - domain[0]) / self._cells(name)

    def _height(self, rows: list[str], columns: list[str], wide: float, guess: float) -> float:
        """Height of the area: a map of tokens has square cells if labels allow it, other figures the shape of the screen's."""
        tokens = [name for name in rows if self._named(name)]
        if not tokens:
            return min(guess, TALLEST * 0.8)
        count = self._cells(tokens[0])
        square = wide / self._cells(columns[0]) if self._is_map() else 1.5 * self._least_row()
        row = min(max(self._least_row(), square), _LARGEST_ROW)
        return min(count * row, 0.85 * TALLEST)

    def _labels(self, name: str, pitch: float) -> Labels:
        axis, size = self.axes[name], self.options.font_size
        texts = [text for _value, text in axis.ticks]
        if math.isinf(pitch):
            widest = max((fonts.width(text, size) for text in texts), default=0.0)
            return Labels(size, 0.0, 1, widest if name[0] == "y" else axes.LINE * self.font)
        return axes.fitted(texts, pitch, size, name[0] == "x")

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """The pairs of axes that traces are drawn on."""
        yield from dict.fromkeys((trace.get("xaxis", "x"), trace.get("yaxis", "y")) for trace in self.traces)

    def _grid(self) -> Iterator[Shape]:
        line, faint = self.pen.palette.scheme.line, self.pen.palette.scheme.faint
        if self._is_map():
            return
        for across, down in self._pairs():
            x, y = self.axes[across], self.axes[down]
            for axis, other, upright in ((x, y, True), (y, x, False)):
                values = [value for value, _text in axis.ticks] if axis.grid else []
                for value in values:
                    yield _rule(axis.at(value), other, upright, line, 0.1)
                if axis.zero and min(axis.first, axis.last) <= 0 <= max(axis.first, axis.last) and not axis.log:
                    yield _rule(axis.at(0.0), other, upright, faint, 0.15)

    def _marks(self) -> Iterator[Shape]:
        left_out: set[str] = set()
        for trace in self.traces:
            x, y = self.axes[trace.get("xaxis", "x")], self.axes[trace.get("yaxis", "y")]
            if trace["type"] == "heatmap":
                drawn, notes = plotly_marks.cells(trace, x, y, self.pen)
                left_out |= set(notes)
                yield from drawn
            elif trace["type"] == "bar":
                yield from plotly_marks.bars(trace, x, y, float(self.layout.get("bargap", 0.2)), self.pen)
            elif trace.get("x") is not None:
                yield from plotly_marks.scatter(trace, x, y, self.pen)
        if "texts" in left_out:
            self.notes.append(_("The labels in the cells are omitted: they do not fit at this width."))
        if "image" in left_out:
            self.notes.append(
                _("The map is an image: only maps of up to {most:,} cells are drawn as vectors.", most=plotly_marks.MOST_VECTORS)
            )

    def _marked(self, box: _Box) -> Iterator[Shape]:
        """Lines and frames over the marks, and annotations."""
        for shape in self.layout.get("shapes") or ():
            across, down = self._span(shape, "x", box), self._span(shape, "y", box)
            look = shape.get("line") or {}
            if shape["type"] == "line":
                yield from plotly_marks.stroke(list(zip(across, down, strict=True)), look, self.pen)
            else:
                colour = self.pen.palette.colour(look.get("color") or self.pen.palette.scheme.text)
                corner = (min(across), min(down), abs(across[1] - across[0]), abs(down[1] - down[0]))
                yield Rect(*corner, stroke=colour, width_of_stroke=0.3)
        for note in self.layout.get("annotations") or ():
            colour = self.pen.palette.colour((note.get("font") or {}).get("color") or self.pen.palette.scheme.text)
            y = self.axes["y"].at(10 ** note["y"] if self.axes["y"].log else note["y"])
            yield Text(box.left + 0.5, y - 0.6, axes.plain(note["text"]), self.options.font_size, colour)

    def _span(self, shape: Mapping[str, Any], kind: str, box: _Box) -> tuple[float, float]:
        """The ends of a shape along an axis."""
        first, last = shape[f"{kind}0"], shape[f"{kind}1"]
        ref = str(shape.get(f"{kind}ref", kind))
        if ref == "paper" or ref.endswith("domain"):
            return box.part((first, last), kind == "x")
        axis = self.axes[ref]
        return axis.at(first), axis.at(last)

    def _around(self, box: _Box, labels: Mapping[str, Labels]) -> Iterator[Shape]:
        """Frames of maps, labels and titles of axes."""
        scheme = self.pen.palette.scheme
        if self._is_map():
            yield Rect(box.left, box.top, box.right - box.left, box.bottom - box.top, stroke=scheme.line, width_of_stroke=0.12)
        for name, axis in self.axes.items():
            labels_of_axis = labels[name]
            if name[0] == "x":
                colour = scheme.text if axis.tokens else scheme.faint
                yield from axes.below(self._cut(axis, labels_of_axis), labels_of_axis, box.bottom, colour)
                y = box.bottom + min(labels_of_axis.room, LONGEST_LABEL * self.options.width) + LINE_OF_TITLE * self.font * 0.85
                yield Text((axis.begin + axis.end) / 2, y, axis.title, self.options.font_size, scheme.text, "middle")
            else:
                named = scheme.text if self._named(name) else scheme.faint
                yield from axes.beside(self._cut(axis, labels_of_axis), labels_of_axis, box.left - _GAP, named)
                middle = (axis.begin + axis.end) / 2
                yield Text(_EDGE + 0.85 * self.font, middle, axis.title, self.options.font_size, scheme.text, "middle", -90)

    def _cut(self, axis: Axis, labels_of_axis: Labels) -> Axis:
        """The axis with labels that are no longer than their room."""
        room = LONGEST_LABEL * self.options.width
        texts = [axes.shortened(text, labels_of_axis.size, room) for _value, text in axis.ticks]
        if texts != [text for _value, text in axis.ticks]:
            self.notes.append(shortened(axis.title))
        return replace(axis, ticks=tuple(zip((value for value, _text in axis.ticks), texts, strict=True)))

    def _under(self, labels: Mapping[str, Labels]) -> float:
        """Height of labels and titles below the area."""
        columns = [name for name in self.axes if name[0] == "x"]
        titled = LINE_OF_TITLE * self.font if any(self.axes[name].title for name in columns) else 0.0
        return min(max((labels[name].room for name in columns), default=0.0), LONGEST_LABEL * self.options.width) + titled + 0.4

    def _say_what_was_left_out(self, labels: Mapping[str, Labels], drawn: Sequence[Shape]) -> None:
        for name, labels_of_axis in labels.items():
            if labels_of_axis.each > 1:
                self.notes.append(left_out(self.axes[name].title, labels_of_axis.each))
        self.notes += without_font(drawn)


def _rule(at: float, other: Axis, upright: bool, colour: str, wide: float) -> Line:
    ends = ((at, other.begin), (at, other.end)) if upright else ((other.begin, at), (other.end, at))
    return Line(ends, colour, wide)
