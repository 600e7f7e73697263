"""Edit: one change of a run. Its text form, the limit of edits, and the places that edits at attention sites name.

Import from `model.spec.edits`, which also has the kinds of edits.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal

from model.errors import BadEdit
from model.spec import edit_text

MOST_EDITS = 256
"""Most edits of one run."""


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
        return edit_text.write(self.name, self)

    @staticmethod
    @lru_cache(maxsize=1024)
    def from_text(text: str) -> "Edit":
        """The edit of a text form.

        Raises:
            BadEdit: there is no such edit, or it has no such fields.
        """
        kind = EDITS.get(edit_text.name_of(text))
        if kind is None or len(text) > edit_text.LONGEST:
            there = f"there is no such edit; there is: {', '.join(EDITS)}"
            reason = f"it has more than {edit_text.LONGEST:,} characters" if kind else there
            raise BadEdit(edit=text[:80], reason=reason)
        made: Edit = edit_text.read(kind, text)
        return made

    def refuse(self, reason: str) -> BadEdit:
        """The error that says why this edit cannot be made."""
        return BadEdit(edit=str(self), reason=reason)


def read_edits(text: str) -> tuple[Edit, ...]:
    """The edits of a text, joined by semicolons.

    Raises:
        BadEdit: one of them is none, or there are too many.
    """
    return bounded(Edit.from_text(part) for part in edit_text.split(text))


def write_edits(edits: Iterable[Edit]) -> str:
    """The text of several edits, as `read_edits` reads it."""
    return "; ".join(map(str, edits))


def bounded(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits, unless there are more than MOST_EDITS.

    Raises:
        BadEdit: there are too many.
    """
    found = tuple(edits)
    if len(found) > MOST_EDITS:
        reason = (
            f"a run takes at most {MOST_EDITS} edits, and there are {len(found)}; one edit can name several heads, such as head=0,4"
        )
        raise BadEdit(edit=str(found[MOST_EDITS]), reason=reason)
    return found


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
            BadEdit: a head is negative, or `stack` and `kind` stand beside a `site`.
        """
        if self.site and (self.stack or self.kind):
            raise self.refuse("a site already says its stack and its kind")
        if any(head < 0 for head in self.head):
            raise self.refuse("heads are counted from 0")

    def at_site(self, site: str) -> bool:
        """Whether this edit is at a site, given in text form."""
        stack, kind = site.split(".")[0], site.split(".")[-1]
        return self.site in ("", site) and self.stack in ("", stack) and self.kind in ("", kind)

    def covers(self, site: str, head: int) -> bool:
        """Whether this edit is at a head of a site, given in text form."""
        return self.at_site(site) and (not self.head or head in self.head)
