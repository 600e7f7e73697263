"""The queries and keys of one head in a plane: up to 20,000 dots, drawn by WebGL."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import LEGEND, axis, colour_bar, literal, picture, scale
from viz.figures.theme import Scheme, scheme

SYMBOLS = ("circle", "diamond")
"""Of queries and of keys."""

GROUPS = 8
"""Most groups with a color of their own."""

PAINTS = ("#e69f00", "#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7b00", "#7a68b8")
"""Colors of groups that people with any color vision can tell apart (after Okabe and Ito 2008)."""

PLACEHOLDERS = {"token": "%{text}", "position": "%{customdata[1]}", "text": "%{customdata[2]}"}
"""What plotly fills in where a dot is pointed at: 20,000 whole sentences would travel with every drawing."""

MODES: list[list[str]] = [["lasso2d", "select2d", "zoom2d", "pan2d", "resetScale2d"]]
"""Buttons of the picture."""


def plane(
    points: Array,
    keys: Array,
    labels: Sequence[str],
    hover: tuple[str, str],
    places: Array,
    named: tuple[str, str],
    titles: tuple[str, str],
    dark: bool,
    groups: tuple[Array, Sequence[str]] | None = None,
    values: tuple[Array, str] | None = None,
) -> go.Figure:
    """A dot for each query and each key. What a drag does is chosen by a button: before that, a finger scrolls the page.

    Args:
        points: [point, 2].
        keys: [point] of bool.
        labels: [point], the tokens.
        hover: what pointing at a query and at a key says, in which PLACEHOLDERS stand for its token, position and text.
        places: [point, 2], position and text of each dot.
        named: what queries and keys are called.
        titles: of the axes.
        dark: which scheme.
        groups: [point], the number of each dot's group, -1: none; and the names of the groups.
        values: [point], a number that decides the color; and what it is. At most one of both; without: queries and keys differ.
    """
    colours = scheme(dark)
    names = dict.fromkeys(range(-1, 0 if groups is None else len(groups[1])), "")
    names |= {} if groups is None else dict(enumerate(groups[1]))
    tokens = {label: literal(label) for label in set(labels)}
    reported = np.concatenate([np.arange(len(points))[:, None], places], axis=1)
    traces: list[dict[str, Any]] = []
    for group, name in names.items():
        for is_key in (False, True):
            members = np.flatnonzero((keys == is_key) & (groups is None or groups[0] == group))
            if not len(members):
                continue
            paint = PAINTS[group % GROUPS] if group >= 0 else colours.faint if groups else (colours.second, colours.accent)[is_key]
            marker = {"size": 5, "symbol": SYMBOLS[is_key], "opacity": 0.7}
            marker |= {"color": paint} if values is None else _scaled(values[0], members, colours, with_bar=not is_key)
            dots = {"type": "scattergl", "mode": "markers", "x": points[members, 0], "y": points[members, 1], "marker": marker}
            dots |= {"name": literal(name or named[is_key]), "text": [tokens[labels[index]] for index in members.tolist()]}
            dots |= {"customdata": reported[members].tolist()}  # as an array, a selection would not report it
            first = bool(name) and not any(other["name"] == dots["name"] for other in traces)
            dots |= {"showlegend": groups is None or first, "hovertemplate": f"{hover[is_key]}<extra></extra>"}
            traces.append(dots)
    free = {"showgrid": True, "zeroline": False, "fixedrange": False}
    layout = {
        "xaxis": axis(colours, titles[0]) | free,
        "yaxis": axis(colours, titles[1]) | free,
        "showlegend": values is None,
        "legend": LEGEND | {"x": 0, "xanchor": "left"},
    }
    return picture(dark, 480, traces, layout, above=64, bar=values[1] if values else "", buttons=len(MODES[0]))


def _scaled(values: Array, members: Array, colours: Scheme, with_bar: bool) -> dict[str, Any]:
    """The numbers of some dots as colors, on the scale of all of them."""
    bar = {"colorbar": colour_bar(colours, buttons=len(MODES[0]))} if with_bar else {}
    ends = {"cmin": 0, "cmax": max(float(values.max()), 1.0)}
    return {"color": values[members], "colorscale": scale(colours.weights[2:])} | ends | bar
