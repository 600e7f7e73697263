"""Shared by all figures: the empty figure, colors and fonts of the theme, axes with tokens, and escaping of text.

plotly parses its texts as a subset of HTML and, if MathJax is loaded, text between dollar signs as mathematics. Token text is
neither, so it is escaped with `literal`.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from model.trace.types import Array, Attention, Trace
from viz.figures.theme import Scheme, font, scheme
from viz.i18n.translate import current, decimal_sign, group_sign
from viz.labels import tokens as labels

CONFIG: dict[str, Any] = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False, "doubleClick": False}
"""For `st.plotly_chart(config=…)`: no tool bar over the picture, and a finger or a wheel scrolls the page, not the picture."""


def projected(figure: go.Figure, fills: bool = False) -> go.Figure:
    """The same figure for a projector: texts of at least PROJECTED pixels, two decimals, and every one of up to 24 tokens named.

    Args:
        fills: whether it is as high as its place, so that of many rows only some have room for their names.
    """
    larger = _enlarged(figure.to_plotly_json())
    layout = larger["layout"]
    layout["margin"] = {side: _LARGER * size for side, size in layout["margin"].items()}
    layout["hoverlabel"]["font"]["size"] = PROJECTED
    needed = 0
    for name in [name for name in layout if name.startswith(("xaxis", "yaxis"))]:
        tokens = layout[name].get("categoryarray", ())
        if 0 < len(tokens) <= _ALL_NAMED:
            layout[name] |= {"tickmode": "array", "tickvals": list(tokens), "autotickangles": [-60, -90]}
            needed = max(needed, len(tokens) * _PROJECTED_ROW + 220 if name.startswith("y") else 0)
    for name in ("xaxis", "yaxis") if fills else ():
        if "ticktext" in (axis := layout.get(name, {})):
            every = -(-len(axis["ticktext"]) // _NAMED_IN_PLACE)
            axis |= {"tickvals": axis["tickvals"][::every], "ticktext": axis["ticktext"][::every]}
    named = layout.get("yaxis", {}).get("ticktext", ())
    needed = max(needed, len(named) * _PROJECTED_ROW + 300 if named else 0)
    layout["height"] = max(round(1.2 * layout["height"]), layout["height"] + 100, needed)
    larger["data"] = [_with_placed_bar(trace, layout["height"], _LARGER * _BAR_TOP) for trace in larger["data"]]
    return go.Figure(larger, skip_invalid=False)


PROJECTED = 21
"""Pixels of the smallest text of a figure on a projector."""

_LARGER, _ALL_NAMED, _NAMED_IN_PLACE, _PROJECTED_ROW = 1.8, 24, 18, 27


def _enlarged(part: Any) -> Any:
    """A part of a figure with larger sizes of fonts and color bars, and numbers with two decimals when pointed at."""
    if isinstance(part, dict):
        return {name: _enlarged_as(name, value) for name, value in part.items()}
    return [_enlarged(item) for item in part] if isinstance(part, list | tuple) else part


def _enlarged_as(name: str, value: Any) -> Any:
    if name.endswith("font") and isinstance(value, dict) and "size" in value:
        return value | {"size": max(PROJECTED, round(_LARGER * value["size"]))}
    if name == "hovertemplate" and isinstance(value, str):
        return _DECIMALS.sub(".2f", value)
    if name == "colorbar":
        return {**_enlarged(value), "len": 300, "thickness": 14}
    return _enlarged(value)


_DECIMALS = re.compile(r"\.[3-9]f")

ON_AXIS = 14
"""Most characters of a token on an axis; hovering shows all of them."""

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"})


def literal(text: str) -> str:
    """Escapes `text` for plotly: no tags, no entities, no formulas."""
    return text.translate(_ESCAPES)


def picture(
    dark: bool,
    height: int,
    traces: Sequence[dict[str, Any]],
    layout: dict[str, Any],
    above: int = 8,
    bar: str = "",
    buttons: int = 0,
) -> go.Figure:
    """A figure with a transparent background, in the theme's colors and fonts.

    The figure is built in one call, and plotly does not validate it, which would take four fifths of the time: tests do that
    for every figure of the pages.

    Args:
        dark: whether the page is dark.
        height: in pixels; the width is the page's.
        traces: Plotly traces as dicts, each with its `type`.
        layout: axes, shapes and so on; overrides the common layout.
        above: upper margin in pixels.
        bar: title of the color bar; a figure that has one has an upper margin of BAR_HEIGHT.
        buttons: as for `colour_bar`.
    """
    colours = scheme(dark)
    if bar:
        above, layout = BAR_HEIGHT, layout | {"title": _bar_title(colours, bar, buttons)}
    ground = {
        "template": _NO_TEMPLATE,
        "height": height,
        "margin": {"l": 8, "r": 18, "t": above, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": font(current()), "size": 13, "color": colours.text},
        "hoverlabel": {
            "bgcolor": colours.card,
            "bordercolor": colours.line,
            "font": {"family": font(current()), "color": colours.text},
        },
        "separators": decimal_sign() + group_sign(),
        "dragmode": False,
        "showlegend": False,
        "minreducedheight": 30,  # plotly lets a low figure have no less than 64 otherwise, and takes the rest from the color bar
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": colours.faint, "activecolor": colours.accent},
    }
    data = [_with_placed_bar(trace, height, _BAR_TOP) for trace in traces]
    return go.Figure(data=data, layout=ground | layout, _validate=False)


def _with_placed_bar(trace: dict[str, Any], height: int, top: float) -> dict[str, Any]:
    """A trace whose color bar, if it has one, begins so many pixels below the upper end of the figure."""
    if isinstance(marker := trace.get("marker"), dict) and "colorbar" in marker:
        return trace | {"marker": _with_placed_bar(marker, height, top)}
    return trace | {"colorbar": trace["colorbar"] | {"y": 1 - top / height}} if "colorbar" in trace else trace


_BAR_TOP = 18
"""Pixels above a color bar: its title stands there."""


_NO_TEMPLATE = go.layout.Template()
"""Without it plotly would fill in its own colors."""


def scale(stops: Sequence[str]) -> list[tuple[float, str]]:
    """Evenly spaced `stops` as a plotly color scale."""
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


PLACED: dict[str, Any] = {"automargin": False, "ticklabeloverflow": "allow"}
"""For axes of a figure whose `margin` has room for their labels. Of others plotly measures each label, and draws all again where a
margin has to grow: twice the time."""


def room(texts: Sequence[str]) -> int:
    """Pixels of the widest of some labels at an axis, of 12 pixels height; a Chinese sign is as wide as two others."""
    return round(6.8 * max((sum(1 + (ord(sign) > 0x2E7F) for sign in text) for text in texts), default=0))


def token_axis(colours: Scheme, title: str, labels: Sequence[str]) -> dict[str, Any]:
    """An axis with one token at each whole number from 0, so that repeated tokens keep their own places.

    The places are the categories, the tokens their aliases: plotly then leaves out as many labels as the drawn size demands,
    on a phone more than on a projector. Of numbers that count on only round ones have a label.
    """
    places = range(len(labels))
    rounded = {}
    if counted(labels):
        step = next(step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if 12 * step >= min(len(labels), 12_000))
        rounded = {"tickmode": "array", "tickvals": [position for position in places if int(labels[position]) % step == 0]}
    return axis(colours, title) | {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": list(places),
        "labelalias": {str(position): literal(label) for position, label in zip(places, labels, strict=True)},
        "autotickangles": [0, -45, -90],
        "tickfont": {"size": 12 if len(labels) <= 20 else 10, "color": colours.text},
        "range": [-0.5, len(labels) - 0.5],
        "showgrid": False,
        **rounded,
    }


def counted(labels: Sequence[str]) -> bool:
    """Whether labels are the whole numbers from 1 on, so that round ones stand for all."""
    return len(labels) > 1 and list(labels) == [str(number + 1) for number in range(len(labels))]


BAR_HEIGHT = 54
"""Pixels at the top of a figure that its color bar needs, with its title above and its numbers below: its upper margin."""


LEGEND: dict[str, Any] = {"orientation": "h", "yref": "container", "y": 1, "yanchor": "top", "x": 1, "xanchor": "right"}
LEGEND |= {"itemclick": False, "itemdoubleclick": False}
"""A legend above the picture, in the place of a color bar; nothing in it can be clicked away."""


BUTTON_WIDTH = 26
"""Pixels at the upper right corner that stay free for a button of plotly's own."""


