"""The values of URL parameters: how each kind is read from its text, and in which words it is refused.

A reader raises ValueError with what is allowed, to stand in the sentence of `viz.links.read`.
"""

import math
import re
from collections.abc import Callable, Mapping

from model.engine.sent_files import names_server_file
from model.errors import HeadlightError
from model.spec.request import Silence
from model.trace.types import Site
from viz.texts import _

LONGEST_TEXT = 4000
"""Characters of a text that travel in a URL: browsers and servers cut longer ones."""


def whole(lowest: int, highest: int = 10**9) -> Callable[[str], int]:
    """Reads whole numbers between two limits, both allowed."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or len(digits) > 20 or not lowest <= int(text) <= highest:
            raise ValueError(_("a whole number from {lowest} to {highest}", lowest=_readable(lowest), highest=_readable(highest)))
        return int(text)

    return read


def _readable(number: int) -> str:
    """A whole number as people write it: thousands apart, and a minus that is not a hyphen."""
    return f"{number:,}".replace("-", "−")


def number(lowest: float, highest: float) -> Callable[[str], float]:
    """Reads numbers between two limits, both allowed."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not lowest <= number <= highest:
            raise ValueError(_("a number from {lowest} to {highest}", lowest=lowest, highest=highest))
        return number

    return read


def text(given: str) -> str:
    """Reads a text that is not too long."""
    if len(given) > LONGEST_TEXT:
        raise ValueError(_("a text of at most {longest} characters", longest=LONGEST_TEXT))
    return given


def choice(*allowed: str) -> Callable[[str], str]:
    """Reads one of some names."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(_("one of {allowed}", allowed=", ".join(allowed)))
        return text

    return read


def site(text: str) -> str:
    """Reads the text form of a Site."""
    try:
        return str(Site.parse(text))
    except HeadlightError as error:
        raise ValueError(_("a site such as decoder.0.2.cross")) from error


def stage(text: str) -> str:
    """Reads the text form of a Stage; whether a run has it is not known here."""
    if not _STAGE.fullmatch(text):
        raise ValueError(_("a stage such as decoder.0.2.cross/weights"))
    return text


_STAGE = re.compile(r"[a-z0-9_.]{1,60}/[a-z]{1,20}", re.ASCII)


def silences(text: str) -> list[Silence]:
    """The heads that a text silences."""
    pairs = (entry.rpartition(":") for entry in text.split())
    return [Silence(str(Site.parse(site)), whole(0)(head)) for site, _colon, head in pairs]


def silence(given: str) -> str:
    """Reads heads to be silenced."""
    try:
        return " ".join(f"{s.site}:{s.head}" for s in silences(text(given)))
    except (HeadlightError, ValueError) as error:
        raise ValueError(_("heads such as decoder.0.2.cross:4")) from error


_SETTING = re.compile(r"[a-z_]{1,40}=\S{0,200}", re.ASCII)


def pairs(text: str) -> dict[str, str]:
    """NAME=VALUE joined by spaces, by name."""
    return {name: value for name, _equals, value in (pair.partition("=") for pair in text.split())}


def settings_text(told: Mapping[str, str]) -> str:
    """Settings as a link writes them; those with a blank in their value do not fit into one."""
    return " ".join(f"{name}={value}" for name, value in sorted(told.items()))


def settings(given: str) -> str:
    """Reads settings, in the order of their names."""
    typed = text(given).split()
    told = pairs(given)
    files = any(names_server_file(name, value) for name, value in told.items())
    if not all(_SETTING.fullmatch(pair) for pair in typed) or len(told) < len(typed) or files:
        raise ValueError(_("settings such as n_heads=8, each name once, and none that names a file"))
    return settings_text(told)
