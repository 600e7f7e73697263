"""A URL parameter, as the metadata of a field of `viz.url.view_state.ViewState`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

Value = TypeVar("Value")


@dataclass(frozen=True)
class Parameter:
    """One URL parameter, the metadata of a field of View.

    Attributes:
        name: its name in a URL.
        meaning: its row in docs/links.md.
        read: reads its text, or raises ValueError with what is allowed.
        of_a_run: what Compare calls it, whose second side may differ in it; empty: it does not decide what runs.
        reset_by: what sets it back to its default: a new `sentence` or model, another `model` alone, or nothing.
        typed: whether people type it, so that no log may hold it.
        field: the field of View that it sets.
    """

    name: str
    meaning: str
    read: Callable[[str], Any]
    of_a_run: str = ""
    reset_by: Literal["sentence", "model", ""] = ""
    typed: bool = False
    field: str = ""

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
    """A field of View: its default, and a URL parameter. Arguments as for Parameter."""
    return field(default=default, metadata={"parameter": Parameter(name, meaning, read, **more)})
