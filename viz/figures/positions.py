"""Positional encodings [position, model]: curves, the whole table, which positions are alike, and the sinusoid's formula.

Positions and dimensions count from 1 in these pictures, from 0 in the formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import axis, colour_bar, picture, scale
from viz.figures.theme import Scheme, scheme
from viz.i18n.translate import _, number

MOST_CURVES = 6
"""Curves that can be told apart in one picture: each has a color and a dash of its own."""

USUAL, OUTLYING = 0.995, 4.0
"""Share of the values that the color scale reaches at least, and how many times its end a value must exceed to lie beyond it."""

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def sinusoids(positions: int, d_model: int) -> Array:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle.

    Returns:
        [position, model], float64, for the positions 0 to `positions` - 1.

    Source: Vaswani et al. 2017, section 3.5.
    """
    columns = np.arange(d_model)
    angles = np.arange(positions)[:, None] / 10000.0 ** ((columns - columns % 2) / d_model)
    return np.where(columns % 2 == 0, np.sin(angles), np.cos(angles))


def wavelengths(d_model: int) -> Array:
    """Wavelength of each column of `sinusoids`, in positions: 2π · 10000^(2i/d_model).

    Returns:
        [model], float64.
    """
    columns = np.arange(d_model)
    return np.asarray(2 * np.pi * 10000.0 ** ((columns - columns % 2) / d_model))


def curves(table: Array, dimensions: Sequence[int], dark: bool, used: int = 0, height: int = 360) -> go.Figure:
    """Line chart of positional encodings: one curve per chosen dimension, over the positions.

    Args:
        table: [position, model].
        dimensions: columns of it, counted from 0, at most MOST_CURVES.
        dark: whether the page is dark.
        used: number of positions of the current sentence, whose end is marked; 0: no mark.
        height: in pixels.
    """
    colours = scheme(dark)
    paints = (colours.accent, colours.second, colours.text, colours.faint, colours.weights[3], colours.diverging[1])
    lines = [
        {
            "type": "scatter",
            "x": np.arange(1, len(table) + 1),
            "y": table[:, dimension],
            "mode": "lines",
            "name": _("dimension {number}", number=dimension + 1),
            "line": {"color": colour, "dash": dash, "width": 2},
            "hovertemplate": _("position {position}: {value}", position="%{x}", value="<b>%{y:.4f}</b>"),
        }
        for dimension, colour, dash in zip(dimensions, paints, _DASHES, strict=False)
    ]
    layout = {
        "xaxis": axis(colours, _("position")) | {"range": [1, max(2, len(table))]},
        "yaxis": axis(colours, _("value")) | {"zeroline": True, "zerolinecolor": colours.line},
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "itemclick": False, "itemdoubleclick": False},
        "shapes": _end(colours, used, len(table), "x"),
    }
    return picture(dark, height, lines, layout)


def whole_table(table: Array, dark: bool, used: int = 0, height: int = 420) -> go.Figure:
    """Heatmap of all values: positions from top to bottom, dimensions from left to right, color scale centered at 0.

    Args:
        table: [position, model].
        dark, used, height: as in `curves`.
    """
    colours = scheme(dark)
    hover = _("position {position}<br>dimension {dimension}<br>{value}", position="%{y}", dimension="%{x}", value="<b>%{z:.4f}</b>")
    layout = _axes(colours, _("dimension"), table.shape) | {"shapes": _end(colours, used, len(table), "y")}
    return picture(dark, height, [_cells(table, colours, hover)], layout, bar=_("value"))


def similarity(table: Array, dark: bool, cosine: bool = False, height: int = 380) -> go.Figure:
    """Heatmap of the similarity of positions: dot products of their rows, [position, position], color scale centered at 0.

    Args:
        table: [position, model].
        dark: whether the page is dark.
        cosine: whether to show cosines instead; cells of a row of zeros are empty.
        height: in pixels.
    """
    colours = scheme(dark)
    products = alike(table, cosine)
    hover = _("positions {first} and {second}<br>{value}", first="%{y}", second="%{x}", value="<b>%{z:.4f}</b>")
    layout = _axes(colours, _("position"), products.shape)
    layout["yaxis"] |= {"scaleanchor": "x", "constrain": "domain", "constraintoward": "top"}
    layout["xaxis"] |= {"constrain": "domain"}
    bar = _("cosine") if cosine else _("dot product")
    return picture(dark, height, [_cells(products, colours, hover, bounded=cosine)], layout, bar=bar)


def alike(table: Array, cosine: bool = False) -> Array:
    """Dot products, or cosines, of all pairs of rows: [position, position], float64. The cosine with a row of zeros is NaN."""
    rows = table.astype(np.float64)
    if cosine:
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, lengths, out=np.full_like(rows, np.nan), where=lengths > 0)
    return np.asarray(rows @ rows.T)


