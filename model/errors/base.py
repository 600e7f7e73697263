"""Phrases: what `model` says, as a template and the values of its gaps; and the base class of all errors, which hold one.

English is the language of the templates, and `str` of a phrase is the English sentence. A page translates the template, which is a
whole sentence or clause, and then fills the gaps; it recognizes nothing in a finished text, so what people typed is never searched.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

Gap: TypeAlias = "str | int | float | Phrase | tuple[str | Phrase, ...]"
"""What fills a gap: a name or a number; a phrase, or several, only where it is a clause of its own, such as a reason."""

DEEPEST = 6
"""Most levels of phrases in the gaps of others, when they come from elsewhere."""

_FORM = re.compile(r",?(\.\d{1,2}[efg%])?")
"""The ways to write a number: 1,234 or 0.25; a width from elsewhere could ask for gigabytes of blanks."""


class Filler(string.Formatter):
    """Fills the gaps of a template in English. A gap says how a number is written, "{count:,}"; a text in it stays as it is."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One gap as text."""
        # Several clauses; a page translates each and joins them in its own language.
        if isinstance(value, tuple):
            return "; ".join(map(str, value))
        return str(value) if isinstance(value, str | Phrase) else format(value, format_spec)


@dataclass(frozen=True)
class Phrase:
    """A sentence, or a clause of its own, that `model` says. `phrase` and `counted` make them.

    Attributes:
        template: the English sentence with named gaps.
        fields: what fills the gaps, by name.
        singular: the template for 1 thing, where it counts; empty: it does not.
        count: the name of the field with that number.

    """

    template: str
    fields: Mapping[str, Gap] = field(default_factory=dict)
    singular: str = ""
    count: str = ""

    def __post_init__(self) -> None:
        """Checks the gaps: a phrase may come from a file or a server.

        Raises:
            ValueError: no field fills one of them, or it looks into a value.
        """
        for template in (self.template, self.singular):
            # A template from a stranger must not do what Python's formats can: read attributes ({a.b}), call repr, or pad to a
            # billion blanks.
            for _text, name, form, conversion in string.Formatter().parse(template):
                if name is not None and (
                    name not in self.fields or not name.isidentifier() or conversion or not _FORM.fullmatch(form or "")
                ):
                    raise ValueError(f"no field fills the gap {name} of a phrase")
        if self.singular and not isinstance(self.fields.get(self.count), int):
            raise ValueError(f"a phrase counts no {self.count}")

    def __hash__(self) -> int:
        """Of the template, because fields are a dictionary."""
        # Equal phrases have equal templates, so this is a correct hash; phrases that differ in their fields alone are few.
        return hash((self.template, self.singular))

    def __str__(self) -> str:
        """The sentence in English."""
        return self._english

    @cached_property
    def _english(self) -> str:
        template = self.singular if self.singular and self.fields[self.count] == 1 else self.template
        return Filler().vformat(template, (), self.fields)

    def to_json(self) -> dict[str, Any]:
        """The phrase as JSON values."""
        plain = {"template": self.template, "fields": {name: plain_gap(value) for name, value in self.fields.items()}}
        return plain | ({"singular": self.singular, "count": self.count} if self.singular else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Phrase":
        """The phrase in JSON values of `to_json`, perhaps from a stranger.

        Raises:
            ValueError: they are none.
        """
        return _phrase_of(data, 1)


Words: TypeAlias = str | Phrase
"""What is shown: a text as it is, such as a name, or a phrase in the language of the page."""


def message(template: str, /) -> str:
    """Marks the sentence of an error for translators and returns it."""
    return template


def messages(singular: str, plural: str, /) -> tuple[str, str]:
    """Marks the sentence of an error that counts: for one thing, and for any other number."""
    return singular, plural


def phrase(template: str, /, **fields: object) -> Phrase:
    """A phrase; translators find its template by this call, so it is written out here."""
    return Phrase(template, {name: filling(value) for name, value in fields.items()})


def counted(singular: str, plural: str, count: int, /, **fields: object) -> Phrase:
    """A phrase about `count` things, which fills the gap {count}: `singular` for 1 of them, `plural` for another number."""
    return Phrase(plural, {"count": count, **{name: filling(value) for name, value in fields.items()}}, singular, "count")


def filling(value: object) -> Gap:
    """A value as what fills a gap: a path or a list, for example, as its text."""
    if isinstance(value, str | int | float | Phrase):
        return value
    # Anything else (a path, a list, an error of another library) is its text: it is not translated.
    return value if isinstance(value, tuple) and all(isinstance(part, str | Phrase) for part in value) else str(value)


def rewritten(value: object, change: Callable[[str], str]) -> Gap:
    """What fills a gap, with every text in it changed, also inside phrases: to take a folder out, for example."""
    match gap := filling(value):
        case Phrase():
            return replace(gap, fields={name: rewritten(filled, change) for name, filled in gap.fields.items()})
        case tuple():
            inside = (rewritten(part, change) for part in gap)
            return tuple(part for part in inside if isinstance(part, str | Phrase))
        case str():
            return change(gap)
    return gap


def plain_gap(value: Gap) -> Any:
    """What fills a gap, as JSON values."""
    match value:
        case Phrase():
            return value.to_json()
        case tuple():
            return list(map(plain_gap, value))
    return value


def gap_of(data: Any, depth: int = 1) -> Gap:
    """What fills a gap, from JSON values, perhaps from a stranger.

    Raises:
        ValueError: they are nothing that does.
    """
    # Each level would cost a level of Python's stack.
    if depth > DEEPEST:
        raise ValueError("phrases in phrases in phrases")
    match data:
        case Mapping():
            return _phrase_of(data, depth)
        case str() | int() | float():
            return data
        case Sequence():
            return tuple(part if isinstance(part, str) else _phrase_of(part, depth + 1) for part in data)
    raise ValueError(f"a {type(data).__name__} fills no gap")


def in_english(entries: dict[str, Any]) -> Any:
    """An object of a JSON text, a phrase as its English sentence: the `object_hook` for JSON that people read."""
    return str(gap_of(entries)) if {"template", "fields"} <= entries.keys() else entries


def _phrase_of(data: Any, depth: int) -> Phrase:
    if not isinstance(data, Mapping) or not {"template", "fields"} <= data.keys() <= {"template", "fields", "singular", "count"}:
        raise ValueError("a phrase has a template and fields")
    # A missing singular or count is empty: the phrase does not count.
    fields, *texts = (data.get(name, "") for name in ("fields", "template", "singular", "count"))
    if not isinstance(fields, Mapping) or not all(isinstance(text, str) for text in (*texts, *fields)):
        raise ValueError("a phrase has a template and fields")
    template, singular, count = texts
    return Phrase(template, {name: gap_of(value, depth + 1) for name, value in fields.items()}, singular, count)


class HeadlightError(Exception):
    """Base class. `str(error)` is one line that can be shown to the user.

    Args:
        fields: values for the placeholders of the class's `template`.
    """

    template: ClassVar[str] = "{detail}"
    on_screen: ClassVar[str] = ""
    singular: ClassVar[str] = ""
    counted: ClassVar[str] = ""
    of_strip: ClassVar[Mapping[str, str]] = {}

    def __init__(self, **fields: object) -> None:
        # `args` is the English sentence, for logs and tracebacks; pages make theirs of the fields.
        self.fields = fields
        super().__init__(" ".join(str(self.fill_in(self._whole)).split()))

    @property
    def _whole(self) -> str:
        """Its sentence: that of the field `strip`, if the class has one for each text that it can be about."""
        return self.of_strip.get(str(self.fields.get("strip", "")), self.template)

    def fill_in(self, template: str) -> Phrase:
        """One of its templates with its fields in the gaps."""
        # Where a class counts, the number decides between its two sentences; an unknown number takes the plural.
        counts = self.singular and isinstance(self.fields.get(self.counted), int)
        fields = {name: filling(value) for name, value in self.fields.items()}
        return Phrase(template, fields, self.singular, self.counted) if counts else Phrase(template, fields)

    def about(self, strip: str) -> "HeadlightError":
        """The same error about a text that has another name, if its class has a sentence for that."""
        return type(self)(**{**self.fields, "strip": strip}) if strip in self.of_strip else self

    @property
    def on_page(self) -> Phrase:
        """What a page says."""
        return self.fill_in(self.on_screen or self._whole)

    def __reduce__(self) -> tuple[Callable[..., "HeadlightError"], tuple[type["HeadlightError"], dict[str, object]]]:
        """Pickles class and fields; an exception's default would keep the sentence only."""
        return _made_again, (type(self), self.fields)

    def to_json(self) -> dict[str, Any]:
        """The error as JSON values, which `errors.from_json` reads."""
        return {"error": type(self).__name__, "fields": {name: plain_gap(filling(value)) for name, value in self.fields.items()}}


def _made_again(kind: type[HeadlightError], fields: dict[str, object]) -> HeadlightError:
    return kind(**fields)
