"""Two probabilities of each token as dumb-bells: a ring for the first run, a dot for the second, and a line between them."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import LEGEND, axis, literal, picture, token_axis
from viz.figures.theme import scheme
from viz.i18n.translate import _

ROW = 26
"""Pixels of a token."""


def dumbbells(tokens: Sequence[str], first: Array, second: Array, titles: tuple[str, str], dark: bool) -> go.Figure:
    """A row for each token, from top to bottom in the given order.

    Args:
        tokens: their labels.
        first, second: [token], the probability of each in the two runs.
        titles: the names of the runs, for the legend.
        dark: which scheme.
    """
    colours, rows = scheme(dark), list(range(len(tokens)))
    names = [literal(token) for token in tokens]
    lines: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines",
        "x": [x for begin, end in zip(first, second, strict=True) for x in (begin, end, None)],
        "y": [y for row in rows for y in (row, row, None)],
        "line": {"color": colours.faint, "width": 3},
        "hoverinfo": "skip",
        "showlegend": False,
    }
    ring = {"symbol": "circle-open", "size": 13, "color": colours.second, "line": {"width": 2.5}}
    dot = {"symbol": "circle", "size": 11, "color": colours.accent}
    ends = [
        {
            "type": "scatter",
            "mode": "markers",
            "x": values,
            "y": rows,
            "marker": marker,
            "name": literal(title),
            "customdata": names,
            "hovertemplate": "%{customdata}: <b>%{x:.4f}</b><extra></extra>",
        }
        for values, marker, title in ((first, ring, titles[0]), (second, dot, titles[1]))
    ]
    across = axis(colours, _("probability")) | {"range": [-0.03, 1.03], "showgrid": True}
    down = token_axis(colours, "", tokens) | {"range": [len(tokens) - 0.5, -0.5], "showgrid": True}
    layout = {"xaxis": across, "yaxis": down, "showlegend": True, "legend": LEGEND | {"x": 0, "xanchor": "left"}}
    return picture(dark, 110 + ROW * len(tokens), [lines, *ends], layout, above=56)
