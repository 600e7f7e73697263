"""Figures of a stage's result: a row of numbers per token, and tokens with one number each as bars."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import BAR_HEIGHT, ON_AXIS, axis, colour_bar, literal, picture, scale, token_axis
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _
from viz.labels import tokens as labels


def vectors(values: Array, tokens: Sequence[str], down: str, across: str, dark: bool, edges: Sequence[float] = ()) -> go.Figure:
    """Heatmap of vectors, one row per token, color scale centered at 0. NaN and infinite values have their own color.

    Args:
        values: [position, n].
        tokens: one label for each row, in full.
        down, across: titles of the axes.
        dark: whether the page is dark.
        edges: places of lines between columns.
    """
    colours = scheme(dark)
    finite = np.isfinite(values)
    largest = float(np.abs(values[finite]).max(initial=0)) or 1.0
    layers = [_cells(np.where(finite, values, np.nan), tokens) | _diverging(colours, largest)]
    if not finite.all():
        layers.append(_not_numbers(values, tokens, colours))
    layout = {
        "xaxis": axis(colours, across) | {"range": [0.5, values.shape[1] + 0.5], "showgrid": False},
        "yaxis": rows_of_tokens(colours, tokens, down),
        "shapes": [
            {
                "type": "line",
                "x0": edge,
                "x1": edge,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": colours.text, "width": 1.5},
            }
            for edge in edges
        ],
    }
    return picture(dark, BAR_HEIGHT + 70 + min(max(150, 22 * len(values)), 420), layers, layout, bar=_("value"))


def bars(
    values: Sequence[float],
    tokens: Sequence[str],
    title: str,
    dark: bool,
    chosen: int = -1,
    probabilities: bool = True,
    form: str = ".4f",
    longest: int = ON_AXIS,
) -> go.Figure:
    """Horizontal bar chart of one number per token, the first at the top.

    Args:
        values: one for each token.
        tokens: full labels.
        title: of the axis of values.
        dark: whether the page is dark.
        chosen: the bar in the accent color; -1: none.
        probabilities: whether the axis goes from 0 to 1.
        form: format specification of the number beside each bar.
        longest: a label of more characters is shortened; hover shows it in full.
    """
    colours = scheme(dark)
    drawn = token_bars(values, tokens, chosen, colours) | {
        "text": [labels.number(value, form) for value in values],
        "cliponaxis": False,
    }
    across = axis(colours, title) | ({"range": [0, 1]} if probabilities else {"zeroline": True, "zerolinecolor": colours.line})
    layout = {"xaxis": across, "yaxis": rows_of_tokens(colours, tokens, "", longest), "bargap": 0.3}
    return picture(dark, 80 + 26 * len(tokens), [drawn], layout)


def token_bars(values: Sequence[float] | Array, tokens: Sequence[str], chosen: int, colours: Scheme) -> dict[str, Any]:
    """Bar trace, one horizontal bar per token; `chosen` is in the accent color."""
    return {
        "type": "bar",
        "x": values,
        "y": list(range(len(tokens))),
        "orientation": "h",
        "marker": {"color": [colours.accent if number == chosen else colours.second for number in range(len(tokens))]},
        "customdata": [literal(token) for token in tokens],
        "hovertemplate": _("{token}: {value}", token="%{customdata}", value="<b>%{x:.4r}</b>") + "<extra></extra>",
    }


def rows_of_tokens(colours: Scheme, tokens: Sequence[str], title: str, longest: int = ON_AXIS) -> dict[str, Any]:
    """Axis with one token per row, the first at the top; labels are shortened, hover shows them in full."""
    short = [token if len(token) <= longest else token[: longest - 1] + "…" for token in tokens]
    return token_axis(colours, title, short) | {"range": [len(tokens) - 0.5, -0.5]}


def _cells(values: Array, tokens: Sequence[str]) -> dict[str, Any]:
    rows, columns = values.shape
    return {
        "type": "heatmap",
        "x": np.arange(1, columns + 1),
        "y": list(range(rows)),
        "z": values,
        "customdata": [[literal(token)] * columns for token in tokens],
        "hovertemplate": _hover("%{z:.4r}"),
        "hoverongaps": False,
    }


def _hover(value: str) -> str:
    fields = {"token": "%{customdata}", "dimension": "%{x}", "value": f"<b>{value}</b>"}
    return _("{token}<br>dimension {dimension}<br>{value}", **fields) + "<extra></extra>"


def _diverging(colours: Scheme, largest: float) -> dict[str, Any]:
    unit = 10.0 ** (np.floor(np.log10(largest)) - 1)
    mark = float(np.floor(largest / unit) * unit)  # two digits, and never beyond the end of the bar
    bar = colour_bar(colours, (-mark, 0, mark)) | {"tickformat": ",.2~r"}
    return {"zmin": -largest, "zmax": largest, "colorscale": scale(colours.diverging), "colorbar": bar}


def _not_numbers(values: Array, tokens: Sequence[str], colours: Scheme) -> dict[str, Any]:
    """The cells that hold NaN or something infinite, in a color that is on no scale, with what they hold."""
    words = np.where(np.isnan(values), "NaN", np.where(values > 0, "∞", "−∞"))
    flat = {"colorscale": [(0, colours.text), (1, colours.text)], "showscale": False}
    return _cells(np.where(np.isfinite(values), np.nan, 0.0), tokens) | {"text": words, "hovertemplate": _hover("%{text}")} | flat
