"""The root of all errors: a sentence with gaps, and the values for them."""

from collections.abc import Callable
from typing import Any, ClassVar


class HeadlightError(Exception):
    """The root. `str(error)` is one line, fit to be shown to whoever asked.

    Args:
        fields: the values for the gaps of the class's `template`.
    """

    template: ClassVar[str] = "{detail}"
    on_screen: ClassVar[str] = ""

    def __init__(self, **fields: object) -> None:
        self.fields = fields
        super().__init__(" ".join(self.template.format(**fields).split()))

    def __reduce__(self) -> tuple[Callable[..., "HeadlightError"], tuple[type["HeadlightError"], dict[str, object]]]:
        """Class and fields, for Python's own ways between processes; those of an exception would be its sentence alone."""
        return _made_again, (type(self), self.fields)

    def to_json(self) -> dict[str, Any]:
        """The error as plain JSON values, from which `errors.from_json` makes it again."""
        plain = {name: v if isinstance(v, str | int | float | bool | None) else str(v) for name, v in self.fields.items()}
        return {"error": type(self).__name__, "fields": plain}


def _made_again(kind: type[HeadlightError], fields: dict[str, object]) -> HeadlightError:
    return kind(**fields)
