"""Sentences on what does not fit into a figure. Nothing is left out silently."""

from collections.abc import Iterable

from viz.features.print import fonts
from viz.features.print.options import SMALLEST_FONT
from viz.features.print.shapes import Shape, Text
from viz.i18n.translate import _, _n

TALLEST = 230.0
"""Most millimeters of a figure's height: a page."""

LONGEST_LABEL = 0.36
"""Most of a figure's width that a label takes."""

LINE_OF_TITLE = 1.5
"""Height of an axis title with the space around it, in font sizes."""


def left_out(axis: str, step: int) -> str:
    """Sentence for an axis that names only some of its tokens."""
    fields = {"axis": axis, "each": step, "least": SMALLEST_FONT}
    return _("{axis}: one token in {each} is labeled, because no more fit at {least:g} pt. A wider figure labels more.", **fields)


def without_font(shapes: Iterable[Shape]) -> list[str]:
    """A sentence that names the characters of the texts that no font has; none if there are no such characters."""
    characters = fonts.missing("".join(shape.text for shape in shapes if isinstance(shape, Text)))
    if not characters:
        return []
    sentence = _n(
        "No font on this computer has the character {characters}: install one, such as Noto Sans.",
        "No font on this computer has the characters {characters}: install one, such as Noto Sans.",
        len(characters),
        characters=" ".join(characters),
    )
    return [sentence]


def no_room(count: int) -> str:
    """Sentence for tokens that have no room on a page."""
    return _n(
        "{count} token is omitted: it does not fit on the page.",
        "{count} tokens are omitted: they do not fit on the page.",
        count,
        count=count,
    )


def shortened(axis: str) -> str:
    """Sentence for an axis with labels that end in an ellipsis."""
    return _("{axis}: long labels are shortened. A wider figure has more room for them.", axis=axis)