def wavelength_curve(waves: Array, dark: bool, positions: int, counted: str, height: int = 300) -> go.Figure:
    """Line chart of the wavelength of each dimension, or pair of them, on a logarithmic axis; a number of positions is marked.

    Args:
        waves: [dimension], in positions.
        dark: whether the page is dark.
        positions: number of positions of the model, or of the text.
        counted: what the axis counts: dimensions or pairs.
        height: in pixels.
    """
    colours = scheme(dark)
    hover = _("{what} {number}: one period every {positions} positions", what=counted, number="%{x}", positions="<b>%{y:,.1f}</b>")
    curve = {
        "type": "scatter",
        "x": np.arange(1, len(waves) + 1),
        "y": waves,
        "mode": "lines",
        "line": {"color": colours.accent, "width": 2},
        "hovertemplate": hover + "<extra></extra>",
    }
    apart = np.abs(np.log(np.array([waves[0], waves[-1]]) / positions))
    side = ("left", "right")[int(apart.argmax())]  # the end where the curve is farther away
    mark = {"x": float(side == "right"), "xref": "paper", "xanchor": side, "y": np.log10(positions), "yanchor": "bottom"}
    mark |= {"showarrow": False}
    mark |= {"text": _("{count} positions", count=positions), "font": {"size": 12, "color": colours.second}}
    layout = {
        "xaxis": axis(colours, counted),
        "yaxis": axis(colours, _("wavelength (positions)")) | {"type": "log", "dtick": 1, "tickformat": ",d"},
        "shapes": [_line_across("y", positions, {"color": colours.second, "width": 1.5, "dash": "dash"})],
        "annotations": [mark],
    }
    return picture(dark, height, [curve], layout)


@dataclass(frozen=True)
class Scale:
    """The scale of colors of numbers on both sides of 0.

    Attributes:
        end: the number at its upper end; the lower end is as far from 0.
        beyond: whether some numbers lie beyond it.
    """

    end: float
    beyond: bool = False

    @classmethod
    def of(cls, values: Array, bounded: bool = True) -> "Scale":
        """The scale of some numbers, up to the largest absolute value.

        Args:
            values: of any shape; those that are not finite do not count.
            bounded: False: where a few values are so large that the others would all be pale, as in learned tables, it ends below.
        """
        sizes = np.abs(values[np.isfinite(values)])
        largest, usual = float(sizes.max(initial=0.0)), float(np.quantile(sizes, USUAL)) if sizes.size and not bounded else 0.0
        beyond = 0 < OUTLYING * usual < largest
        return cls((usual if beyond else largest) or 1.0, beyond)

    @property
    def mark(self) -> float:
        """The number that is written at the upper end: with two digits, and never beyond the end."""
        unit = 10.0 ** (np.floor(np.log10(self.end)) - 1)
        return float(np.floor(self.end / unit) * unit)

    @property
    def texts(self) -> tuple[str, str]:
        """What is written at the lower and at the upper end."""
        mark = number(self.mark, "g")
        return (f"≤ −{mark}", f"≥ {mark}") if self.beyond else (f"−{mark}", mark)


def _cells(values: Array, colours: Scheme, hover: str, bounded: bool = False) -> dict[str, Any]:
    """A heatmap counted from 1, on the diverging scale."""
    limits = Scale.of(values, bounded)
    bar = colour_bar(colours, (-limits.mark, 0, limits.mark)) | {"tickformat": ",.2~r"}
    if limits.beyond:
        bar |= {"ticktext": [limits.texts[0], "0", limits.texts[1]]}
    return {
        "type": "heatmap",
        "x": np.arange(1, values.shape[1] + 1),
        "y": np.arange(1, values.shape[0] + 1),
        "z": values.astype(np.float32),
        "zmin": -limits.end,
        "zmax": limits.end,
        "colorscale": scale(colours.diverging),
        "colorbar": bar,
        "hovertemplate": hover + "<extra></extra>",
        "hoverongaps": False,
    }


def _axes(colours: Scheme, across: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {
        "xaxis": axis(colours, across) | {"range": [0.5, shape[1] + 0.5], "showgrid": False},
        "yaxis": axis(colours, _("position")) | {"range": [shape[0] + 0.5, 0.5], "showgrid": False},
    }


def _end(colours: Scheme, used: int, positions: int, along: str) -> list[dict[str, Any]]:
    """A dashed line after the last position of the sentence at hand, where positions run along the axis `along`."""
    line = {"color": colours.text, "width": 1, "dash": "dash"}
    return [_line_across(along, used + 0.5, line)] if 0 < used < positions else []


def _line_across(along: str, at: float, line: dict[str, Any]) -> dict[str, Any]:
    """A line through the whole picture, at `at` of the axis `along`."""
    other = "y" if along == "x" else "x"
    ends = {f"{along}0": at, f"{along}1": at, f"{other}0": 0, f"{other}1": 1, f"{other}ref": f"{other} domain"}
    return {"type": "line", "line": line, **ends}
