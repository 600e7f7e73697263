"""A mask in its two forms: boolean (which keys are allowed) and additive (what is added to the scores)."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.layout import BAR_HEIGHT, LEGEND, fitting_height, picture, query_key_axes, whole_labels
from viz.figures.theme import ALLOWED, Scheme, scheme
from viz.i18n.translate import _
from viz.labels.tokens import MaskForm, mask_signs

MOST_SIGNS = 20
"""Most rows and columns whose cells show their value as a sign: on a phone, more signs would overlap."""

LARGE_SIGNS = 13
"""Up to so many rows and columns the signs are large; above, they would overlap on a phone."""

MOST_APART = 30
"""Most rows and columns with gaps between the cells."""


def mask(trace: Trace, attention: Attention, allowed: Array, form: MaskForm, dark: bool) -> go.Figure:
    """Heatmap of a mask [query, key] in two colors; the cells of small masks show their values.

    Args:
        trace: the run.
        attention: the site that the mask belongs to.
        allowed: bool [query, key], True where the query may attend to the key: the site's mask, or a part of it.
        form: `boolean`, or `additive`: 0 where allowed, -inf where not.
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    off, on = colours.masked, colours.weights[ALLOWED]
    (no, _no), (yes, _yes) = mask_signs(form)
    size = max(allowed.shape)
    cells = {
        "type": "heatmap",
        "x": list(range(allowed.shape[1])),
        "y": list(range(allowed.shape[0])),
        "z": allowed.astype(np.uint8),
        "zmin": 0,
        "zmax": 1,
        "colorscale": [(0, off), (0.5, off), (0.5, on), (1, on)],
        "showscale": False,
        "xgap": int(size <= MOST_APART),
        "ygap": int(size <= MOST_APART),
        "text": np.where(allowed, yes, no),
        "texttemplate": "%{text}" if size <= MOST_SIGNS else None,
        "textfont": {
            "size": 11 if size <= LARGE_SIGNS else 8
        },  # without a color, plotly takes black or white, whichever is seen on the cell
        "customdata": whole_labels(trace, attention),
        "hovertemplate": _("query: {query}<br>key: {key}<br>{value}", **_FIELDS) + "<extra></extra>",
    }
    legend = LEGEND | {"font": {"size": 12, "color": colours.text}}
    layout = query_key_axes(colours, trace, attention) | {"showlegend": True, "legend": legend}
    return picture(dark, fitting_height(allowed.shape), [cells, *_explain_colours(colours, form)], layout, above=BAR_HEIGHT)


_FIELDS = {"query": "%{customdata[0]}", "key": "%{customdata[1]}", "value": "<b>%{text}</b>"}
"""The gaps that plotly fills when the pointer is over a cell."""


def _explain_colours(colours: Scheme, form: MaskForm) -> list[dict[str, Any]]:
    """Traces that hold nothing but an entry of the legend above the picture, one for each color."""
    (_no, masked), (_yes, allowed) = mask_signs(form)
    names = {colours.weights[ALLOWED]: allowed, colours.masked: masked}
    edge = {"width": 1, "color": colours.faint}
    return [
        {"type": "scatter", "x": [None], "y": [None], "mode": "markers", "name": name, "showlegend": True}
        | {"marker": {"symbol": "square", "size": 12, "color": colour, "line": edge}}
        for colour, name in names.items()
    ]
