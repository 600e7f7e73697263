"""Figures of one weight's calculation: query, key and their products by dimension, and the contribution of each key of the row."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import axis, picture
from viz.figures.stages import rows_of_tokens, token_bars
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _


def products(q: Array, k: Array, dark: bool, height: int = 330) -> go.Figure:
    """Bar charts of q, k and their product, one bar per dimension, in three rows with a common axis.

    Args:
        q, k: [head_dim].
        dark: whether the page is dark.
        height: in pixels.
    """
    colours = scheme(dark)
    rows = (
        ("q", q, colours.second, (0.72, 1.0), ""),
        ("k", k, colours.faint, (0.39, 0.67), "2"),
        ("q · k", q * k, colours.accent, (0.0, 0.34), "3"),
    )
    layers = [_bars(name, values, colour, suffix) for name, values, colour, _domain, suffix in rows]
    layout: dict[str, Any] = {
        f"yaxis{suffix}": _row_axis(colours, name, values) | {"domain": domain} for name, values, _colour, domain, suffix in rows
    }
    across = axis(colours, _("dimension of the head (head_dim)")) | {"showgrid": False, "anchor": "y3"}
    return picture(dark, height, layers, layout | {"xaxis": across, "bargap": 0.25})


def _bars(name: str, values: Array, colour: str, suffix: str) -> dict[str, Any]:
    hover = _("{name}, dimension {dimension}: {value}", name=name, dimension="%{x}", value="<b>%{y:.4r}</b>")
    drawn = {"x": np.arange(1, len(values) + 1), "y": values, "yaxis": f"y{suffix}"}
    return {"type": "bar", "name": name, "marker": {"color": colour}, "hovertemplate": hover + "<extra></extra>", **drawn}


def _row_axis(colours: Scheme, name: str, values: Array) -> dict[str, Any]:
    largest = _largest(values)
    line = {"zeroline": True, "zerolinecolor": colours.line}
    return axis(colours, name) | {"range": [-1.15 * largest, 1.15 * largest], "nticks": 4} | line


def _largest(values: Array) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0)) or 1.0


def row(weights: Array, moved: Array, keys: Sequence[str], key: int, dark: bool) -> go.Figure:
    """Bar chart of one attention row: the weight of each key, and the length of what the key adds to the residual stream.

    Args:
        weights, moved: [key].
        keys: full labels.
        key: the selected key, in the accent color.
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    halves = ((weights, "", _("weight"), (0, 0.48)), (moved, "2", _("length of the contribution"), (0.52, 1)))
    layers = [token_bars(values, keys, key, colours) | {"xaxis": f"x{suffix}"} for values, suffix, _title, _domain in halves]
    layout: dict[str, Any] = {"yaxis": rows_of_tokens(colours, keys, ""), "bargap": 0.3}
    for values, suffix, title, domain in halves:
        layout[f"xaxis{suffix}"] = axis(colours, title) | {"domain": domain, "range": [0, 1.05 * _largest(values)], "nticks": 5}
    return picture(dark, 96 + 24 * len(keys), layers, layout)
