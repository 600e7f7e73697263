"""Pictures of what mattered: heads as points, and the curve of pruning."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import LEGEND, axis, literal, picture
from viz.figures.theme import scheme
from viz.i18n.translate import _


def scatter(
    sharpness: Array, effects: Array, names: Sequence[str], groups: Sequence[str], dark: bool, titles: tuple[str, str]
) -> go.Figure:
    """How sharp each head looks, and how much it matters; each point's `customdata` is its index.

    Args:
        sharpness, effects: [head].
        names: of the heads.
        groups: the kind of attention of each head; each kind has a symbol.
        dark: which scheme.
        titles: of the two axes.
    """
    colours = scheme(dark)
    drawn: list[dict[str, Any]] = []
    looks = [("circle", colours.accent), ("square", colours.second), ("diamond", colours.faint), ("cross", colours.text)]
    for (symbol, colour), group in zip(looks, dict.fromkeys(groups), strict=False):
        members = [index for index, name in enumerate(groups) if name == group]
        drawn.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": literal(group),
                "x": [float(sharpness[index]) for index in members],
                "y": [float(effects[index]) for index in members],
                "customdata": members,
                "text": [literal(names[index]) for index in members],
                "hovertemplate": "%{text}<br>%{x:.2f} · %{y:.4f}<extra></extra>",
                "marker": {"symbol": symbol, "size": 10, "color": colour, "opacity": 0.8},
            }
        )
    layout = {
        "xaxis": axis(colours, titles[0]) | {"showgrid": True},
        "yaxis": axis(colours, titles[1]) | {"showgrid": True, "zeroline": True, "zerolinecolor": colours.faint},
        "showlegend": True,
        "legend": LEGEND | {"x": 0, "xanchor": "left"},
        "hovermode": "closest",
    }
    return picture(dark, 380, drawn, layout, above=56)


def curves(totals: Mapping[str, Array], at: int, dark: bool) -> go.Figure:
    """Log-probability of the target after so many heads are silenced, a line for each order.

    Args:
        totals: by the name of the order, [step].
        at: the step that is marked.
        dark: which scheme.
    """
    colours = scheme(dark)
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": literal(name),
            "x": list(range(len(values))),
            "y": [float(value) for value in values],
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "hovertemplate": _("heads silenced") + ": %{x}<br>" + _("log-probability") + ": %{y:.2f}<extra></extra>",
        }
        for (name, values), colour, dash in zip(totals.items(), (colours.accent, colours.second), ("solid", "dot"), strict=False)
    ]
    mark = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1, "line": {"color": colours.text, "width": 1}}
    layout = {
        "xaxis": axis(colours, _("heads silenced")) | {"showgrid": True},
        "yaxis": axis(colours, _("log-probability of the target (nats)")) | {"showgrid": True},
        "showlegend": True,
        "legend": LEGEND | {"x": 0, "xanchor": "left"},
        "shapes": [mark],
        "hovermode": "closest",
    }
    return picture(dark, 320, lines, layout, above=56)
