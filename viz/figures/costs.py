"""Costs as lines: bytes, operations or milliseconds over tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go

from viz.figures.layout import BAR_HEIGHT, LEGEND, axis, literal, picture
from viz.figures.theme import scheme


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes:
        name: in the legend.
        values: at each place of the horizontal axis.
        look: `own` for what is computed here, `other` and `third` for what it is compared with.
    """

    name: str
    values: Sequence[float]
    look: Literal["own", "other", "third"] = "own"


MOST_MARKED = 64
"""Most places whose values are marked on a line."""


def lines(
    across: Sequence[float],
    drawn: Sequence[Line],
    axes: tuple[str, str],
    dark: bool,
    logarithmic: tuple[bool, bool] = (False, False),
    at: int = -1,
    mark: tuple[float, float] | None = None,
    level: float | None = None,
) -> go.Figure:
    """Line chart over tokens, or over any other numbers.

    Args:
        across: numbers on the horizontal axis.
        drawn: the lines.
        axes: titles of the horizontal and the vertical axis.
        dark: whether the page is dark.
        logarithmic: whether each axis is.
        at: index of the place that a dashed line marks; -1: none.
        mark: a place with a dot; None: there is none.
        level: height of a dashed line across; None: there is none.
    """
    colours = scheme(dark)
    looks = {
        "own": {"color": colours.accent, "width": 3},
        "other": {"color": colours.second, "width": 2, "dash": "dash"},
        "third": {"color": colours.faint, "width": 2, "dash": "dot"},
    }
    hover = "%{fullData.name}<br>" + literal(axes[0]) + ": %{x:,}<br><b>%{y:,.3~s}</b><extra></extra>"
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers" if len(across) <= MOST_MARKED else "lines",
            "x": list(across),
            "y": list(line.values),
            "name": literal(line.name),
            "line": looks[line.look],
            "marker": {"size": 6},
            "hovertemplate": hover,
        }
        for line in drawn
    ]
    beside = {"type": "scatter", "showlegend": False, "hoverinfo": "skip"}
    if level is not None:
        ends = {"x": [across[0], across[-1]], "y": [level, level]}
        traces.append(beside | ends | {"mode": "lines", "line": {"color": colours.text, "width": 1, "dash": "dash"}})
    if mark is not None:
        dot = {"x": mark[:1], "y": mark[1:], "mode": "markers", "marker": {"size": 10, "color": colours.second}}
        traces.append(beside | dot)
    log, linear = {"type": "log", "exponentformat": "SI", "dtick": 1}, {"type": "linear"}
    up = log if logarithmic[1] else linear | {"rangemode": "tozero", "exponentformat": "SI"}
    layout = {
        "xaxis": axis(colours, axes[0]) | (log if logarithmic[0] else linear),
        "yaxis": axis(colours, axes[1]) | up,
        "showlegend": True,
        "legend": LEGEND | {"x": 0, "xanchor": "left"},
        "hovermode": "closest",
        "shapes": [
            {"type": "line", "x0": across[at], "x1": across[at], "y0": 0, "y1": 1, "yref": "paper"}
            | {"line": {"color": colours.text, "width": 1.5, "dash": "dash"}, "layer": "below"}
        ]
        if at >= 0
        else [],
    }
    return picture(dark, 340, traces, layout, above=BAR_HEIGHT)
