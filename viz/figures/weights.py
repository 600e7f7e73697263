"""Weights of a head: a matrix as it is, and how strongly each direction passes through the products of two."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import BAR_HEIGHT, LEGEND, axis, colour_bar, picture, scale
from viz.figures.theme import scheme
from viz.i18n.translate import _

MOST_CELLS = 128
"""Cells along an axis; a longer one is pooled."""


def pooled(values: Array, most: int = MOST_CELLS) -> tuple[Array, tuple[int, int]]:
    """Pools a matrix to at most `most` cells along each axis: of each block, the number farthest from 0, with its sign.

    Returns:
        The cells [row, column], and the numbers of rows and columns in a block (fewer at the lower and right edge).
    """
    rows, columns = (-(-size // most) for size in values.shape)
    padded = np.pad(values, [(0, -values.shape[0] % rows), (0, -values.shape[1] % columns)])
    blocks = padded.reshape(padded.shape[0] // rows, rows, padded.shape[1] // columns, columns).swapaxes(1, 2)
    flat = blocks.reshape(*blocks.shape[:2], -1)
    farthest = np.abs(flat).argmax(axis=-1)[..., None]  # NaN counts as farthest
    return np.take_along_axis(flat, farthest, axis=-1)[..., 0], (rows, columns)


def matrix(values: Array, down: str, across: str, dark: bool, height: int = 320) -> go.Figure:
    """Heatmap of a matrix, pooled if it is large; the color scale is centered at 0. NaN cells are empty.

    Args:
        values: [row, column].
        down, across: titles of the axes.
        dark: whether the page is dark.
        height: in pixels.
    """
    colours = scheme(dark)
    cells, (rows, columns) = pooled(values)
    finite = np.abs(cells[np.isfinite(cells)])
    largest = float(finite.max(initial=0.0)) or 1.0
    hover = _(
        "{down} {row}, {across} {column}: {value}", down=down, across=across, row="%{y}", column="%{x}", value="<b>%{z:.4g}</b>"
    )
    bar = colour_bar(colours, (-largest, 0, largest)) | {"tickformat": ".2~g"}
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": cells,
        "x": 1 + columns * np.arange(cells.shape[1]),
        "y": 1 + rows * np.arange(cells.shape[0]),
        "zmin": -largest,
        "zmax": largest,
        "colorscale": scale(colours.diverging),
        "colorbar": bar,
        "hoverongaps": False,
        "hovertemplate": hover + "<extra></extra>",
    }
    layout = {"xaxis": axis(colours, across) | {"showgrid": False}, "yaxis": axis(colours, down) | {"showgrid": False}}
    layout["yaxis"] |= {"autorange": "reversed"}
    return picture(dark, height, [heat], layout, bar=_("weight"))


def singular(values: Array, head: int, title: str, dark: bool, height: int = 280) -> go.Figure:
    """Line chart of singular values in falling order: the selected head, and faintly the other heads of its site.

    Args:
        values: [head, rank].
        head: counted from 0.
        title: name of the product, on the axis.
        dark: whether the page is dark.
        height: in pixels.
    """
    colours = scheme(dark)
    ranks = np.arange(1, values.shape[1] + 1)
    order = [other for other in range(len(values)) if other != head] + [head]
    lines: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines+markers" if other == head and len(ranks) <= 16 else "lines",
            "x": ranks,
            "y": values[other],
            "name": _("head {head}", head=other + 1) if other == head else _("the other heads"),
            "showlegend": other == head or other == order[0],
            "line": {"width": 2.5 if other == head else 1, "color": colours.accent if other == head else colours.weights[2]},
            "hovertemplate": _("head {head}, singular value {rank}: {value}", head=other + 1, rank="%{x}", value="<b>%{y:.4g}</b>")
            + "<extra></extra>",
        }
        for other in order
    ]
    layout = {
        "xaxis": axis(colours, _("rank")) | {"range": [0.5, len(ranks) + 0.5]},
        "yaxis": axis(colours, title) | {"rangemode": "tozero"},
        "showlegend": True,
        "legend": LEGEND,
    }
    return picture(dark, height, lines, layout, above=BAR_HEIGHT - 16)