def colour_bar(colours: Scheme, ticks: Sequence[float] | None = None, buttons: int = 0) -> dict[str, Any]:
    """A slim horizontal color bar above the picture, at its right end, below its title (`picture(bar=…)`).

    Args:
        buttons: how many buttons of plotly's own stand at its right.
    """
    return {
        "orientation": "h",
        "x": 1,
        "xanchor": "right",
        "yref": "container",
        "yanchor": "top",
        "ypad": 0,
        "xpad": BUTTON_WIDTH * buttons,
        "lenmode": "pixels",
        "len": 98 + 2 * BUTTON_WIDTH * buttons,  # with the free room, which plotly leaves at both ends
        "thickness": 8,
        "outlinewidth": 0,
        "tickfont": {"size": 11, "color": colours.faint},
        "ticks": "",
        "tickvals": ticks,
    }


def _bar_title(colours: Scheme, text: str, buttons: int) -> dict[str, Any]:
    """Title of the color bar, above its right end.

    It is the figure's title: the place of a color bar's own title depends on the height of the figure, and in a low one it lies on
    the bar.
    """
    corner = {"x": 1, "xref": "paper", "xanchor": "right", "y": 1, "yref": "container", "yanchor": "top"}
    return {
        "text": literal(text),
        "font": {"size": 12, "color": colours.faint},
        "pad": {"t": 4, "r": BUTTON_WIDTH * buttons},
        **corner,
    }


