"""Edit: one change of a run. Its text form, the limit of edits, and the places that edits at attention sites name.

Import from `model.requests.edits`, which also has the kinds of edits.

The text form, `NAME key=value …`, is used in links, on the command line and in JSON. A value with spaces, or one that would be read
as something else, is in double quotes, as JSON writes a string: `key="4"` is the token 4, `key=4` the fifth token, and `key=5..8`
are those at 5, 6, 7 and 8. A field that has its default is left out, so that equal edits have equal texts.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from functools import lru_cache
from types import NoneType
from typing import Any, ClassVar, Literal, TypeAlias, get_args, get_origin, get_type_hints

from model.errors import BadEdit, Phrase, phrase

Token: TypeAlias = int | str
"""A token of a strip: an index, counted from 0, or a text, which names all of its places."""

SHORTEST_RANGE, LONGEST_RANGE = 4, 2**14
"""Fewest and most tokens in a row that are written as a range, such as `5..8`."""

LARGEST_OF_RANGE = 999_999
"""Largest index in a range, of six digits as `_RANGE` reads."""

LONGEST = 4000
"""Most characters of one text; a link holds no longer ones."""

MOST_EDITS = 256
"""Most edits of one run."""

# A value in quotes may hold what separates values elsewhere: blanks, commas, semicolons.
_QUOTED = r'"(?:[^"\\]|\\.)*"'
_BARE = r'[^\s",;=]+'
_ITEM = re.compile(f"{_QUOTED}|{_BARE}")
_PAIR = re.compile(rf"\s+([a-z]+)=((?:{_QUOTED}|[^\s\";=])*)")
_NAME = re.compile(r"\s*([a-z]+(?:-[a-z]+)*)")
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,5})\.\.(0|[1-9][0-9]{0,5})")
_EDIT = re.compile(rf"(?:{_QUOTED}|[^;])*")

_TOKENS = tuple[Token, ...]

EDITS: dict[str, type["Edit"]] = {}
"""All kinds of edits by name."""


class Edit:
    """One change of a run. `str(edit)` is its text form. A subclass with a `name` is a kind of edits."""

    name: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Adds a kind of edits to EDITS."""
        if "name" in vars(cls):
            EDITS[cls.name] = cls

    def __str__(self) -> str:
        """The text form, without the fields that have their defaults."""
        return _text_of(self.name, self)

    @staticmethod
    @lru_cache(maxsize=1024)
    def from_text(text: str) -> "Edit":
        """The edit of a text form.

        Raises:
            BadEdit: there is no such edit, or it has no such fields.
        """
        # The fields of the dataclass are the grammar: which keys an edit has and of which type each is, is said
        # there alone.
        kind: Any = EDITS.get(_name_of(text))
        if kind is None or len(text) > LONGEST:
            unknown = f"there is no such edit; there is: {', '.join(EDITS)}"
            reason = f"it has more than {LONGEST:,} characters" if kind else unknown
            raise BadEdit(edit=text[:80], reason=reason)
        hints = {name: hint for name, hint in get_type_hints(kind).items() if name in {f.name for f in fields(kind)}}
        given: dict[str, Any] = {}
        for key, value in _pairs(text):
            if key not in hints:
                raise BadEdit(
                    edit=text, reason=phrase("“{key}” does not exist here. Available: {names}", key=key, names=", ".join(hints))
                )
            if key in given:
                raise BadEdit(edit=text, reason=phrase("{key} is given twice", key=key))
            given[key] = _value(hints[key], value, text, key)
        if missing := [f.name for f in fields(kind) if f.default is MISSING and f.name not in given]:
            raise BadEdit(edit=text, reason=phrase("a value is missing for: {names}", names=", ".join(missing)))
        made: Edit = kind(**given)
        return made

    def refuse(self, reason: Phrase) -> BadEdit:
        """The error that says why this edit cannot be made."""
        return BadEdit(edit=str(self), reason=reason)


def read_edits(text: str) -> tuple[Edit, ...]:
    """The edits of a text, joined by semicolons.

    Raises:
        BadEdit: one of them is none, or there are too many.
    """
    return bounded(Edit.from_text(part) for part in _split(text))


def write_edits(edits: Iterable[Edit]) -> str:
    """The text of several edits, as `read_edits` reads it."""
    return "; ".join(map(str, edits))


