"""Validation: turns plain JSON or TOML values into frozen dataclasses and checks every field. All files and requests are read with
it.

The field types are the rules: `int` accepts neither a bool nor 1.0, a Literal only its choices, `Annotated[int, Between(1, 8)]`
only numbers within its limits. An unknown field is an error; none is ignored. A class with a method `from_text` is read from its
text.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from model.errors import BadSetting, Phrase, UnknownField, Words, phrase

Value = TypeVar("Value")

WORDS: dict[Any, Words] = {
    str: phrase("a string"),
    int: phrase("a whole number"),
    float: phrase("a number"),
    bool: "true, false",
    NoneType: "null",
}


@dataclass(frozen=True)
class Between:
    """Limits of a number, inclusive. Used in an Annotated type, or in the Option of a field.

    Attributes:
        lowest: the smallest allowed number.
        highest: the largest allowed number.
        words: how an error names the limits; empty: "from LOWEST to HIGHEST".
    """

    lowest: float
    highest: float
    words: Words = ""

    def __contains__(self, value: float) -> bool:
        """Whether a number is allowed; both ends are."""
        return self.lowest <= value <= self.highest

    @property
    def in_words(self) -> Words:
        """The allowed values, in words."""
        return self.words or phrase("from {lowest:,} to {highest:,}", lowest=self.lowest, highest=self.highest)


def read(kind: type[Value], data: Any, name: str) -> Value:
    """Reads a value of type `kind` from plain data.

    Args:
        kind: a frozen dataclass, whose fields are dataclasses, unions, Literals, tuples, mappings, str, int, float, bool or Any.
        data: plain values, as json or tomllib return them.
        name: name of `data` in an error.

    Raises:
        BadSetting: a field is unknown, missing, of another type or outside its limits; the message gives its path.
    """
    value: Value = _read(kind, data, name)
    return value


def _read(kind: Any, data: Any, name: str) -> Any:
    origin, choices = get_origin(kind), get_args(kind)
    # The order matters: a class that reads itself from a text is asked before it counts as a dataclass, and a plain
    # type comes last, since it accepts only its very own values.
    if kind is Any:
        return data
    if hasattr(kind, "from_text") and isinstance(data, str):
        return kind.from_text(data)
    if kind is Phrase:
        return _read_phrase(data, name)
    if is_dataclass(kind):
        return _read_dataclass(kind, data, name)
    if origin in (Union, UnionType):
        return _read_union(choices, data, name)
    if origin is Annotated:
        return _read_limited(choices[0], choices[1], data, name)
    if origin is Literal and isinstance(data, str) and data in choices:
        return data
    if origin is tuple and isinstance(data, list | tuple) and choices[1:] in ((...,), (choices[0],) * (len(data) - 1)):
        return tuple(_read(choices[0], item, f"{name}[{i}]") for i, item in enumerate(data))
    if origin in (dict, Mapping) and isinstance(data, Mapping) and all(isinstance(key, str) for key in data):
        return {key: _read(choices[1], item, f"{name}.{key}") for key, item in data.items()}
    # JSON has one kind of number: 2 stands for 2.0 too, as long as a float holds it exactly.
    if kind is float and type(data) is int and abs(data) < 2**53:
        return float(data)
    if type(data) is kind:
        return data
    raise BadSetting(name=name, found=_short(data), allowed=_words(kind))


def _read_dataclass(kind: Any, data: Any, name: str) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    if not isinstance(data, Mapping):
        raise BadSetting(name=name, found=_short(data), allowed=phrase("an object with the fields {names}", names=", ".join(hints)))
    if unknown := [key for key in data if key not in hints]:
        raise UnknownField(name=name, found=_short(unknown[0]), allowed=", ".join(hints))
    needed = {f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING} | data.keys()
    return kind(**{key: _read(hint, data.get(key), f"{name}.{key}") for key, hint in hints.items() if key in needed})


def _read_phrase(data: Any, name: str) -> Phrase:
    if isinstance(data, Phrase):
        return data
    try:
        return Phrase.from_json(data)
    except ValueError as error:
        raise BadSetting(name=name, found=_short(data), allowed=phrase("a sentence with its gaps filled")) from error


def _read_union(members: tuple[Any, ...], data: Any, name: str) -> Any:
    if data is None and NoneType in members:
        return None
    members = tuple(member for member in members if member is not NoneType)
    if len(members) == 1:
        return _read(members[0], data, name)
    for member in members:
        # The first member that fits is taken. Which of their errors would help is not known, so all members are
        # named below.
        with suppress(BadSetting):
            return _read(member, data, name)
    raise BadSetting(name=name, found=_short(data), allowed=tuple(map(_words, members)))


def _read_limited(kind: Any, limits: Between, data: Any, name: str) -> Any:
    value = _read(kind, data, name)
    if value not in limits:
        raise BadSetting(name=name, found=value, allowed=_limited(kind, limits))
    return value


def _limited(kind: Any, limits: Between) -> Phrase:
    ends = {"lowest": limits.lowest, "highest": limits.highest}
    if kind is int:
        return phrase("a whole number from {lowest:,} to {highest:,}", **ends)
    return phrase("a number from {lowest:,} to {highest:,}", **ends)


def _words(kind: Any) -> Words:
    """The values that `kind` accepts, in words."""
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        if others == [...]:
            return phrase("a list; each item: {item}", item=_words(first))
        return phrase("a list of length {count}; each item: {item}", count=1 + len(others), item=_words(first))
    if hasattr(kind, "from_text"):
        return WORDS[str]
    if get_origin(kind) is Annotated:
        return _limited(*get_args(kind))
    return WORDS.get(kind, phrase("names with their values"))


def _short(data: Any) -> Any:
    """`data`, shortened where it is too long for an error; a phrase as its English."""
    data = str(data) if isinstance(data, Phrase) else data
    text = repr(data)
    return data if len(text) <= 80 else f"{text[:80]}…"
