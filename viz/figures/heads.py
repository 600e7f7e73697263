"""Pictures of all heads of a survey: as dots by two numbers, and as a grid of layers × heads."""

from collections.abc import Sequence
from dataclasses import dataclass
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

MODES: list[list[str]] = [["select2d", "lasso2d"]]
"""Buttons of the dots: before one is chosen, a finger scrolls the page."""

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

    def marker(self, colours: Scheme, heads: Sequence[int]) -> dict[str, Any]:
        """Colors of some heads on the scale of all of them; numbers on both sides of 0 have two hues."""
        known = self.values[np.isfinite(self.values)]
        low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
        stops = scale(colours.weights[1:])
        if low < 0:
            low, high, stops = -max(-low, high), max(-low, high), scale(colours.diverging)
        return {"color": self.values[list(heads)], "cmin": low, "cmax": max(high, low + 1e-9), "colorscale": stops}


def scatter(
    names: Sequence[str],
    groups: Sequence[str],
    across: Array,
    up: Array,
    titles: tuple[str, str],
    roles: Sequence[str],
    selected: int,
    dark: bool,
    shade: Shade | None = None,
    weight: Shade | None = None,
    spread: Sequence[str] = (),
) -> go.Figure:
    """A dot for each head that has both numbers; those with a role are labeled where there is room.

    Args:
        names, groups, roles: of each head: its name, the kind of its site, and its roles or "".
        across, up: [head], the two numbers.
        titles: their titles.
        selected: the head with a ring; -1: none.
        dark: which scheme.
        shade: what decides the colors; None: the kind of site does.
        weight: what decides the areas of the dots, numbers below 0 and unknown ones as 0; None: all are equal.
        spread: of each head, what is said last where it is pointed at: how a number varies over the texts.
    """
    colours, kinds = scheme(dark), list(dict.fromkeys(groups))
    sizes = _sizes(len(names), weight)
    also = [(literal(roles[head]), *(_said(each, head) for each in (shade, weight) if each)) for head in range(len(names))]
    told = ["".join(f"<br>{line}" for line in (*lines, *spread[head : head + 1]) if line) for head, lines in enumerate(also)]
    pointed = [[literal(name), head, told[head]] for head, name in enumerate(names)]
    drawn = np.isfinite(across) & np.isfinite(up)
    known = np.ones(len(names), bool) if shade is None else np.isfinite(shade.values)
    painted: dict[str, Any] = {"opacity": 1 if weight is None else 0.8}
    traces: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        paint = (colours.second, colours.faint, colours.accent, colours.text)[number % 4] if shade is None else colours.card
        look: dict[str, Any] = painted | {"symbol": SYMBOLS[number % len(SYMBOLS)], "line": {"width": 1, "color": colours.text}}
        of_kind = [head for head in np.flatnonzero(drawn).tolist() if groups[head] == kind]
        of_kind.sort(key=lambda head: -sizes[head])  # small dots lie on large ones
        with_and_without = ([head for head in of_kind if known[head]], [head for head in of_kind if not known[head]])
        for own in filter(None, with_and_without):
            filled = shade is not None and bool(known[own[0]])
            marker = shade.marker(colours, own) if shade is not None and filled else {"color": paint}
            if filled and not any("colorbar" in each["marker"] for each in traces):
                marker |= {"colorbar": colour_bar(colours, buttons=len(MODES[0]))}
            dots: dict[str, Any] = {"type": "scatter", "mode": "markers", "x": across[own], "y": up[own], "name": literal(kind)}
            dots |= {"showlegend": not any(each["name"] == literal(kind) for each in traces)}
            dots |= {"customdata": [pointed[head] for head in own], "hoverinfo": "skip", "unselected": {"marker": painted}}
            traces.append(dots | {"marker": marker | look | {"size": [sizes[head] for head in own]}})
    labels = [literal(role).replace(", ", ",<br>") for role in roles]
    places = sorted(np.flatnonzero(drawn).tolist(), key=lambda head: -sizes[head])
    rings = _rings(places, across, up, sizes, selected, colours) | {"customdata": [pointed[head] for head in places]}
    stands = _label_places(across, up, labels)
    rings |= {"text": [labels[head] if head in stands else "" for head in places]}
    traces.append(rings | {"textposition": [stands.get(head, "top center") for head in places]})
    return _with_axes(traces, colours, titles, len(kinds), shade, dark)


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
    return picture(dark, 470, traces, layout, bar=shade.title, buttons=len(MODES[0]))


def _rings(heads: Sequence[int], across: Array, up: Array, sizes: Array, selected: int, colours: Scheme) -> dict[str, Any]:
    """A ring around each dot, seen around the selected one alone, and the labels. Rings are what can be pointed at: plotly shows
    that of a dot as soon as it is clicked, before the page answers.
    """
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": across[heads],
        "y": up[heads],
        "showlegend": False,
        "marker": {
            "size": sizes[heads] + 8,
            "symbol": "circle-open",
            "color": colours.text,
            "opacity": [float(head == selected) for head in heads],
            "line": {"width": 3},
        },
        "textfont": {"size": 12, "color": colours.faint},
        "selectedpoints": [place for place, head in enumerate(heads) if head == selected],
        "selected": {"marker": {"opacity": 1}, "textfont": {"color": colours.faint}},
        "unselected": {"marker": {"opacity": 0}, "textfont": {"color": colours.faint}},
        "hovertemplate": "%{customdata[0]}: <b>%{x:.3f}</b>, <b>%{y:.3f}</b>%{customdata[2]}<extra></extra>",
    }


def _said(shade: Shade, head: int) -> str:
    """A number of a head, as pointing at it says it."""
    value = float(shade.values[head])
    return f"{literal(shade.title)}: {_number(value)}"


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


def _label_places(across: Array, up: Array, labels: Sequence[str]) -> dict[int, str]:
    """Where each label stands beside its dot, for those that have room: no label lies over another one, a dot or the edge.

    It is decided for the plot of a phone, in pixels. On a wider screen the dots are further apart and the labels as large, so
    labels that do not meet there meet nowhere.

    Args:
        across, up: [head], the places of the dots.
        labels: of each head, lines separated by <br>; "": none.
    """
    at = np.stack([across, -up], axis=1)
    drawn = np.isfinite(at).all(axis=1)
    low, high = at[drawn].min(axis=0, initial=np.inf), at[drawn].max(axis=0, initial=-np.inf)
    at = (0.06 + 0.88 * (at - low) / np.where(high > low, high - low, 1)) * _PLOT
    taken = [np.array([dot - _DOT / 2, dot + _DOT / 2]) for dot in at[drawn]]
    found: dict[int, str] = {}
    for head in sorted(np.flatnonzero(drawn).tolist(), key=lambda head: -up[head]):
        lines = labels[head].split("<br>")
        size = np.array([_LETTER * max(sum(1 + (ord(one) > 0x2E7F) for one in line) for line in lines), _LINE * len(lines)])
        for place in _PLACES if labels[head] else ():
            towards = np.array([("right" in place) - ("left" in place), ("bottom" in place) - ("top" in place)])
            middle = at[head] + towards * (size / 2 + _DOT)
            box = np.array([middle - size / 2, middle + size / 2])
            inside = (box[0] >= 0).all() and (box[1] <= _PLOT).all()
            if inside and not any((box[0] < other[1]).all() and (other[0] < box[1]).all() for other in taken):
                found[head] = place
                taken.append(box)
                break
    return found
