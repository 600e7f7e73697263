"""Base class of all errors: a sentence template and the values of its fields."""

from collections.abc import Callable
from typing import Any, ClassVar


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
        template = self.singular if self.singular and self.count() == 1 else self.template
        super().__init__(" ".join(template.format(**fields).split()))

    def count(self) -> int:
        """The number that decides between `singular` and `template`: that of the field `counted`, 0 if it holds another value."""
        count = self.fields[self.counted]
        return count if isinstance(count, int) else 0

    def __reduce__(self) -> tuple[Callable[..., "HeadlightError"], tuple[type["HeadlightError"], dict[str, object]]]:
        """Pickles class and fields; an exception's default would keep the sentence only."""
        return _made_again, (type(self), self.fields)

    def to_json(self) -> dict[str, Any]:
        """The error as JSON values, which `errors.from_json` reads."""
        plain = {name: v if isinstance(v, str | int | float | bool | None) else str(v) for name, v in self.fields.items()}
        return {"error": type(self).__name__, "fields": plain}


def _made_again(kind: type[HeadlightError], fields: dict[str, object]) -> HeadlightError:
    return kind(**fields)
