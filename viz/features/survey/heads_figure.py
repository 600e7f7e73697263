"""Pictures of all heads of a survey: as dots by two numbers, and as a grid of layers × heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.annotated_heatmap import gapped_cells, targets
from viz.figures.layout import BAR_HEIGHT, LEGEND, PLACED, axis, colour_bar, literal, picture, room, scale
from viz.figures.theme import Scheme, scheme
from viz.labels import tokens as labels

SYMBOLS = ("circle", "diamond", "square", "cross")
"""One for each kind of site, so that color is not all that tells them apart."""

DOT, LARGEST = 10, 34
"""Pixels of a dot whose size says nothing, and of the largest one where it does."""


@dataclass(frozen=True, eq=False)
class Shade:
    """A number of every head as a color.

    Attributes:
        values: [head]; NaN: there is none, and the dot is empty.
        title: what the numbers are.
    """

    values: Array
    title: str

    def ends(self) -> tuple[float, float, bool]:
        """The numbers at both ends of the scale of colors, and whether it has two hues, for numbers on both sides of 0."""
        known = self.values[np.isfinite(self.values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        if low < 0:
            return -max(-low, high), max(-low, high), True
        return low, max(high, low + 1e-9), False

    def marker(self, colours: Scheme, heads: Sequence[int]) -> dict[str, Any]:
        """Colors of some heads on the scale of all of them."""
        low, high, both = self.ends()
        stops = scale(colours.diverging if both else colours.weights[1:])
        return {"color": self.values[list(heads)], "cmin": low, "cmax": high, "colorscale": stops}


@dataclass(frozen=True)
class Dot:
    """One head of a survey as a dot.

    Attributes:
        head: its place among the heads of the survey.
        name: of the head.
        kind: the place of its kind of site among those that are drawn.
        at: the two numbers, from left to right and from bottom to top.
        size: width in pixels.
        shade: the number that colors it; None: its kind of site does; NaN: it is not known, and the dot is empty.
        label: its roles, a line each; none: there are none, or no room for them.
        place: where the label is, as plotly names it.
        told: lines of what is said of it where it is pointed at, after its numbers.
    """

    head: int
    name: str
    kind: int
    at: tuple[float, float]
    size: float
    shade: float | None
    label: tuple[str, ...]
    place: str
    told: tuple[str, ...]


def dots(
    names: Sequence[str],
    groups: Sequence[str],
    across: Array,
    up: Array,
    roles: Sequence[str],
    shade: Shade | None = None,
    weight: Shade | None = None,
    spread: Sequence[str] = (),
) -> list[Dot]:
    """A dot for each head that has both numbers, large ones first, as small ones lie on them; those with a role are labeled where
    there is room.

    Args:
        names, groups, roles: of each head: its name, the kind of its site, and its roles or "".
        across, up: [head], the two numbers.
        shade: what decides the colors; None: the kind of site does.
        weight: what decides the areas of the dots, numbers below 0 and unknown ones as 0; None: all are equal.
        spread: of each head, what is said last where it is pointed at: how a number varies over the texts.
    """
    sizes, kinds = _sizes(len(names), weight), list(dict.fromkeys(groups))
    labels = [tuple(role.replace(", ", ",\n").split("\n")) if role else () for role in roles]
    places = _label_places(across, up, labels)
    drawn = np.flatnonzero(np.isfinite(across) & np.isfinite(up)).tolist()
    return [
        Dot(
            head,
            names[head],
            kinds.index(groups[head]),
            (float(across[head]), float(up[head])),
            float(sizes[head]),
            float(shade.values[head]) if shade is not None else None,
            labels[head] if head in places else (),
            places.get(head, ""),
            tuple(filter(None, (roles[head], *(_said(one, head) for one in (shade, weight) if one), *spread[head : head + 1]))),
        )
        for head in sorted(drawn, key=lambda head: -sizes[head])
    ]


def scatter(
    drawn: Sequence[Dot], kinds: Sequence[str], titles: tuple[str, str], selected: int, dark: bool, shade: Shade | None = None
) -> go.Figure:
    """The dots of all heads, for print.

    Args:
        drawn: the dots.
        kinds: names of the kinds of sites.
        titles: of the two numbers.
        selected: the head with a ring; -1: none.
        dark: which scheme.
        shade: what decides the colors.
    """
    colours, traces = scheme(dark), list[dict[str, Any]]()
    for (kind, known), group in groupby(sorted(drawn, key=_look), _look):
        places = list(group)
        paint = (colours.second, colours.faint, colours.accent, colours.text)[kind % 4] if shade is None else colours.card
        filled = shade is not None and known
        marker = shade.marker(colours, [dot.head for dot in places]) if shade is not None and filled else {"color": paint}
        if filled and not any("colorbar" in drawn_trace["marker"] for drawn_trace in traces):
            marker |= {"colorbar": colour_bar(colours)}
        marker |= {"symbol": SYMBOLS[kind % len(SYMBOLS)], "line": {"width": 1, "color": colours.text}}
        marker |= {"size": [dot.size for dot in places], "opacity": 0.8 if len({dot.size for dot in drawn}) > 1 else 1}
        named = not any(drawn_trace["name"] == literal(kinds[kind]) for drawn_trace in traces)
        points: dict[str, Any] = {"type": "scatter", "mode": "markers", "name": literal(kinds[kind]), "showlegend": named}
        traces.append(points | {"x": [dot.at[0] for dot in places], "y": [dot.at[1] for dot in places], "marker": marker})
    ring = {"symbol": "circle-open", "color": colours.text, "line": {"width": 3}}
    traces.append(
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [dot.at[0] for dot in drawn],
            "y": [dot.at[1] for dot in drawn],
            "showlegend": False,
            "marker": ring | {"size": [dot.size + 8 for dot in drawn], "opacity": [float(dot.head == selected) for dot in drawn]},
            "text": ["<br>".join(map(literal, dot.label)) for dot in drawn],
            "textposition": [dot.place or "top center" for dot in drawn],
            "textfont": {"size": 12, "color": colours.faint},
        }
    )
    return _with_axes(traces, colours, titles, len(kinds), shade, dark)


def _look(dot: Dot) -> tuple[int, bool]:
    """What decides the symbol of a dot, and whether it is filled."""
    return dot.kind, dot.shade is None or bool(np.isfinite(dot.shade))


MARGIN = {"l": 64, "r": 18, "b": 54}
"""Pixels beside a plot with two axes of numbers that have titles."""


def _with_axes(
    traces: list[dict[str, Any]], colours: Scheme, titles: tuple[str, str], kinds: int, shade: Shade | None, dark: bool
) -> go.Figure:
    """The dots between their axes; below a color bar, which needs the room above the plot, the legend goes under it."""
    lines = {"showgrid": True, "zeroline": False} | PLACED
    layout: dict[str, Any] = {name: axis(colours, title) | lines for name, title in zip(("xaxis", "yaxis"), titles, strict=True)}
    legend = LEGEND | {"x": 0, "xanchor": "left", "itemsizing": "constant"}
    if shade is None:
        margin = MARGIN | {"t": 48 if kinds > 1 else 16}
        return picture(dark, 430, traces, layout | {"showlegend": kinds > 1, "legend": legend, "margin": margin})
    layout |= {"showlegend": kinds > 1, "legend": legend | {"yref": "paper", "y": -0.16}, "margin": MARGIN | {"t": BAR_HEIGHT}}
    return picture(dark, 470, traces, layout, bar=shade.title)


def _said(shade: Shade, head: int) -> str:
    """A number of a head, as pointing at it says it."""
    value = float(shade.values[head])
    return f"{shade.title}: {_number(value)}"


def _number(value: float) -> str:
    return labels.number(value, ".3f") if np.isfinite(value) else "–"


def _sizes(count: int, weight: Shade | None) -> Array:
    """[head], the width of each dot in pixels: areas are in proportion to the numbers, above a smallest one that is still seen."""
    if weight is None:
        return np.full(count, float(DOT))
    values = np.nan_to_num(np.maximum(weight.values, 0.0))
    return np.asarray(np.maximum(LARGEST * np.sqrt(values / (values.max() or 1.0)), 5.0))


CELL = 22
"""Pixels of a row of the grid."""


def grid(
    names: Sequence[str],
    rows: Sequence[str],
    places: Sequence[tuple[int, int]],
    title: str,
    shade: Shade,
    selected: int,
    marked: Sequence[int],
    dark: bool,
) -> go.Figure:
    """A cell for each head: a row for each site, a column for each head in it, counted from 1. A head without the number has an
    empty cell. Plotly names as many columns as have room.

    Args:
        names: of the heads.
        rows: what the rows are called.
        places: of each head its row and its column, counted from 0.
        title: of the columns.
        shade: the number that is drawn.
        selected: the head with a frame; -1: none.
        marked: heads with a thin frame.
        dark: which scheme.
    """
    colours, columns = scheme(dark), 1 + max(column for _row, column in places)
    values = np.full((len(rows), columns), np.nan)
    for head, place in enumerate(places):
        values[place] = shade.values[head]
    counted, at = list(range(1, columns + 1)), [(row, column + 1) for row, column in places]
    marker = shade.marker(colours, range(len(names)))
    cells = gapped_cells(values, (marker["cmin"], marker["cmax"]), marker["colorscale"], colour_bar(colours)) | {"x": counted}
    points = targets(at, CELL - 4) | {
        "customdata": [[literal(name), head] for head, name in enumerate(names)],
        "text": [_number(float(value)) for value in shade.values],
        "hovertemplate": "%{customdata[0]}: <b>%{text}</b><extra></extra>",
    }
    framed = (*marked, *([selected] if selected >= 0 else []))
    frames = [_frame(at[head], {"color": colours.text, "width": 3 if head == selected else 1}) for head in framed]
    ticks = {"showgrid": False, "tickfont": {"size": 12, "color": colours.text}} | PLACED
    down = {"tickvals": list(range(len(rows))), "ticktext": [literal(name) for name in rows], "range": [len(rows) - 0.5, -0.5]}
    few = {"tickvals": counted} if columns < 6 else {}  # plotly would name halves
    across = {"range": [0.5, columns + 0.5], "tickangle": 0, "zeroline": False} | few
    layout = {"xaxis": axis(colours, title) | ticks | across, "yaxis": axis(colours, "") | ticks | down, "shapes": frames}
    layout |= {"hovermode": "closest", "margin": {"l": 10 + room(rows), "r": 18, "t": BAR_HEIGHT, "b": 48}}
    return picture(dark, 112 + CELL * len(rows), [cells, points], layout, bar=shade.title)


def _frame(cell: tuple[int, int], line: dict[str, Any]) -> dict[str, Any]:
    row, column = cell
    return {"type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5, "line": line}


_PLOT, _LETTER, _LINE, _DOT = np.array([250.0, 330.0]), 6.6, 15.6, 8.0
_PLACES = ("top center", "bottom center", "middle right", "middle left", "top right", "top left", "bottom right", "bottom left")


def _label_places(across: Array, up: Array, labels: Sequence[Sequence[str]]) -> dict[int, str]:
    """Where each label stands beside its dot, for those that have room: no label lies over another one, a dot or the edge.

    It is decided for the plot of a phone, in pixels. On a wider screen the dots are further apart and the labels as large, so
    labels that do not meet there meet nowhere.

    Args:
        across, up: [head], the places of the dots.
        labels: of each head, its lines.
    """
    at = np.stack([across, -up], axis=1)
    drawn = np.isfinite(at).all(axis=1)
    low, high = at[drawn].min(axis=0, initial=np.inf), at[drawn].max(axis=0, initial=-np.inf)
    at = (0.06 + 0.88 * (at - low) / np.where(high > low, high - low, 1)) * _PLOT
    taken = [np.array([dot - _DOT / 2, dot + _DOT / 2]) for dot in at[drawn]]
    places: dict[int, str] = {}
    for head in sorted(np.flatnonzero(drawn).tolist(), key=lambda head: -up[head]):
        lines = labels[head]
        widest = max((sum(1 + (ord(letter) > 0x2E7F) for letter in line) for line in lines), default=0)
        size = np.array([_LETTER * widest, _LINE * len(lines)])
        for place in _PLACES if lines else ():
            towards = np.array([("right" in place) - ("left" in place), ("bottom" in place) - ("top" in place)])
            middle = at[head] + towards * (size / 2 + _DOT)
            box = np.array([middle - size / 2, middle + size / 2])
            inside = (box[0] >= 0).all() and (box[1] <= _PLOT).all()
            if inside and not any((box[0] < other[1]).all() and (other[0] < box[1]).all() for other in taken):
                places[head] = place
                taken.append(box)
                break
    return places
