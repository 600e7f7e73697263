"""Option: what people may say about one field of a run. It stands in the field's metadata.

The field has the name, the type and the default; the option has the range and the help. The checks of a request and the command
line (`model/cli/options.py`) read both, so that an option is written down once.
"""

from collections.abc import Iterator
from dataclasses import Field, dataclass, fields
from typing import Any

from model.errors import BadSetting
from model.spec.validation import Between

_KEY = "option"


@dataclass(frozen=True)
class OneOf:
    """The allowed names."""

    names: tuple[str, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.names

    def __str__(self) -> str:
        return " or ".join(self.names)


@dataclass(frozen=True)
class Option:
    """An option of `python -m model run` and `explain`.

    Attributes:
        help: its line in `--help`.
        allowed: the values that a request takes besides its default; None: all of the field's type.
        flag: its name on the command line, without dashes; empty: the field's name.
        usual: the command line's default; None: the field's default.
        variable: the environment variable that sets it; empty: none does.
        ids, features: of an input, which can also be given as ids or as features: the help of those two options.
    """

    help: str
    allowed: Between | OneOf | None = None
    flag: str = ""
    usual: str | None = None
    variable: str = ""
    ids: str = ""
    features: str = ""


def option(help_: str, allowed: Between | OneOf | None = None, **more: str) -> dict[str, Option]:
    """The metadata of a field: `field(default=…, metadata=option(…))`. Arguments as for Option."""
    return {_KEY: Option(help_, allowed, **more)}


def described_fields(described: Any) -> Iterator[tuple[Field[Any], Option]]:
    """The fields that have an option, each with it."""
    return ((each, each.metadata[_KEY]) for each in fields(described) if _KEY in each.metadata)


def check(described: Any) -> None:
    """Refuses a value that one of its options does not allow.

    Raises:
        BadSetting: the sentence names the field.
    """
    for each, own in described_fields(described):
        found = getattr(described, each.name)
        if own.allowed is not None and found != each.default and found not in own.allowed:
            raise BadSetting(name=each.name, found=found, allowed=str(own.allowed))
