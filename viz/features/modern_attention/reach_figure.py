"""How far one token reaches: which states change if it is exchanged, layer by layer."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import axis, colour_bar, literal, picture, scale, token_axis
from viz.figures.theme import scheme
from viz.i18n.translate import _


def changed(differences: Array, layers: Sequence[str], tokens: Sequence[str], title: str, dark: bool) -> go.Figure:
    """Heatmap of the changes of states [layer, position], as powers of ten; a state that stays exactly as it was is gray.

    Args:
        differences: [layer, position], the largest change of a number of each state.
        layers, tokens: names of rows and columns.
        title: of the horizontal axis.
        dark: whether the page is dark.
    """
    colours = scheme(dark)
    moved = differences > 0
    powers = np.log10(differences, out=np.full(differences.shape, np.nan), where=moved)
    cells = {"type": "heatmap", "x": list(range(len(tokens))), "y": list(range(len(layers))), "xgap": 2, "ygap": 2}
    hover = _("largest change of a number: {value}", value="<b>%{customdata:.1e}</b>") + "<extra></extra>"
    same = _("exactly as it was") + "<extra></extra>"
    traces = [
        cells
        | {"z": powers, "customdata": differences, "hovertemplate": hover, "hoverongaps": False}
        | {"colorscale": scale(colours.weights[1:]), "colorbar": colour_bar(colours)},
        cells
        | {"z": np.where(moved, np.nan, 0.0), "hovertemplate": same, "hoverongaps": False, "showscale": False}
        | {"colorscale": [(0, colours.masked), (1, colours.masked)]},
    ]
    down = axis(colours, "") | {"type": "linear", "showgrid": False, "tickvals": list(range(len(layers)))}
    down |= {"ticktext": [literal(name) for name in layers], "range": [len(layers) - 0.5, -0.5]}
    return picture(
        dark,
        min(160 + 26 * len(layers), 620),
        traces,
        {"xaxis": token_axis(colours, title, tokens), "yaxis": down},
        bar=_("change, as a power of ten"),
    )
