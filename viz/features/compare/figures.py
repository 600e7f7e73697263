"""Difference of one head between two runs: which weights grew and which shrank."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.layout import ON_AXIS, cell_layer, colour_bar, fitting_height, literal, picture, scale, token_axis
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _, decimal_sign
from viz.labels import tokens


def difference(
    first: tuple[Trace, Attention],
    second: tuple[Trace, Attention],
    head: int,
    rows: Array,
    keys: int,
    dark: bool,
    rounding: float = 0.0,
    digits: int = 4,
) -> go.Figure:
    """Heatmap of w₂ - w₁ of one head: queries from top to bottom, keys from left to right.

    Hover shows both weights and the difference. The color scale goes from minus to plus the largest difference. Cells that are
    masked in both runs are empty.

    Args:
        first, second: each run and its site.
        head: counted from 0.
        rows: [query], indices of the compared queries.
        keys: number of compared keys, counted from the first.
        dark: whether the page is dark.
        rounding: differences up to this size are drawn as none.
        digits: decimals of the numbers in the hover.

    Raises:
        UnknownHead: a site has no such head.
    """
    colours, sides = scheme(dark), (first, second)
    weights = [attention.head(head)[rows, :keys].astype(np.float64) for _trace, attention in sides]
    seen = np.logical_or(*(attention.mask[rows, :keys] for _trace, attention in sides))
    change = weights[1] - weights[0]
    apart = np.where(seen, np.where(np.abs(change) <= rounding, 0.0, change), np.nan)
    whole = tokens.compared(first, second, rows, keys, longest=None)
    written = [_written(f"%.{digits}f", weight) for weight in weights] + [_written(f"%+.{digits}f", apart.round(digits) + 0.0)]
    texts = np.stack([*_grid(*whole), *written], axis=-1)
    layer = cell_layer(apart, texts, _hover())
    return picture(
        dark,
        fitting_height(apart.shape),
        [layer | _colours(colours, apart)],
        _axes(colours, first, tokens.compared(first, second, rows, keys, ON_AXIS)),
        bar=_("change in weight"),
    )


def _written(form: str, numbers: Array) -> Array:
    """Numbers as text in the page's language, with minus signs: plotly writes a hyphen into its hover labels."""
    return np.char.replace(np.char.replace(np.char.mod(form, numbers), "-", "−"), ".", decimal_sign()).astype(object)


def _grid(queries: list[str], keys: list[str]) -> tuple[Array, ...]:
    return np.meshgrid(*(np.array([literal(text) for text in texts], object) for texts in (queries, keys)), indexing="ij")


def _hover() -> str:
    fields = {"query": "%{customdata[0]}", "key": "%{customdata[1]}"}
    fields |= {"first": "%{customdata[2]}", "second": "%{customdata[3]}", "change": "<b>%{customdata[4]}</b>"}
    return _("query: {query}<br>key: {key}<br>side A: {first}<br>side B: {second}<br>change: {change}", **fields)


def _colours(colours: Scheme, apart: Array) -> dict[str, Any]:
    largest = float(np.nanmax(np.abs(apart), initial=0.0)) or 1.0
    ends = [tokens.number(end, "+.3g") for end in (-largest, largest)]
    bar = colour_bar(colours, (-largest, 0, largest)) | {"ticktext": [ends[0], "0", ends[1]]}
    return {"colorscale": scale(colours.diverging), "zmin": -largest, "zmax": largest, "colorbar": bar}


def _axes(colours: Scheme, first: tuple[Trace, Attention], texts: tuple[list[str], list[str]]) -> dict[str, Any]:
    trace, site = first[0], first[1].site
    down = token_axis(colours, tokens.query_axis(trace, site), texts[0]) | {"range": [len(texts[0]) - 0.5, -0.5]}
    return {"xaxis": token_axis(colours, tokens.key_axis(trace, site), texts[1]), "yaxis": down}
