"""What has no room in a figure, and the sentences that say so. Nothing is left out in silence."""

from viz.publication.options import SMALLEST_FONT
from viz.texts import _, _n

TALLEST = 230.0
"""Most millimeters of a figure's height: a page."""

LONGEST_LABEL = 0.36
"""Most of a figure's width that a label takes."""

LINE_OF_TITLE = 1.5
"""Height of an axis title with the space around it, in font sizes."""


def left_out(axis: str, each: int) -> str:
    """Sentence for an axis that names only some of its tokens."""
    gaps = {"axis": axis, "each": each, "least": SMALLEST_FONT}
    return _("{axis}: one token of {each} is named; at {least:g} pt, more have no room. A wider figure names more.", **gaps)


def unfit(characters: str) -> str:
    """Sentence for characters that no font has."""
    return _n(
        "No font on this computer has the character {characters}: install one, such as Noto Sans.",
        "No font on this computer has the characters {characters}: install one, such as Noto Sans.",
        len(characters),
        characters=" ".join(characters),
    )


def shortened(axis: str) -> str:
    """Sentence for an axis with labels that end in an ellipsis."""
    return _("{axis}: long labels are shortened. A wider figure has more room for them.", axis=axis)
