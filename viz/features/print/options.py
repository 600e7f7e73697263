"""Options of a figure for print: size, font, colors, and what is drawn."""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from model.errors import BadSetting

Colours: TypeAlias = Literal["light", "dark", "grayscale"]
Maps: TypeAlias = Literal["vector", "image"]

ONE_COLUMN, TWO_COLUMNS = 85.0, 174.0
"""Widths in millimeters of one column and of two columns of most journals."""

NARROWEST, WIDEST = 40.0, 400.0
"""Bounds of a figure's width in millimeters."""

SMALLEST_FONT, LARGEST_FONT = 5.0, 24.0
"""Points. No text is drawn smaller than SMALLEST_FONT: what has no room at that size is left out, and a note says so."""


@dataclass(frozen=True)
class Options:
    """How a figure is drawn.

    Attributes:
        width: of the figure, in millimeters.
        font_size: of the text, in points.
        title: whether the figure has its title above it.
        colours: the scheme.
        labels: whether axes name their tokens.
        maps: whether the cells of a heatmap are rectangles, or one lossless image with a pixel or a block of pixels for each cell.
    """

    width: float = ONE_COLUMN
    font_size: float = 7.0
    title: bool = True
    colours: Colours = "light"
    labels: bool = True
    maps: Maps = "vector"

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
            BadSetting: a value is not allowed.
        """
        for name, value, least, most, unit in (
            ("the figure’s width", self.width, NARROWEST, WIDEST, "mm"),
            ("the figure’s font size", self.font_size, SMALLEST_FONT, LARGEST_FONT, "pt"),
        ):
            if not least <= value <= most:
                raise BadSetting(name=name, found=value, allowed=f"a number from {least:g} to {most:g} ({unit})")
        for name, word, words in (
            ("the figure’s colors", self.colours, get_args(Colours)),
            ("the figure’s maps", self.maps, get_args(Maps)),
        ):
            if word not in words:
                raise BadSetting(name=name, found=word, allowed=f"one of {', '.join(words)}")
