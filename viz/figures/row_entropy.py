"""One number for each query row, as bars from top to bottom."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.layout import BAR_HEIGHT, LEGEND, ON_AXIS, axis, fitting_height, literal, picture, token_axis
from viz.figures.theme import scheme
from viz.i18n.translate import _
from viz.labels import tokens


def entropy(trace: Trace, attention: Attention, values: Array, most: Array, dark: bool, query: int = -1) -> go.Figure:
    """Bar chart of the entropy of each row, with a mark at the entropy of uniform weights.

    Args:
        trace: the run.
        attention: one of its sites.
        values: [query], in nats; NaN: no bar.
        most: [query], the largest entropy that each row could have.
        dark: whether the page is dark.
        query: the selected row, in the accent color; -1: none.
    """
    colours = scheme(dark)
    names = [literal(name) for name in tokens.queries(trace, attention, longest=None)]
    rows = list(range(len(values)))
    paints = [colours.accent if row == query else colours.weights[3] for row in rows]
    bars: dict[str, Any] = {
        "type": "bar",
        "orientation": "h",
        "x": values,
        "y": rows,
        "marker": {"color": paints},
        "customdata": names,
    }
    bars |= {"hovertemplate": _("query: {query}<br>entropy: {value} nats", **_FIELDS) + "<extra></extra>", "showlegend": False}
    marks: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": most,
        "y": rows,
        "customdata": names,
        "name": _("uniform attention"),
    }
    marks |= {"marker": {"symbol": "line-ns", "size": 9, "line": {"width": 1.5, "color": colours.second}}}
    marks |= {"hovertemplate": _("query: {query}<br>with uniform attention: {value} nats", **_FIELDS) + "<extra></extra>"}
    down = token_axis(colours, tokens.query_axis(trace, attention.site), tokens.queries(trace, attention, ON_AXIS))
    across = axis(colours, _("entropy of the row (nats)")) | {"range": [0, 1.04 * max(float(np.nanmax(most, initial=0.0)), 0.1)]}
    layout: dict[str, Any] = {"xaxis": across, "yaxis": down | {"range": [len(values) - 0.5, -0.5]}, "bargap": 0.35}
    layout |= {"showlegend": True, "legend": LEGEND | {"x": 0, "xanchor": "left"}}
    return picture(dark, fitting_height(attention.mask.shape), [bars, marks], layout, above=BAR_HEIGHT)


_FIELDS = {"query": "%{customdata}", "value": "<b>%{x:.4f}</b>"}
