"""The shapes of a sheet. Lengths are in millimeters from its upper left corner, sizes of text in points, colors #rrggbb."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.trace.types import Array

MM = 25.4 / 72
"""Millimeters of a point."""

Anchor: TypeAlias = Literal["start", "middle", "end"]
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A rectangle. `fill` or `stroke` may be absent; `width_of_stroke` in millimeters."""

    x: float
    y: float
    width: float
    height: float
    fill: str | None = None
    stroke: str | None = None
    width_of_stroke: float = 0.2


@dataclass(frozen=True)
class Line:
    """A line through points, or with four points and `curved` one Bézier curve. `dash` is lengths of strokes and gaps."""

    points: tuple[Point, ...]
    stroke: str
    width: float = 0.2
    dash: tuple[float, ...] = ()
    opacity: float = 1.0
    curved: bool = False


@dataclass(frozen=True)
class Polygon:
    """A closed area; `stroke` is its edge."""

    points: tuple[Point, ...]
    fill: str | None = None
    stroke: str | None = None
    width_of_stroke: float = 0.2
    opacity: float = 1.0


@dataclass(frozen=True)
class Circle:
    """A circle, filled or open."""

    x: float
    y: float
    radius: float
    fill: str | None = None
    stroke: str | None = None
    width_of_stroke: float = 0.3
    opacity: float = 1.0


@dataclass(frozen=True)
class Text:
    """A line of text; (x, y) is on its baseline. `turned`: degrees, clockwise, around that point."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    anchor: Anchor = "start"
    turned: float = 0.0
    opacity: float = 1.0


@dataclass(frozen=True, eq=False)
class Picture:
    """A lossless image in a rectangle: `pixels` is uint8 [row, column, red green blue alpha]."""

    x: float
    y: float
    width: float
    height: float
    pixels: Array


Shape: TypeAlias = Rect | Line | Polygon | Circle | Text | Picture


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure: its size, its background and its shapes, the first at the back.

    Attributes:
        title: for the file's metadata, whether it is drawn or not.
        description: the figure in words, for readers who do not see it.
        notes: sentences about what could not be drawn at this size.
    """

    width: float
    height: float
    background: str
    shapes: tuple[Shape, ...]
    title: str
    description: str = ""
    notes: tuple[str, ...] = ()
