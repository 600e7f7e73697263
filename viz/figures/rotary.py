"""Positions inside attention: turning pairs of columns, scores over the distance, learned numbers for each distance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import axis, picture
from viz.figures.theme import scheme
from viz.i18n.translate import _

MOST_ARROWS = 8
"""Pairs whose arrows are drawn: spread evenly from the fastest to the slowest."""

PER_ROW = 4
"""Pairs side by side: as many as a phone has room for."""


def shown_pairs(rotation: Array) -> list[int]:
    """The pairs that `arrows` draws, counted from 0."""
    return sorted({round(index) for index in np.linspace(0, len(rotation) - 1, MOST_ARROWS)})


def arrows(vector: Array, after: Array, rotation: Array, dark: bool, position: int) -> go.Figure:
    """Each pair of columns of a query as an arrow in its own plane: before it is turned, and turned by its position.

    Args:
        vector: [head_dim], before it is turned.
        after: [head_dim], as it was compared.
        rotation: [pair, 3].
        dark: whether the page is dark.
        position: counted from 0.
    """
    colours, pairs = scheme(dark), shown_pairs(rotation)
    round_ = np.linspace(0, 2 * np.pi, 60)
    traces: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"annotations": [], "showlegend": False}
    for number, pair in enumerate(pairs):
        columns, name = rotation[pair, :2].astype(int), str(number + 1)
        before, now = vector[columns].astype(float), after[columns]
        size = float(np.hypot(*before)) or 1.0
        line = {"xaxis": f"x{name}", "yaxis": f"y{name}", "type": "scatter", "mode": "lines", "hoverinfo": "skip"}
        traces.append(line | {"x": np.cos(round_), "y": np.sin(round_), "line": {"color": colours.line, "width": 1}})
        traces.append(
            line | {"x": [0, before[0] / size], "y": [0, before[1] / size], "line": {"color": colours.faint, "dash": "dot"}}
        )
        turns = position * rotation[pair, 2] / (2 * np.pi)
        tip = _(
            "pair {number}: length {length}, rotation in full circles {turns}",
            number=pair + 1,
            length=f"{size:.3f}",
            turns=f"{turns:.2f}",
        )
        arrow = {"mode": "lines+markers", "line": {"color": colours.accent, "width": 3}, "hoverinfo": "text", "text": tip}
        arrow["marker"] = {"symbol": "arrow", "size": [0, 12], "angleref": "previous", "color": colours.accent}
        traces.append(line | arrow | {"x": [0, now[0] / size], "y": [0, now[1] / size]})
        row, column = divmod(number, PER_ROW)
        left, bottom = column / PER_ROW, 0.0 if row or len(pairs) <= PER_ROW else 0.5
        top = bottom + (1.0 if len(pairs) <= PER_ROW else 0.5)
        plain = {"visible": False, "range": [-1.15, 1.15], "fixedrange": True}
        layout[f"xaxis{name}"] = plain | {"domain": [left, left + 0.94 / PER_ROW], "anchor": f"y{name}"}
        layout[f"yaxis{name}"] = plain | {"domain": [bottom + 0.08, top], "anchor": f"x{name}", "scaleanchor": f"x{name}"}
        title = {"text": _("pair {number}", number=pair + 1), "font": {"size": 12, "color": colours.faint}, "showarrow": False}
        below = {
            "xref": "paper",
            "yref": "paper",
            "x": left + 0.47 / PER_ROW,
            "y": bottom,
            "xanchor": "center",
            "yanchor": "bottom",
        }
        layout["annotations"].append(title | below)
    return picture(dark, 320 if len(pairs) > PER_ROW else 190, traces, layout)


def score_curve(distances: Array, scores: Array, recorded: tuple[int, float], dark: bool, height: int = 320) -> go.Figure:
    """Line chart of a score over the distance of its key, with the score of this run marked.

    Args:
        distances, scores: [distance].
        recorded: the distance in this run, and the score that the run recorded there.
        dark: whether the page is dark.
        height: in pixels.
    """
    colours = scheme(dark)
    hover = _("positions before the query: {count}; {value}", count="%{x}", value="<b>%{y:.4f}</b>") + "<extra></extra>"
    curve = {"type": "scatter", "x": distances, "y": scores, "mode": "lines", "line": {"color": colours.accent, "width": 2}}
    mark: dict[str, Any] = {"type": "scatter", "x": [recorded[0]], "y": [recorded[1]], "mode": "markers", "hovertemplate": hover}
    mark["marker"] = {"size": 11, "color": colours.second}
    layout = {
        "xaxis": axis(colours, _("positions before the query")),
        "yaxis": axis(colours, _("score")) | {"zeroline": True, "zerolinecolor": colours.line},
        "showlegend": False,
    }
    return picture(dark, height, [curve | {"hovertemplate": hover}, mark], layout)


def bias_curves(
    table: Array, distances: Sequence[int], names: Sequence[str], chosen: int, dark: bool, height: int = 360
) -> go.Figure:
    """Line chart of the number that each head adds to a score, over the distance of its key; one head stands out.

    Args:
        table: [head, distance].
        distances: of the key from the query; those before it are negative.
        names: [head].
        chosen: the head in color.
        dark: whether the page is dark.
        height: in pixels.
    """
    colours = scheme(dark)
    hover = _("distance {distance}: {value}", distance="%{x}", value="<b>%{y:.4f}</b>")
    order = [*(head for head in range(len(table)) if head != chosen), chosen]
    lines = [
        {
            "type": "scatter",
            "x": list(distances),
            "y": table[head],
            "mode": "lines",
            "name": names[head],
            "line": {"color": colours.accent if head == chosen else colours.faint, "width": 3 if head == chosen else 1},
            "opacity": 1.0 if head == chosen else 0.55,
            "hovertemplate": f"{names[head]}<br>{hover}<extra></extra>",
        }
        for head in order
    ]
    layout = {
        "xaxis": axis(colours, _("distance of the key from the query")),
        "yaxis": axis(colours, _("added to the score")) | {"zeroline": True, "zerolinecolor": colours.line},
        "showlegend": False,
    }
    return picture(dark, height, lines, layout)
