"""A question that a file leaves open, and which answers it takes."""

import math
from dataclasses import dataclass

from model.errors import BadSetting, Words, phrase


@dataclass(frozen=True)
class Question:
    """One property that names and shapes do not tell.

    Attributes:
        name: its name in `--set`.
        consequence: a sentence on what depends on the answer.
        allowed: allowed answers; empty: a whole number up to `highest`, or a file if that is None.
        highest: the largest number allowed.
        default: the default answer; None: none.
        needed: whether the network cannot be built without an answer.
        also: settings that answer this and other questions at once.
        proposal: an answer that suggests itself and is not known to be right; empty: none does.
    """

    name: str
    consequence: Words
    allowed: tuple[str, ...] = ()
    highest: int | None = None
    default: str | None = None
    needed: bool = True
    also: tuple[str, ...] = ()
    proposal: str = ""

    @property
    def words(self) -> Words:
        """The allowed answers in words."""
        if self.allowed:
            return ", ".join(self.allowed)
        return phrase("a file") if self.highest is None else phrase("a whole number from 0 to {highest}", highest=self.highest)

    @property
    def form(self) -> str:
        """The setting as typed, with the proposed value, or with those that are allowed."""
        return f"--set {self.name}={self.proposal or '|'.join(self.allowed) or ('FILE' if self.highest is None else 'ID')}"

    def plain(self, value: str) -> str | None:
        """An answer as this question writes it: numbers are compared as numbers, 1e-5 is 1e-05. None: it is not allowed."""
        if self.allowed:
            number = _number(value)
            alike = (each for each in self.allowed if number is not None and _number(each) == number)
            return value if value in self.allowed else next(alike, None)
        if self.highest is None:
            return value
        number = _number(value)
        return str(int(number)) if number is not None and number.is_integer() and 0 <= number <= self.highest else None

    def allows(self, value: str) -> bool:
        """Whether `value` is an answer."""
        return self.plain(value) is not None

    def check(self, value: str) -> str:
        """`value` as `plain` writes it, if it is allowed.

        Raises:
            BadSetting: it is not allowed.
        """
        if (found := self.plain(value)) is None:
            raise BadSetting(name=self.name, found=value, allowed=self.words)
        return found


def _number(text: str) -> float | None:
    """The finite number in a text; None: it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
