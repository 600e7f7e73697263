"""Words for surveys: names of roles, and what a screen reader reads for the scatter of heads."""

import math
from collections.abc import Sequence

import numpy as np

from model.trace.types import Array
from viz.i18n.translate import _, number


def roles() -> dict[str, str]:
    """Names of the roles."""
    return {
        "previous token": _("previous token"),
        "next token": _("next token"),
        "same token": _("same position"),
        "first token": _("first token"),
        "last token": _("last token"),
        "special tokens": _("special tokens"),
        "punctuation": _("punctuation"),
        "duplicate token": _("same word elsewhere"),
        "induction": _("induction"),
        "diagonal": _("diagonal"),
        "antidiagonal": _("antidiagonal"),
    }


def directions() -> dict[str, str]:
    """Who attends to whom along a dependency."""
    return {
        "to its governor": _("from a word to the one that it depends on"),
        "from its governor": _("to a word, from the one that it depends on"),
    }


def with_error(mean: float, error: float, decimals: int) -> tuple[str, str]:
    """A mean and its standard error with so many decimals, or with as many more as the error needs to be seen."""
    digits = max(decimals, math.ceil(-math.log10(error))) if error > 0 else decimals
    return number(mean, f".{digits}f"), number(error, f".{digits}f")


def spread(counts: Array, highest: float) -> str:
    """A histogram [bin] in one line of text, from 0 to `highest`; empty: it counts nothing."""
    most = int(counts.max())
    steps = np.ceil((len(_STEPS) - 1) * counts / max(most, 1)).astype(int)
    return f"0 {''.join(_STEPS[step] for step in steps)} {number(highest, '.0f')}" if most else ""


_STEPS = "▁▂▃▄▅▆▇█"
"""Signs of growing height; the first one is for no text at all."""


def scatter(names: Sequence[str], across: Array, up: Array, titles: tuple[str, str]) -> str:
    """The scatter of heads in words: its axes, and the heads at the four ends."""
    known = np.flatnonzero(np.isfinite(across) & np.isfinite(up))
    if not len(known):
        return _("No head has both measures.")
    sentences = [
        _(
            "A dot for each head ({count:,}): {across} from left to right, {up} from bottom to top.",
            count=len(known),
            across=titles[0],
            up=titles[1],
        )
    ]
    for title, values in zip(titles, (across, up), strict=True):
        low, high = known[np.argmin(values[known])], known[np.argmax(values[known])]
        fields = {"low": names[low], "least": number(values[low], ".2f"), "high": names[high], "most": number(values[high], ".2f")}
        sentences.append(_("{title}: smallest in {low} ({least}), largest in {high} ({most}).", title=title, **fields))
    return " ".join(sentences)
