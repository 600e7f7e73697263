"""URL parameters, as the metadata of ViewState's fields (view_state.py), and parsers for their values.

A parser raises ValueError with a description of the allowed values, which `viz.url.links.read` puts into its sentence.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from model.engine.sent_files import names_server_file
from model.errors import HeadlightError
from model.requests.edits import MOST_EDITS, Silence, read_edits, write_edits
from model.requests.edits import silences as silenced_heads
from model.requests.inputs import MOST_TURNS, Turn
from model.requests.request import MOST_TOKENS
from model.requests.sent_text import whole_number
from model.trace.types import Site
from viz.feature import cell_panels, features
from viz.i18n.translate import LANGUAGES, _, join_list, matching
from viz.i18n.translate import number as localized_number

Value = TypeVar("Value")

LONGEST_TEXT = 4000
"""Most characters of a text in a URL: browsers and servers cut longer ones."""

READINGS = ("head", "mean", "max", "value", "writes", "rollout", "entropy")
"""Readings of a site that Explore can draw; docs/readings.md defines each."""

PARTS = ("next", "facts", "times", "alike", "numbers", "heads", "lens", "products", "moved", "formula", "search")
"""Parts of Explore, Step through and a cell. Some stand on their page anyway: a lecture shows those that its link names."""

PICTURES = (
    *("heads", "head", "lines", "image"),
    *("values", "curves", "similarity", "arrows", "score", "waves"),
    *("motion", "stage", "tree", "steps"),
    *("combined", "causal", "padding", "weights"),
)
"""Pictures of the core's pages that fill the screen in big mode: of heads, of positions, of a run's steps, of masks. A page shows
its first one instead of one that it does not have."""

OVERLAYS = ("smooth", "column")
"""How weights lie over an image: smoothly, else patch by patch; the selected token's column, else its row."""


PLAIN = "off"
"""The value of `chat` with which a model with a chat template continues a text."""


@dataclass(frozen=True)
class Parameter:
    """One URL parameter, the metadata of a field of ViewState or of the parameters of a feature.

    Attributes:
        name: its name in a URL.
        meaning: its row in docs/links.md.
        read: reads its text, or raises ValueError with what is allowed.
        of_a_run: what Compare calls it, whose second side may differ in it; empty: it does not decide what runs.
        reset_by: what sets it back to its default: a new `sentence` or model, another `model` alone, or nothing.
        typed: whether people type it, so that no log may hold it.
        reported: whether drawings report it, as a whole number.
        field: the field that it sets.
        owner: the dataclass of this field: ViewState, or the parameters of a feature.
    """

    name: str
    meaning: str
    read: Callable[[str], Any]
    of_a_run: str = ""
    reset_by: Literal["sentence", "model", ""] = ""
    typed: bool = False
    reported: bool = False
    field: str = ""
    owner: type = object

    def accepts(self, value: object, default: object) -> bool:
        """Whether its field may have a value, as far as one can tell without a model. A typed text may be longer than in a URL.

        Args:
            default: the field's default.
        """
        if self.typed:
            return isinstance(value, str)
        try:
            return type(value) is type(default) and (value == default or bool(self.read(str(value)) == value))
        except ValueError:
            return False


def parameter(default: Value, name: str, meaning: str, read: Callable[[str], Any], **more: Any) -> Value:
    """A field of a dataclass of parameters: its default, and a URL parameter. Arguments as for Parameter."""
    return field(default=default, metadata={"parameter": Parameter(name, meaning, read, **more)})


def whole(lowest: int, highest: int = 10**9) -> Callable[[str], int]:
    """Parser for integers between two limits, inclusive."""

    def read(text: str) -> int:
        if (number := whole_number(text, lowest, highest)) is None:
            first, last = localized_number(lowest, ","), localized_number(highest, ",")
            raise ValueError(_("a whole number from {lowest} to {highest}", lowest=first, highest=last))
        return number

    return read


