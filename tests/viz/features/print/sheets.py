"""Figures for print, read back: shapes of an SVG file by an XML parser, colors and places back to numbers."""

import base64
import io
import re
from dataclasses import dataclass
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from model.trace.types import Array
from viz.features.print.options import Colours
from viz.features.print.palette import SCHEMES, painted
from viz.features.print.shapes import Drawing
from viz.features.print.svg import svg

_NAME = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Box:
    """A rectangle without an edge."""

    x: float
    y: float
    width: float
    height: float
    fill: str


@dataclass(frozen=True)
class Words:
    """A text, at the place of its anchor, its size in millimeters."""

    x: float
    y: float
    text: str
    size: float
    fill: str
    turned: float


class Drawn:
    """An SVG file."""

    def __init__(self, sheet: Drawing) -> None:
        self.data = svg(sheet)
        self.root = ElementTree.fromstring(self.data)

    @property
    def boxes(self) -> list[Box]:
        """Cells, bars and color bars, without the background."""
        found = [each for each in self.root.iter(f"{_NAME}rect") if each.get("stroke") is None]
        places = [[float(each.attrib[name]) for name in ("x", "y", "width", "height")] for each in found]
        return [Box(x, y, w, h, each.attrib["fill"]) for (x, y, w, h), each in zip(places, found, strict=True)][1:]

    @property
    def words(self) -> list[Words]:
        """All texts."""
        return [_words(each) for each in self.root.iter(f"{_NAME}text")]

    @property
    def texts(self) -> list[str]:
        """All texts, without their places."""
        return [each.text for each in self.words]

    @property
    def paths(self) -> list[tuple[Array, dict[str, str]]]:
        """Lines: [point, 2], and how they look."""
        found = []
        for each in self.root.iter(f"{_NAME}path"):
            numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", each.attrib["d"])]
            found.append((np.array(numbers).reshape(-1, 2), dict(each.attrib)))
        return found

    @property
    def images(self) -> list[Array]:
        """The pixels of its images."""
        links = [each.attrib["href"].partition(",")[2] for each in self.root.iter(f"{_NAME}image")]
        return [np.array(Image.open(io.BytesIO(base64.b64decode(link)))) for link in links]

    @property
    def colours(self) -> set[str]:
        """All colors."""
        return set(
            re.findall(r"#[0-9a-f]{6}", self.data.decode().partition("<desc>")[0] + self.data.decode().partition("</desc>")[2])
        )


def _words(each: ElementTree.Element) -> Words:
    place = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", each.get("transform", ""))]
    x, y, turned = place or (float(each.attrib["x"]), float(each.attrib["y"]), 0.0)
    return Words(x, y, "".join(each.itertext()), float(each.attrib["font-size"]), each.attrib["fill"], turned)


def colour_of(weights: Array, colours: Colours = "light") -> Array:
    """The colors that weights have on a scheme's scale, as #rrggbb."""
    scale = SCHEMES[colours].weights
    found = painted(weights, [(at / (len(scale) - 1), colour) for at, colour in enumerate(scale)])
    return np.array([["#{:02x}{:02x}{:02x}".format(*cell) for cell in row] for row in found])


def grid_of(boxes: list[Box]) -> list[list[Box]]:
    """Cells by row and column, from their places."""
    rows: dict[float, list[Box]] = {}
    for box in boxes:
        rows.setdefault(round(box.y, 2), []).append(box)
    return [sorted(rows[y], key=lambda box: box.x) for y in sorted(rows)]
