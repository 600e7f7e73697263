"""Costs as lines: bytes, operations or milliseconds over tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import plotly.graph_objects as go

from viz.figures.layout import BAR_HEIGHT, LEGEND, axis, literal, picture
from viz.figures.theme import scheme
from viz.i18n.translate import _


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


def lines(
    across: Sequence[float], drawn: Sequence[Line], axes: tuple[str, str], dark: bool, logarithmic: bool = False, at: int = -1
) -> go.Figure:
    """Line chart of costs over tokens.

    Args:
        across: numbers of tokens.
        drawn: the lines.
        axes: titles of the horizontal and the vertical axis.
        dark: whether the page is dark.
        logarithmic: whether both axes are.
        at: index of the place that a dashed line marks; -1: none.
    """
    colours = scheme(dark)
    looks = {
        "own": {"color": colours.accent, "width": 3},
        "other": {"color": colours.second, "width": 2, "dash": "dash"},
        "third": {"color": colours.faint, "width": 2, "dash": "dot"},
    }
    hover = _("{name}<br>tokens: {tokens}<br>{value}", name="%{fullData.name}", tokens="%{x:,}", value="<b>%{y:,.3~s}</b>")
    traces = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": list(across),
            "y": list(line.values),
            "name": literal(line.name),
            "line": looks[line.look],
            "marker": {"size": 6},
            "hovertemplate": hover + "<extra></extra>",
        }
        for line in drawn
    ]
    kind = {"type": "log", "exponentformat": "SI", "dtick": 1} if logarithmic else {"rangemode": "tozero", "exponentformat": "SI"}
    layout = {
        "xaxis": axis(colours, axes[0]) | (kind if logarithmic else {}),
        "yaxis": axis(colours, axes[1]) | kind,
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
