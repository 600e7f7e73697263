"""What all figures share: the empty frame, colours and fonts of the theme, axes that carry tokens, and text that stays text.

plotly reads its texts as a small dialect of HTML, and what stands between dollar signs as mathematics where MathJax is loaded.
Token text is neither: it passes through `literal` on its way into a figure.
"""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from viz.theme import FONT, Scheme, scheme

CONFIG: dict[str, Any] = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False, "doubleClick": False}
"""For `st.plotly_chart(config=…)`: no tool bar over the picture, and a finger or a wheel scrolls the page, not the picture."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def literal(text: str) -> str:
    """`text` so that plotly shows it as it is: no tags, no entities, no formulas."""
    return text.translate(_ESCAPES)


def frame(dark: bool, height: int) -> go.Figure:
    """An empty figure on a transparent ground, in the theme's colours and fonts.

    Args:
        dark: which scheme.
        height: in pixels; the width is the page's.
    """
    colours = scheme(dark)
    figure = go.Figure()
    figure.update_layout(
        template=go.layout.Template(),
        height=height,
        margin={"l": 8, "r": 8, "t": 8, "b": 8},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": FONT, "size": 13, "color": colours.text},
        hoverlabel={"bgcolor": colours.card, "bordercolor": colours.line, "font": {"family": FONT, "color": colours.text}},
        dragmode=False,
        showlegend=False,
    )
    return figure


def scale(stops: Sequence[str]) -> list[tuple[float, str]]:
    """Evenly spaced `stops` as a plotly colour scale."""
    return [(i / (len(stops) - 1), colour) for i, colour in enumerate(stops)]


def axis(colours: Scheme, title: str) -> dict[str, Any]:
    """An axis of numbers with a title; `title` is shown as it is."""
    return {
        "title": {"text": literal(title), "font": {"size": 13, "color": colours.text}, "standoff": 10},
        "tickfont": {"size": 12, "color": colours.faint},
        "gridcolor": colours.line,
        "ticks": "",
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
    }


def token_axis(colours: Scheme, title: str, labels: Sequence[str]) -> dict[str, Any]:
    """An axis with one token at each whole number from 0, so that repeated tokens keep their own places.

    The places are the categories, the tokens their aliases: plotly then leaves out as many labels as the drawn size demands,
    on a phone more than on a projector.
    """
    places = range(len(labels))
    return axis(colours, title) | {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(places),
        "labelalias": {str(place): literal(label) for place, label in zip(places, labels, strict=True)},
        "autotickangles": [0, -45, -90],
        "tickfont": {"size": 12 if len(labels) <= 20 else 10, "color": colours.text},
        "range": [-0.5, len(labels) - 0.5],
        "showgrid": False,
        "constrain": "domain",
    }


BAR_HEIGHT = 48
"""Pixels at the top of a figure that its colour bar needs: its upper margin."""


def colour_bar(colours: Scheme, title: str, ticks: Sequence[float] | None = None) -> dict[str, Any]:
    """A slim horizontal colour bar above the picture, at its right end."""
    return {
        "orientation": "h",
        "x": 1,
        "xanchor": "right",
        "yref": "container",
        "y": 1,
        "yanchor": "top",
        "ypad": 0,
        "xpad": 0,
        "lenmode": "pixels",
        "len": 150,
        "thickness": 8,
        "outlinewidth": 0,
        "title": {"text": literal(title), "side": "top", "font": {"size": 12, "color": colours.faint}},
        "tickfont": {"size": 11, "color": colours.faint},
        "ticks": "",
        "tickvals": ticks,
    }


def grid(colours: Scheme, query: tuple[str, Sequence[str]], key: tuple[str, Sequence[str]]) -> dict[str, Any]:
    """Axes of a picture of queries (rows, the first on top) against keys (columns, the first at the left), cells nearly square.

    Args:
        colours: the scheme.
        query, key: title and labels of the axes.
    """
    rows, columns = len(query[1]), len(key[1])
    downward = token_axis(colours, *query) | {"range": [rows - 0.5, -0.5], "scaleanchor": "x", "constraintoward": "top"}
    downward["scaleratio"] = min(max(1.0, columns / rows / 2), 2 * columns / rows)
    return {"xaxis": token_axis(colours, *key), "yaxis": downward}
