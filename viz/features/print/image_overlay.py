"""Weights over the image that a network read, for print: the image in gray, a color over each patch, and a color bar."""

import numpy as np

from model.trace.types import Array, Site, Trace
from viz.canvas.scenes.overlay import over_patches, patches
from viz.features.print import axes, legend
from viz.features.print.notes import TALLEST
from viz.features.print.options import SMALLEST_FONT, Options
from viz.features.print.palette import rgb
from viz.features.print.plotly_marks import DrawContext
from viz.features.print.shapes import MM, Drawing, Picture, Rect, Shape, Text
from viz.i18n.translate import _, localized
from viz.labels import tokens as labels

DENSEST = 0.88
"""Opacity of the largest weight, as on the screen."""

_LIGHTNESS = (0.299, 0.587, 0.114)
"""Shares of red, green and blue in the lightness of a pixel."""

_EDGE, _WIDEST = 1.0, 120.0


def image_overlay(
    trace: Trace, site: Site, values: Array, token: int, overlay: str, options: Options, title: str = "", description: str = ""
) -> Drawing:
    """The image with the row or the column of a token over it.

    Args:
        values: [query, key], none negative; NaN is drawn as 0.
        token: the token, counted from 0.
        overlay: the parameter `overlay` of a link: `smooth`, `column`.
    """
    pen, column = DrawContext.of(options), site.kind == "self" and "column" in overlay.split()
    values = np.nan_to_num(values)
    over = over_patches(trace, values, token, column)
    most = float(over.max(initial=0.0))
    tint = pen.palette.scheme.accent
    pixels = painted(trace, over / (most or 1.0), "smooth" in overlay.split(), tint, options.colours == "grayscale")
    drawn, y = legend.title(title, pen, _EDGE)
    bar, y = legend.colour_bar(_scale(tint, most), _("weight"), pen, options.width - _EDGE, y)
    drawn += bar
    if options.labels:
        caption, y = _caption(trace, site, values, token, column, pen, y)
        drawn += caption
    high, wide = pixels.shape[:2]
    width = min(_WIDEST, options.width - 2 * _EDGE, (TALLEST - y) * wide / high)
    left, height = (options.width - width) / 2, width * high / wide
    drawn.append(Picture(left, y, width, height, pixels))
    rows, columns, added = patches(trace)
    if site.kind == "self" and token >= added:
        down, across = divmod(token - added, columns)
        box = (left + across * width / columns, y + down * height / rows, width / columns, height / rows)
        drawn += [Rect(*box, stroke=colour, width_of_stroke=line) for colour, line in (("#ffffff", 0.8), ("#000000", 0.4))]
    background = pen.palette.scheme.background
    return Drawing(options.width, y + height + _EDGE, background, tuple(drawn), title, description)


def painted(trace: Trace, shares: Array, smooth: bool, tint: str, grayscale: bool) -> Array:
    """The image with its overlay, uint8 [row, column, red green blue alpha].

    Args:
        shares: [row, column] of patches, from 0 to 1: how opaque the color over a patch is, of DENSEST.
        smooth: whether it is interpolated between the middles of patches.
        tint: the color.
        grayscale: whether the color is black, and so the image is light.
    """
    assert trace.image is not None
    high, wide = trace.image.shape[:2]
    light = trace.image.astype(float) @ np.array(_LIGHTNESS)
    gray = 150 + 0.36 * light if grayscale else 28 + 0.78 * light
    rows, columns = shares.shape
    patch = np.ones((high // rows, wide // columns))
    shares = _between(_between(shares, high).T, wide).T if smooth else np.kron(shares, patch)
    opacity = (DENSEST * shares)[..., None]
    mixed = gray[..., None] * (1 - opacity) + np.array(rgb(tint), float) * opacity
    return np.concatenate([np.rint(mixed), np.full((high, wide, 1), 255)], axis=-1).astype(np.uint8)


def _between(values: Array, size: int) -> Array:
    """[row, column] with `size` rows: linear between the middles of rows; the first and the last are continued."""
    middles = (np.arange(len(values)) + 0.5) * size / len(values)
    places = np.arange(size) + 0.5
    return np.stack([np.interp(places, middles, channel) for channel in values.T], axis=-1)


def _scale(tint: str, most: float) -> legend.Scale:
    """The scale of colors: from the gray of a middle tone to the color of the largest weight."""
    gray = "#808080"
    mixed = [round(a + DENSEST * (b - a)) for a, b in zip(rgb(gray), rgb(tint), strict=True)]
    ticks = {"tickvals": (0, most or 1.0), "ticktext": ("0", localized(f"{most:.2g}"))}
    stops = [(0.0, gray), (1.0, "#{:02x}{:02x}{:02x}".format(*mixed))]
    return legend.Scale(0, most or 1.0, stops, ticks)


def _caption(
    trace: Trace, site: Site, values: Array, token: int, column: bool, pen: DrawContext, y: float
) -> tuple[list[Shape], float]:
    """Which token's row or column it is, and the weights of the tokens without a patch, from `y` down; and where that ends."""
    names, added = labels.keys(trace, trace.at(site)), patches(trace)[2]
    asks = labels.queries(trace, trace.at(site))[token]
    rest = values[:added, token] if column else values[token, :added]
    sentence = _("What attends to “{token}”", token=asks) if column else _("What “{token}” attends to", token=asks)
    numbers = [f"{name} {localized(f'{weight:.2g}')}" for name, weight in zip(names, rest, strict=False)]
    size = max(SMALLEST_FONT, 0.9 * pen.options.font_size)
    step = axes.LINE * size * MM
    lines = legend.wrapped(" · ".join((sentence, *numbers)), size, pen.options.width - 2 * _EDGE)
    drawn: list[Shape] = [
        Text(_EDGE, y + step * (at + 0.85), line, size, pen.palette.scheme.faint) for at, line in enumerate(lines)
    ]
    return drawn, y + step * len(lines) + 0.8