def number(lowest: float, highest: float) -> Callable[[str], float]:
    """Parser for numbers between two limits, inclusive."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        # NaN is in no interval, so a text that is no number ends here, too.
        if not lowest <= number <= highest:
            raise ValueError(_("a number from {lowest} to {highest}", lowest=lowest, highest=highest))
        return number

    return read


def text(given: str) -> str:
    """Parses a text of limited length."""
    if len(given) > LONGEST_TEXT:
        raise ValueError(_("at most {longest} characters", longest=LONGEST_TEXT))
    return given


def chat(given: str) -> str:
    """Parses the turns of a conversation before the newest, as JSON, or PLAIN."""
    if given in ("", PLAIN):
        return given
    try:
        # Read and written again, so that equal conversations have equal links.
        return written_turns(turns(text(given)))
    except (ValueError, RecursionError) as error:
        raise ValueError(_("the turns of a conversation such as {turns}, or off", turns='[["user", "Hi"]]')) from error


def turns(given: str) -> tuple[Turn, ...]:
    """The turns that a parameter `chat` holds.

    Raises:
        ValueError: it is of another form.
    """
    if given in ("", PLAIN):
        return ()
    entries = json.loads(given)
    if not isinstance(entries, list) or len(entries) >= MOST_TURNS:
        raise ValueError
    return tuple(_turn(entry) for entry in entries)


def _turn(given: object) -> Turn:
    match given:
        case ["system" | "user" | "assistant" as role, str(words)] if words.strip():
            return Turn(role, words)
    raise ValueError


def written_turns(conversation: Iterable[Turn]) -> str:
    """Turns as the text of a parameter `chat`."""
    return json.dumps([[turn.role, turn.text] for turn in conversation], ensure_ascii=False, separators=(",", ":"))


def choice(*allowed: str) -> Callable[[str], str]:
    """Parser for one of the `allowed` names."""

    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(join_list(allowed))
        return text

    return read


def some(*allowed: str) -> Callable[[str], str]:
    """Parser for some of the `allowed` names, joined by spaces; it puts them in order."""

    def read(text: str) -> str:
        if any(word not in allowed for word in text.split()):
            raise ValueError(join_list(allowed))
        return " ".join(word for word in allowed if word in text.split())

    return read


def part_names() -> tuple[str, ...]:
    """The names of parts of pages that a link opens, those of the core first."""
    brought = [
        name
        for feature in features()
        for names in (
            *((part.name, *part.parts) for part in feature.folded),
            feature.opens,
            *(page.parts for page in feature.pages),
        )
        for name in names
    ]
    return tuple(dict.fromkeys((*PARTS, *brought)))


def picture_names() -> tuple[str, ...]:
    """The names of pictures that fill a page in big mode, those of the core first."""
    brought = (name for feature in features() for page in feature.pages for name in page.pictures)
    return tuple(dict.fromkeys((*PICTURES, *brought)))


def picture(text: str) -> str:
    """Parses the picture that fills a page."""
    return choice(*picture_names())(text)


def parts(text: str) -> str:
    """Parses parts of a page."""
    return some(*part_names())(text)


def cell_panel(text: str) -> str:
    """Parses the panel of a cell."""
    return choice("how", *cell_panels())(text)


def language(text: str) -> str:
    """Parses the name of a language, such as "de" or "zh-Hant"; empty: none."""
    if text and not matching(text):
        raise ValueError(join_list(LANGUAGES))
    return matching(text)


def site(text: str) -> str:
    """Parses the text form of a Site."""
    try:
        return str(Site.parse(text))
    except HeadlightError as error:
        raise ValueError(_("an attention layer such as decoder.0.2.cross")) from error


def stage(text: str) -> str:
    """Parses the text form of a Stage; does not check that a run has it."""
    if not _STAGE.fullmatch(text):
        raise ValueError(_("a stage such as decoder.0.2.cross/weights"))
    return text


_STAGE = re.compile(r"[a-z0-9_.]{1,60}/[a-z]{1,20}", re.ASCII)


def silences(text: str) -> tuple[Silence, ...]:
    """The silenced heads named in a text."""
    pairs = (entry.rpartition(":") for entry in text.split())
    return silenced_heads((str(Site.parse(site)), whole(0)(head)) for site, _colon, head in pairs)


def silence(given: str) -> str:
    """Parses heads to be silenced."""
    try:
        silences(text(given))
        pairs = (entry.rpartition(":") for entry in given.split())
        return " ".join(f"{Site.parse(site)}:{int(head)}" for site, _colon, head in pairs)
    except (HeadlightError, ValueError) as error:
        raise ValueError(_("heads such as decoder.0.2.cross:4")) from error


def edits(given: str) -> str:
    """Parses edits, joined by semicolons."""
    try:
        return write_edits(read_edits(text(given)))
    except HeadlightError as error:
        raise ValueError(_("edits such as silence site=decoder.0.2.cross head=4, joined by semicolons")) from error


def ids(given: str) -> str:
    """Parses token ids."""
    try:
        return ",".join(map(str, id_numbers(given)))
    except ValueError as error:
        raise ValueError(_("token ids such as 5,3")) from error


def id_numbers(given: str) -> tuple[int, ...]:
    """Token ids with commas between, at most as many as a run writes."""
    ids = tuple(whole(0)(id_) for id_ in given.split(",") if given)
    if len(ids) > MOST_TOKENS:
        raise ValueError
    return ids


ALL_OFF = "all"
"""The value of `off` with which no edit is on."""


def off(given: str) -> str:
    """Parses places of edits, or `all`."""
    return given if given == ALL_OFF else ",".join(map(str, sorted(set(places(given)))))


def places(given: str) -> list[int]:
    """Whole numbers with commas between."""
    try:
        return [whole(0, MOST_EDITS)(index) for index in given.split(",") if given]
    except ValueError as error:
        raise ValueError(_("positions in the list of edits such as 0,2, or all")) from error


_SETTING = re.compile(r"[a-z_]{1,40}=\S{0,200}", re.ASCII)


def pairs(text: str) -> dict[str, str]:
    """Splits NAME=VALUE pairs joined by spaces into values by name."""
    return {name: value for name, _equals, value in (pair.partition("=") for pair in text.split())}


def settings_text(values: Mapping[str, str]) -> str:
    """Settings as text for a link. A value with a blank could not be read back."""
    return " ".join(f"{name}={value}" for name, value in sorted(values.items()))


def settings(given: str) -> str:
    """Parses settings and sorts them by name."""
    # A link may set values, but name no files: whoever opens it did not choose them.
    typed = text(given).split()
    values = pairs(given)
    files = any(names_server_file(name, value) for name, value in values.items())
    if not all(_SETTING.fullmatch(pair) for pair in typed) or len(values) < len(typed) or files:
        raise ValueError(_("settings such as n_heads=8, each name at most once, but no files"))
    return settings_text(values)
