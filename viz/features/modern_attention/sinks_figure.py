"""A head with a learned sink: its map with one more column, for the weight that weighs no value."""

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.layout import ON_AXIS, colour_bar, fitting_height, picture, query_key_axes, scale, token_axis
from viz.figures.theme import scheme
from viz.i18n.translate import _
from viz.labels import tokens as labels


def with_sink(trace: Trace, attention: Attention, weights: Array, sink: Array, dark: bool) -> go.Figure:
    """Heatmap of the weights [query, key] of one head, and of its sink as the last column, behind a gap.

    Args:
        trace: the run.
        attention: the site of the head.
        weights: [query, key].
        sink: [query].
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    keys = [*labels.keys(trace, attention, ON_AXIS), "", _("sink")]
    shown = np.where(attention.mask, weights, np.nan)
    table = np.concatenate([shown, np.full((len(shown), 1), np.nan), sink[:, None]], axis=1)
    cells = {
        "type": "heatmap",
        "x": list(range(table.shape[1])),
        "y": list(range(table.shape[0])),
        "z": table,
        "zmin": 0,
        "zmax": 1,
        "colorscale": scale(colours.weights),
        "colorbar": colour_bar(colours, (0, 0.5, 1)),
        "hoverongaps": False,
        "hovertemplate": "<b>%{z:.4f}</b><extra></extra>",
        "xgap": 1,
        "ygap": 1,
    }
    layout = query_key_axes(colours, trace, attention) | {
        "xaxis": token_axis(colours, labels.key_axis(trace, attention.site), keys)
    }
    return picture(dark, fitting_height(table.shape), [cells], layout, bar=_("weight"))