def query_key_axes(colours: Scheme, trace: Trace, attention: Attention, chosen: Array | None = None) -> dict[str, Any]:
    """Named axes: queries from top to bottom, keys from left to right; `chosen` are the keys that have a column, None: all."""
    queries, keys = labels.queries(trace, attention, ON_AXIS), labels.keys(trace, attention, ON_AXIS)
    columns = keys if chosen is None else [keys[index] for index in chosen]
    across = token_axis(colours, labels.key_axis(trace, attention.site), columns)
    down = token_axis(colours, labels.query_axis(trace, attention.site), queries)
    return {"xaxis": across, "yaxis": down | {"range": [len(queries) - 0.5, -0.5]}}


def fitting_height(shape: tuple[int, ...]) -> int:
    """Height in pixels at which the cells of a [query, key] heatmap are about square in half a page.

    A picture fills its width, which the page decides: fixing the shape of cells would leave it small or half empty on a phone.
    """
    rows, columns = shape[0], max(shape[1], 1)
    return 120 + round(min(max(300, 8.5 * rows), 360) * min(max(rows / columns, 0.5), 1.2))


def whole_labels(trace: Trace, attention: Attention) -> Array:
    """Full labels of query and key of each cell, [query, key, 2], for hover (`customdata`)."""
    queries, keys = labels.queries(trace, attention, longest=None), labels.keys(trace, attention, longest=None)
    return np.stack(np.meshgrid([literal(q) for q in queries], [literal(k) for k in keys], indexing="ij"), axis=-1).astype(object)


def cell_layer(z: Array, texts: Array, hover: str) -> dict[str, Any]:
    """Heatmap trace of `z` [query, key] without its NaN cells; `hover` is a template over `texts` [query, key, text]."""
    gap = 1 if max(z.shape) <= 20 else 0
    return {
        "type": "heatmap",
        "x": list(range(z.shape[1])),
        "y": list(range(z.shape[0])),
        "z": z,
        "customdata": texts,
        "hovertemplate": hover + "<extra></extra>",
        "hoverongaps": False,
        "xgap": gap,
        "ygap": gap,
    }
