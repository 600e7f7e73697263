"""The scores of a head in tiles: what was met so far, and the tile at hand."""

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import colour_bar, picture, scale, token_axis
from viz.figures.theme import scheme
from viz.i18n.translate import _


def scores(
    table: Array, met: Array, at: tuple[range, range], names: tuple[list[str], list[str]], dark: bool, axes: tuple[str, str]
) -> go.Figure:
    """Heatmap of scores: tiles that were not met yet are empty, and the tile at hand has a frame.

    Args:
        table: [query, key], NaN where the mask closes a cell.
        met: [query, key], bool: whether a tile with this cell was computed.
        at: queries and keys of the tile at hand.
        names: the labels of queries and keys.
        dark: whether the page is dark.
        axes: titles of the axes of queries and keys.
    """
    colours = scheme(dark)
    largest = float(np.nanmax(np.abs(table), initial=0.0)) or 1.0
    hover = _("{query} → {key}: {value}", query="%{y}", key="%{x}", value="<b>%{z:.4f}</b>") + "<extra></extra>"
    cells = {
        "type": "heatmap",
        "x": [str(number) for number in range(table.shape[1])],
        "y": [str(number) for number in range(table.shape[0])],
        "z": np.where(met, table, np.nan),
        "zmin": -largest,
        "zmax": largest,
        "colorscale": scale(colours.diverging),
        "colorbar": colour_bar(colours),
        "hoverongaps": False,
        "hovertemplate": hover,
        "xgap": 1,
        "ygap": 1,
    }
    queries, keys = at
    frame = {"type": "rect", "x0": keys.start - 0.5, "x1": keys.stop - 0.5, "y0": queries.start - 0.5, "y1": queries.stop - 0.5}
    layout = {
        "xaxis": token_axis(colours, axes[1], names[1]),
        "yaxis": token_axis(colours, axes[0], names[0]) | {"autorange": "reversed"},
        "shapes": [frame | {"line": {"color": colours.accent, "width": 3}}],
    }
    return picture(dark, min(620, 150 + 24 * len(table)), [cells], layout, bar=_("score"))
