"""The logit lens as a picture: positions from top to bottom, layers from left to right, in each cell the likeliest token."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array
from viz.figures.layout import BAR_HEIGHT, ON_AXIS, axis, colour_bar, literal, picture, scale
from viz.figures.theme import scheme
from viz.i18n.translate import _, number

MOST_WORDS = 8
"""Layers up to which each cell carries its token; more would not fit side by side."""


def lens(
    positions: Sequence[str],
    layers: Sequence[str],
    words: Array,
    probabilities: Array,
    dark: bool,
    title: str,
    query: int = -1,
    form: str = ".4f",
) -> go.Figure:
    """Table of the most probable next tokens after each layer (logit lens).

    Args:
        positions: labels of the rows, in full.
        layers: names of the columns.
        words: [layer, position, candidate] of texts, the most probable first, in full.
        probabilities: [layer, position, candidate].
        dark: whether the page is dark.
        title: of the axis of positions.
        query: the selected row, outlined; -1: none.
        form: format specification of the probabilities in the hover.
    """
    colours = scheme(dark)
    best = probabilities[:, :, 0].T  # [position, layer]
    cells = {
        "type": "heatmap",
        "x": list(range(len(layers))),
        "y": list(range(len(positions))),
        "z": best,
        "zmin": 0,
        "zmax": 1,
        "colorscale": scale(colours.weights[:4]),  # the half of the scale on which words can be read
        "colorbar": colour_bar(colours, (0, 0.5, 1)),
        "xgap": 2,
        "ygap": 1,
        "text": [[literal(_cut(word)) for word in row] for row in words[:, :, 0].T],
        "texttemplate": "%{text}" if len(layers) <= MOST_WORDS else None,
        "textfont": {"color": colours.text},  # without a size plotly chooses one that fits the cells
        "customdata": _candidates(positions, words, probabilities, form),
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    names = [literal(_cut(name)) for name in positions]
    plain = {"type": "linear", "showgrid": False, "tickmode": "array"}
    across = (
        axis(colours, _("after layer")) | plain | {"tickvals": list(range(len(layers))), "ticktext": list(map(literal, layers))}
    )
    down = axis(colours, title) | plain | {"tickvals": list(range(len(names))), "ticktext": names}
    down |= {"range": [len(names) - 0.5, -0.5], "tickfont": {"size": 12, "color": colours.text}}
    edges = {"x0": -0.5, "x1": len(layers) - 0.5, "y0": query - 0.5, "y1": query + 0.5}
    shapes = [{"type": "rect", "line": {"color": colours.text, "width": 1.5}, **edges}] if 0 <= query < len(names) else []
    height = BAR_HEIGHT + 60 + 26 * len(names)
    layout = {"xaxis": across, "yaxis": down, "shapes": shapes}
    return picture(dark, height, [cells], layout, bar=_("probability of the top token"))


def _cut(text: str) -> str:
    return text if len(text) <= ON_AXIS else text[: ON_AXIS - 1] + "…"


def _candidates(positions: Sequence[str], words: Array, probabilities: Array, form: str) -> Array:
    """The hover texts: [position, layer] of the row's label and its candidates, a line each."""
    lines = np.empty(words.shape[1::-1], dtype=object)
    for position, layer in np.ndindex(*lines.shape):
        candidates = zip(words[layer, position], probabilities[layer, position], strict=True)
        lines_of_cell = [f"<b>{literal(str(word))}</b>  {number(probability, form)}" for word, probability in candidates]
        lines[position, layer] = "<br>".join([literal(positions[position]), *lines_of_cell])
    return lines
