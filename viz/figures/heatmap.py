"""One head's weights, with named axes: which token looks where, and how much."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace import Array, Attention, Trace
from viz.figures.frame import BAR_HEIGHT, colour_bar, fitting_height, frame, query_key_axes, scale, whole_labels
from viz.texts import _
from viz.theme import scheme


def head_weights(trace: Trace, attention: Attention, head: int, dark: bool, query: int = -1) -> go.Figure:
    """The weights [query, key] of one head: queries from top to bottom, keys from left to right, colours from 0 to 1.

    Cells that may not be looked at have the colour `masked`, whatever their weight is; hovering names both tokens in full and the
    weight to four decimals.

    Args:
        trace: the run.
        attention: one of its sites.
        head: counted from 0.
        dark: which scheme.
        query: the selected row, which gets an outline; -1, or a row that is not there: none.

    Raises:
        UnknownHead: the site has no such head.
    """
    colours = scheme(dark)
    weights, mask = attention.head(head), attention.mask
    texts = whole_labels(trace, attention)
    figure = frame(dark, fitting_height(attention))
    bar = {"colorscale": scale(colours.weights), "zmin": 0, "zmax": 1, "colorbar": colour_bar(colours, _("weight"), (0, 0.5, 1))}
    figure.add_trace(_layer(np.where(mask, weights, np.nan), texts, _hover()) | bar)
    if not mask.all():
        flat = {"colorscale": [(0, colours.masked), (1, colours.masked)], "showscale": False}
        figure.add_trace(_layer(np.where(mask, np.nan, weights), texts, _hover_masked()) | flat)
    figure.update_layout(query_key_axes(colours, trace, attention), margin={"t": BAR_HEIGHT})
    if 0 <= query < len(weights):
        edges = {"x0": -0.5, "x1": weights.shape[1] - 0.5, "y0": query - 0.5, "y1": query + 0.5}
        figure.add_shape(type="rect", line={"color": colours.text, "width": 1.5}, **edges)
    return figure


def _layer(z: Array, texts: Array, hover: str) -> dict[str, Any]:
    """The cells of `z` that are not NaN."""
    gap = 1 if max(z.shape) <= 20 else 0
    return {
        "type": "heatmap",
        "x": list(range(z.shape[1])),
        "y": list(range(z.shape[0])),
        "z": z,
        "customdata": texts,
        "hovertemplate": hover + "<extra></extra>",
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
    }


def _hover() -> str:
    return _("query: {query}<br>key: {key}<br>weight: {weight}", **_GAPS)


def _hover_masked() -> str:
    return _("query: {query}<br>key: {key}<br>masked; weight: {weight}", **_GAPS)


_GAPS = {"query": "%{customdata[0]}", "key": "%{customdata[1]}", "weight": "<b>%{z:.4f}</b>"}
"""What plotly fills in when the pointer is over a cell; the texts themselves never stand in a template."""
