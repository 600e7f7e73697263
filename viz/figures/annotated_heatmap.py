"""A grid of signed numbers or of shares whose cells can be clicked: heads by layers, edges by tokens, words by methods."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import BAR_HEIGHT, ON_AXIS, axis, colour_bar, literal, picture, scale, token_axis
from viz.figures.theme import scheme
from viz.labels import tokens as labels

ROW = 30
"""Pixels of a row."""

FITTED = "fitted-numbers"
"""Asks the page (`viz/widgets/cell_numbers.js`) to make the numbers smaller where cells are narrow, or to leave them out."""


def grid(
    rows: Sequence[str],
    columns: Sequence[str],
    values: Array,
    hover: Sequence[Sequence[str]],
    dark: bool,
    quantity: str,
    limit: float | None = None,
    written: str = "",
    longest: int = ON_AXIS,
    shares: bool = False,
) -> go.Figure:
    """The numbers as colors, centered at 0, or shares from 0 to 1; cells without a number are empty.

    Each cell that has a number can be clicked; `customdata` is its row and column.

    Args:
        rows, columns: their names.
        values: [row, column]; NaN: there is no number.
        hover: [row, column], what pointing at a cell says.
        dark: which scheme.
        quantity: what the numbers are, for the color bar.
        limit: the number at the ends of the scale; None: the largest of the numbers.
        written: format specification of the number in each cell, which is shown where it fits; empty: no numbers are written.
        longest: most characters of a column's name; pointing at a cell should say all of them.
        shares: whether the numbers lie between 0 and 1: they have the colors of weights.
    """
    colours = scheme(dark)
    end = 1.0 if shares else (float(np.nanmax(np.abs(values), initial=0.0)) if limit is None else limit) or 1.0
    least, stops = (0.0, colours.weights) if shares else (-end, colours.diverging)
    bar = colour_bar(colours, (least, (least + end) / 2, end)) | {"tickformat": ".2g"}
    cells = gapped_cells(values, (least, end), scale(stops), bar)
    if written:
        texts = [["" if np.isnan(value) else labels.number(float(value), written) for value in row] for row in values]
        cells |= {"text": texts, "texttemplate": "%{text}", "textfont": {"size": 11}}
    drawn = [(int(row), int(column)) for row, column in np.argwhere(~np.isnan(values))]
    texts_of_points = {"text": [hover[row][column] for row, column in drawn], "hovertemplate": "%{text}<extra></extra>"}
    points = targets(drawn, ROW - 8) | {"customdata": drawn} | texts_of_points
    names = [literal(name) for name in rows]
    down = axis(colours, "") | {"type": "linear", "showgrid": False, "tickvals": list(range(len(names))), "ticktext": names}
    down |= {"range": [len(names) - 0.5, -0.5], "tickfont": {"size": 12, "color": colours.text}}
    across = token_axis(colours, "", [_cut(name, longest) for name in columns]) | {"side": "bottom"}
    names_of_columns = 40 + 6 * min(max(map(len, columns), default=0), longest)  # upright on a phone
    height = BAR_HEIGHT + names_of_columns + ROW * len(rows)
    layout = {"xaxis": across, "yaxis": down, "hovermode": "closest"} | ({"meta": FITTED} if written else {})
    return picture(dark, height, [cells, points], layout, bar=quantity)


def gapped_cells(
    values: Array, ends: tuple[float, float], stops: Sequence[tuple[float, str]], bar: dict[str, Any]
) -> dict[str, Any]:
    """A heatmap of [row, column] with gaps between its cells; what pointing at a cell says comes from its `targets`."""
    rows, columns = values.shape
    return {
        "type": "heatmap",
        "x": list(range(columns)),
        "y": list(range(rows)),
        "z": values,
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": stops,
        "colorbar": bar,
        "xgap": 2,
        "ygap": 2,
        "hoverinfo": "skip",
    }


def targets(places: Sequence[tuple[int, int]], size: int) -> dict[str, Any]:
    """An invisible point on each cell (row, column): plotly reports clicks on points, not on the cells of a heatmap.

    Args:
        size: of a point, in pixels.
    """
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [column for _row, column in places],
        "y": [row for row, _column in places],
        "marker": {"opacity": 0, "size": size, "symbol": "square"},
    }


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
