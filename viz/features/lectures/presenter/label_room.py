"""Labels of a picture that a lecturer's window would cut, computed from the widths of their texts.

The sizes are those of the lecturer's page (`presenting.css`, `lecturer.js`) and of the drawings (`heatmap.js`, `large.js`,
`lines.js`); a browser test compares the result with what they write.
"""

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any

from PIL import ImageFont

from viz.canvas.typeface import font
from viz.canvas.wire.transport import unpack
from viz.features.lectures.presenter.panels import Picture, overview_of

WINDOWS = ((1024, 768), (1440, 900))
"""Windows of lecturers in pixels: the projector of a lecture room, and a laptop."""

SIZE = 1.5
"""The size of type with which a lecturer's page begins on such a window."""

SMALL, TALL, STRONG = 12.5, 13.0, 650
"""Sizes of labels in pixels of a drawing: of a map, and of lines, where they may be emphasized."""

LONGEST_KEY = 92.0
"""Room of a slanted label above a map, in pixels of a drawing."""


def cut_labels(picture: Picture, window: tuple[int, int], size: float = SIZE) -> Iterator[str]:
    """The labels of rows and columns that would not be written whole at this size of the window, and of the type."""
    for panel, pairs in zip(picture.panels, _paired(picture), strict=True):
        across = _width(pairs, window, size) / size
        if panel.kind in ("Atlas", "Film") and picture.choice.get("large"):
            yield from _cut_in_map(*_axes(picture, panel.scene), across - 30)  # the border and the padding of a large head
        elif panel.kind in ("Cells", "Lines"):
            header = unpack(picture.scenes[panel.scene])[0]
            if panel.kind == "Cells":
                yield from _cut_in_map(header["queries"], header["keys"], across)
            else:
                room = across * 0.32
                yield from (text for text in (*header["queries"], *header["keys"]) if text_width(text, TALL, STRONG) > room)


def _paired(picture: Picture) -> list[bool]:
    """Whether each panel is one of two halves that stand side by side where there is room."""
    pairs = [False] * len(picture.panels)
    for at in range(len(pairs) - 1):
        if "whole" not in (picture.panels[at].width, picture.panels[at + 1].width) and not pairs[at]:
            pairs[at] = pairs[at + 1] = True
    return pairs


def _width(pairs: bool, window: tuple[int, int], size: float) -> float:
    """The width of a panel beside the words, in pixels of the window."""
    stage = window[0] - min(max(230.0, 15 * 16 * size), 0.34 * window[0]) - 28
    return (stage - 12) / 2 if pairs and stage >= 2 * 300 * size + 12 else stage


def _axes(picture: Picture, scene: str) -> tuple[Sequence[str], Sequence[str]]:
    """The labels of the rows and columns of the selected head."""
    groups = overview_of(picture, scene)[0]["groups"]
    group: Mapping[str, Any] = next(g for g in groups if any(site["site"] == picture.choice["site"] for site in g["sites"]))
    return group["queries"], group["keys"]


def _cut_in_map(queries: Sequence[str], keys: Sequence[str], across: float) -> Iterator[str]:
    """The labels that a map cuts which is so many pixels wide."""
    most = max(text_width(text, SMALL) for text in queries) + 1
    left = math.ceil(min(most, across * (0.3 if across < 530 else 0.32))) + 8
    slant = math.ceil(min(max(text_width(text, SMALL) for text in keys) + 1, LONGEST_KEY) * math.sqrt(0.5)) + 12
    least = min((across - left - slant) / len(keys), 54)
    slanted = [min(text_width(text, SMALL), LONGEST_KEY) * math.sqrt(0.5) + 8 for text in reversed(keys)]
    right = min(slant, math.ceil(max(width - at * least for at, width in enumerate(slanted))))
    cell = min((across - left - right) / len(keys), 54)
    spare = max(0, math.floor((across - left - right - cell * len(keys)) / 2))
    yield from (text for text in queries if text_width(text, SMALL) > left + spare - 7)
    yield from (text for text in keys if text_width(text, SMALL) > LONGEST_KEY)


@lru_cache(maxsize=20_000)
def text_width(text: str, size: float, weight: int = 400) -> float:
    """Width of a text in the typeface of the app. Wide characters, which it does not have, are as wide as they are high."""
    wide = [unicodedata.east_asian_width(character) in "WF" for character in text]
    narrow = "".join(character for character, is_wide in zip(text, wide, strict=True) if not is_wide)
    face = _face(weight)
    return sum(wide) * size + (face.getlength(narrow) / face.size * size if face is not None else len(narrow) * size / 2)


@lru_cache(maxsize=4)
def _face(weight: int) -> ImageFont.FreeTypeFont | None:
    """The typeface; None: its file is not there."""
    if not font():
        return None
    face = ImageFont.truetype(BytesIO(font()), 200)
    face.set_variation_by_axes([weight])
    return face
