"""The URL parameters of the page Circuit, of why a score is what it is, and of what a token is made of.

A parser raises ValueError with a description of the allowed values.
"""

from dataclasses import dataclass

from model.errors import HeadlightError
from model.trace.types import Site
from viz.i18n.translate import _
from viz.url import parsers as values
from viz.url.parsers import parameter

LONGEST_TRAIL = 8
"""Most cells of a trail."""


def key_or_mean(text: str) -> str:
    """Parses a key, or `mean`; empty: none."""
    if text in ("", "mean"):
        return text
    try:
        return str(values.whole(0)(text))
    except ValueError as error:
        raise ValueError(_("a key, counted from 0, or mean")) from error


def rival(text: str) -> str:
    """Parses the token whose logit is taken away: `runner-up`, `none` or an id."""
    if text in ("runner-up", "none"):
        return text
    try:
        return str(values.whole(0)(text))
    except ValueError as error:
        raise ValueError(_("runner-up, none, or the id of a token")) from error


def cells(given: str) -> tuple[tuple[str, int, int, int], ...]:
    """The cells of a trail: site, head, query and key of each."""
    fields = [cell.split(":") for cell in given.split()]
    return tuple(
        (str(Site.parse(site)), values.whole(0)(head), values.whole(0)(query), values.whole(0)(key))
        for site, head, query, key in fields
    )


def trail(given: str) -> str:
    """Parses cells joined by spaces, each SITE:HEAD:QUERY:KEY; of too many the last ones."""
    try:
        return " ".join(":".join(map(str, cell)) for cell in cells(values.text(given))[-LONGEST_TRAIL:])
    except (HeadlightError, ValueError) as error:
        raise ValueError(_("cells such as decoder.0.2.cross:4:2:1")) from error


@dataclass(frozen=True, kw_only=True)
class CircuitView:
    """What is counted and compared; the row -1 is all rows."""

    minus: str = parameter(
        "", "minus", "why: the key whose score is taken away, or mean, that of the row", key_or_mean, reset_by="sentence"
    )
    trail: str = parameter(
        "", "trail", "why: the cells that led to this one, SITE:HEAD:QUERY:KEY joined by spaces", trail, reset_by="sentence"
    )
    rival: str = parameter(
        "runner-up", "rival", "the token whose logit is taken away: runner-up, none or an id", rival, reset_by="sentence"
    )
    least: float = parameter(
        0.0,
        "share",
        "Circuit: the smallest share of an edge that is drawn, from 0.01; default: 0.05, or less so that half of what heads used "
        "is drawn",
        values.number(0, 1),
    )
    row: int = parameter(-1, "row", "Circuit: the row that is counted, from 0; -1: all", values.whole(-1), reset_by="sentence")
    corrupted: str = parameter("", "corrupted", "Circuit: the corrupted sentence", values.text, reset_by="sentence", typed=True)
