"""Heatmap of queries and keys with named axes, for weights and other readings of the same shape."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.layout import cell_layer, colour_bar, fitting_height, literal, picture, query_key_axes, scale, whole_labels
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _


@dataclass(frozen=True, eq=False)
class Cells:
    """Content of a heatmap of queries and keys.

    Attributes:
        values: [query, key], not negative; NaN: an empty cell.
        quantity: name of the values in the color bar and the hover, such as "weight".
        probabilities: whether the color scale goes from 0 to 1; otherwise from 0 to the largest value.
        keys: indices of the keys shown as columns; None: all keys of the site.
    """

    values: Array
    quantity: str
    probabilities: bool = True
    keys: Array | None = None


def head_weights(trace: Trace, attention: Attention, head: int, dark: bool, query: int = -1) -> go.Figure:
    """Heatmap of the recorded weights [query, key] of one head; see `cells`.

    Args:
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    return cells(trace, attention, Cells(attention.head(head), _("weight")), dark, query)


def cells(trace: Trace, attention: Attention, drawn: Cells, dark: bool, query: int = -1) -> go.Figure:
    """Heatmap of values [query, key] of a site: queries from top to bottom, keys from left to right.

    Masked cells have the color `masked`, whatever their value. Hover shows both tokens in full and the value to four decimals.

    Args:
        trace: the run.
        attention: one of its sites.
        drawn: the content.
        dark: whether the page is dark.
        query: the selected row, outlined; -1, or a row that does not exist: none.
    """
    colours = scheme(dark)
    keys = np.arange(attention.mask.shape[1]) if drawn.keys is None else drawn.keys
    mask, texts = attention.mask[:, keys], whole_labels(trace, attention)[:, keys]
    layers = [cell_layer(np.where(mask, drawn.values, np.nan), texts, _hover(drawn.quantity)) | _colours(colours, drawn)]
    if not mask.all():
        flat = {"colorscale": [(0, colours.masked), (1, colours.masked)], "showscale": False}
        layers.append(cell_layer(np.where(mask, np.nan, drawn.values), texts, _hover_masked(drawn.quantity)) | flat)
    layout = query_key_axes(colours, trace, attention, keys) | {"shapes": _outline(colours, query, mask.shape)}
    return picture(dark, fitting_height(mask.shape), layers, layout, bar=drawn.quantity)


def _colours(colours: Scheme, drawn: Cells) -> dict[str, Any]:
    """Color scale and bar: from 0 to 1, or to the largest value, which the bar names."""
    largest = 1.0 if drawn.probabilities else float(np.nanmax(drawn.values, initial=0.0)) or 1.0
    bar = colour_bar(colours, (0, largest / 2, largest)) | {"tickformat": ".3~r"}
    return {"colorscale": scale(colours.weights), "zmin": 0, "zmax": largest, "colorbar": bar}


def _outline(colours: Scheme, query: int, shape: tuple[int, ...]) -> list[dict[str, Any]]:
    if not 0 <= query < shape[0]:
        return []
    edges = {"x0": -0.5, "x1": shape[1] - 0.5, "y0": query - 0.5, "y1": query + 0.5}
    return [{"type": "rect", "line": {"color": colours.text, "width": 1.5}, **edges}]


def _hover(quantity: str) -> str:
    return _("query: {query}<br>key: {key}<br>{quantity}: {value}", quantity=literal(quantity), **_FIELDS)


def _hover_masked(quantity: str) -> str:
    return _("query: {query}<br>key: {key}<br>masked; {quantity}: {value}", quantity=literal(quantity), **_FIELDS)


_FIELDS = {"query": "%{customdata[0]}", "key": "%{customdata[1]}", "value": "<b>%{z:.4f}</b>"}
"""Placeholders that plotly fills in on hover; token texts are never part of a template."""