def bounded(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits, unless there are more than MOST_EDITS.

    Raises:
        BadEdit: there are too many.
    """
    listed = tuple(edits)
    if len(listed) > MOST_EDITS:
        several = "one edit can name several heads, such as head=0,4"
        reason = f"a run takes at most {MOST_EDITS} edits, and there are {len(listed)}; {several}"
        raise BadEdit(edit=str(listed[MOST_EDITS]), reason=reason)
    return listed


@dataclass(frozen=True)
class AtSites(Edit):
    """An edit at heads of attention sites; a field that is left out means all.

    Attributes:
        site: text form of one Site.
        head: heads, counted from 0.
        stack, kind: all sites of one stack, or of one kind.
    """

    site: str = ""
    head: tuple[int, ...] = ()
    stack: Literal["", "encoder", "decoder"] = ""
    kind: Literal["", "self", "cross", "memory"] = ""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            BadEdit: a head is negative, or `stack` and `kind` are given beside a `site`.
        """
        if self.site and (self.stack or self.kind):
            raise self.refuse(phrase("site=… already says stack=… and kind=…"))
        if any(head < 0 for head in self.head):
            raise self.refuse(phrase("heads are counted from 0"))

    def at_site(self, site: str) -> bool:
        """Whether this edit is at a site, given in text form."""
        stack, kind = site.split(".")[0], site.split(".")[-1]
        return self.site in ("", site) and self.stack in ("", stack) and self.kind in ("", kind)

    def covers(self, site: str, head: int) -> bool:
        """Whether this edit is at a head of a site, given in text form."""
        return self.at_site(site) and (not self.head or head in self.head)


def _text_of(name: str, value: Any) -> str:
    """The text of `value`, a dataclass."""
    hints = get_type_hints(type(value))
    given = [(f.name, getattr(value, f.name)) for f in fields(value) if f.default is MISSING or getattr(value, f.name) != f.default]
    return " ".join([name, *(f"{field}={(_ranges if hints[field] == _TOKENS else _written)(content)}" for field, content in given)])


def _ranges(tokens: tuple[Token, ...]) -> str:
    """Tokens as a list in which SHORTEST_RANGE and more indices in a row are a range."""
    parts: list[list[Token]] = []
    for token in tokens:
        last = parts[-1][-1] if parts else ""
        follows = isinstance(last, int) and 0 <= last < LARGEST_OF_RANGE and token == last + 1
        if follows and len(parts[-1]) < LONGEST_RANGE:
            parts[-1].append(token)
        else:
            parts.append([token])
    return ",".join(f"{run[0]}..{run[-1]}" if len(run) >= SHORTEST_RANGE else ",".join(map(_written, run)) for run in parts)


def _split(text: str) -> list[str]:
    """The texts of several values that are joined by semicolons, blank ones left out."""
    return [part for part in (match.group().strip() for match in _EDIT.finditer(text)) if part]


def _name_of(text: str) -> str:
    """The first word of a text."""
    match = _NAME.match(text)
    return match.group(1) if match else ""


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """The keys of a text with the texts of their values."""
    match = _NAME.match(text)
    end = match.end() if match else 0
    while pair := _PAIR.match(text, end):
        yield pair.group(1), pair.group(2)
        end = pair.end()
    if rest := text[end:].strip():
        raise BadEdit(
            edit=text[:LONGEST],
            reason=phrase("“{found}” is not of the form key=value (a value with spaces needs quotes)", found=rest[:40]),
        )


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        from_text = any(hasattr(type(item), "from_text") for item in value)
        return json.dumps("; ".join(map(str, value)), ensure_ascii=False) if from_text else ",".join(map(_written, value))
    if isinstance(value, str):
        plain = _ITEM.fullmatch(value) and not value.startswith('"') and not (_WHOLE.fullmatch(value) or _RANGE.fullmatch(value))
        return value if plain else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return str(value)


def _value(kind: Any, value: str, text: str, key: str) -> Any:
    """A value of type `kind`."""
    # An edit inside an edit (those of a patch's second run) is one string in quotes; it is read by its own class.
    choices = get_args(kind)
    if get_origin(kind) is tuple and hasattr(choices[0], "from_text"):
        return tuple(choices[0].from_text(part) for part in _split(_string(value, text)))
    if get_origin(kind) is tuple:
        items = _ITEM.findall(value)
        if ",".join(items) != value or not items:
            raise BadEdit(
                edit=text, reason=phrase("{key} must be a list separated by commas; a comma inside an item needs quotes", key=key)
            )
        ranges = choices[0] == Token
        return tuple(
            token for item in items for token in ((ranges and _of_range(item, text, key)) or [_single(choices[0], item, text, key)])
        )
    if NoneType in choices:
        kind = next(choice for choice in (Token, int, str) if choice | None == kind)
    return _single(kind, value, text, key)


def _of_range(item: str, text: str, key: str) -> range | None:
    """The indices of a range such as `5..8`; None: it is another item.

    Raises:
        BadEdit: it ends before it begins, or is too long.
    """
    match = _RANGE.fullmatch(item)
    if match is None:
        return None
    first, last = map(int, match.groups())
    if not first <= last < first + LONGEST_RANGE:
        reason = phrase(
            "{key} has the range {found}, which must end after its beginning and hold at most {most:,} tokens",
            key=key,
            found=item,
            most=LONGEST_RANGE,
        )
        raise BadEdit(edit=text, reason=reason)
    return range(first, last + 1)


def _single(kind: Any, value: str, text: str, key: str) -> Any:
    # Quotes decide between an index and a text where both are allowed: `4` is the fifth token, `"4"` is the token
    # 4.
    bare = not value.startswith('"')
    whole = bare and _WHOLE.fullmatch(value) is not None and len(value) <= 10
    if kind == Token and (whole or not bare):
        return int(value) if whole else _string(value, text)
    if kind in (str, Token) or get_origin(kind) is Literal:
        content = _string(value, text)
        if get_origin(kind) is Literal and content not in get_args(kind):
            allowed = ", ".join(choice for choice in get_args(kind) if choice)
            raise BadEdit(
                edit=text,
                reason=phrase("{key} is not allowed to be “{found}”. Allowed: {allowed}", key=key, found=content, allowed=allowed),
            )
        return content
    if kind is int and whole:
        return int(value)
    try:
        number = float(value) if kind is float and bare else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        if kind is int:
            raise BadEdit(edit=text, reason=phrase("{key} must be a whole number", key=key))
        raise BadEdit(edit=text, reason=phrase("{key} must be a number", key=key))
    return number


def _string(value: str, text: str) -> str:
    """A text, with or without quotes."""
    if not value.startswith('"'):
        return value
    try:
        return str(json.loads(value))
    except ValueError as error:
        raise BadEdit(edit=text, reason=phrase("{found} is not a string in quotes as JSON writes it", found=value[:40])) from error
