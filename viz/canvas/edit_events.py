"""Edits that a person made in a drawing, read from a browser's report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from model.errors import UnknownSite
from model.trace.types import Site

Act: TypeAlias = Literal["forbid", "allow", "onehot", "uniform", "silence", "hide"]
"""What a gesture in a drawing asks for."""

MOST_PLACES = 100_000
"""No stack has more positions or heads than this."""

MOST_BRUSHED = 2**14
"""Most patches of a drag."""


@dataclass(frozen=True)
class Gesture:
    """One edit, as it was drawn. It may name heads and positions that the run does not have.

    Attributes:
        act: `forbid` and `allow` cells, `onehot` and `uniform` rows, `silence` a head, `hide` a token.
        site: text form of the Site; empty for `hide`.
        head: counted from 0.
        queries, keys: the first and the last of the marked rows and columns.
        strip: the strip of the token; for `hide` alone.
        position: of the token.
        positions: of the tokens of an image that were brushed over, in place of one.
    """

    act: Act
    site: str = ""
    head: int = 0
    queries: tuple[int, int] = (0, 0)
    keys: tuple[int, int] = (0, 0)
    strip: str = ""
    position: int = 0
    positions: tuple[int, ...] = ()


def gesture(report: object) -> Gesture | None:
    """The edit in a browser's report; None for a report that no drawing makes."""
    if not isinstance(report, Mapping) or report.get("act") not in get_args(Act):
        return None
    act: Act = report["act"]
    if act == "hide" and report.get("positions") is not None:
        positions = _places(report["positions"])
        return Gesture(act, strip="source", positions=positions) if positions and report.get("strip") == "source" else None
    if act == "hide":
        strip, position = report.get("strip"), _position(report.get("position"))
        return None if strip not in ("source", "target") or position is None else Gesture(act, strip=strip, position=position)
    site, head = _site(report.get("site")), _position(report.get("head"))
    if site is None or head is None:
        return None
    if act == "silence":
        return Gesture(act, site, head)
    queries, keys = _range(report.get("queries")), _range(report.get("keys"))
    return None if queries is None or keys is None else Gesture(act, site, head, queries, keys)


def _site(text: object) -> str | None:
    try:
        return str(Site.parse(text)) if isinstance(text, str) else None
    except UnknownSite:
        return None


def _position(value: object) -> int | None:
    """A position or a head."""
    return value if type(value) is int and 0 <= value < MOST_PLACES else None


def _places(value: Any) -> tuple[int, ...]:
    """Some positions; none if one of them is none."""
    positions = [_position(item) for item in value] if isinstance(value, list) and len(value) <= MOST_BRUSHED else []
    return () if None in positions else tuple(item for item in positions if item is not None)


def _range(value: Any) -> tuple[int, int] | None:
    if not isinstance(value, list | tuple) or len(value) != 2:
        return None
    first, last = map(_position, value)
    return None if first is None or last is None or last < first else (first, last)
