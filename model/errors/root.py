"""Base class of all errors: a sentence template and the values of its fields."""

from collections.abc import Callable
from typing import Any, ClassVar

from model.errors.phrase import Phrase, filling, plain_gap


class HeadlightError(Exception):
    """Base class. `str(error)` is one line that can be shown to the user.

    Args:
        fields: values for the placeholders of the class's `template`.
    """

    template: ClassVar[str] = "{detail}"
    on_screen: ClassVar[str] = ""
    singular: ClassVar[str] = ""
    counted: ClassVar[str] = ""

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(" ".join(str(self.said(self.template)).split()))

    def said(self, template: str) -> Phrase:
        """One of its templates with its fields."""
        counts = self.singular and isinstance(self.fields.get(self.counted), int)
        fields = {name: filling(value) for name, value in self.fields.items()}
        return Phrase(template, fields, self.singular, self.counted) if counts else Phrase(template, fields)

    @property
    def on_page(self) -> Phrase:
        """What a page says."""
        return self.said(self.on_screen or self.template)

    def __reduce__(self) -> tuple[Callable[..., "HeadlightError"], tuple[type["HeadlightError"], dict[str, object]]]:
        """Pickles class and fields; an exception's default would keep the sentence only."""
        return _made_again, (type(self), self.fields)

    def to_json(self) -> dict[str, Any]:
        """The error as JSON values, which `errors.from_json` reads."""
        return {"error": type(self).__name__, "fields": {name: plain_gap(filling(value)) for name, value in self.fields.items()}}


def _made_again(kind: type[HeadlightError], fields: dict[str, object]) -> HeadlightError:
    return kind(**fields)
