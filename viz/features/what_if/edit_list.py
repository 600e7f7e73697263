"""EditList: the edits of a view in their order, some of them switched off."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from model.requests.edits import Edit, write_edits
from viz.url.parsers import ALL_OFF
from viz.url.view_state import ViewState


@dataclass(frozen=True)
class EditList:
    """Edits in the order in which they apply.

    Attributes:
        edits: all of them.
        off: places of those that are switched off.
    """

    edits: tuple[Edit, ...] = ()
    off: frozenset[int] = frozenset()

    @classmethod
    def of(cls, view: ViewState) -> Self:
        """The edits of a view. Heads that an old link silences come first."""
        return cls(view.all_edits(), view.switched_off())

    @property
    def active(self) -> tuple[Edit, ...]:
        """The edits that are switched on."""
        return tuple(edit for place, edit in enumerate(self.edits) if place not in self.off)

    def fields(self) -> dict[str, Any]:
        """The fields of `ViewState` that hold this list."""
        off = ",".join(map(str, sorted(self.off))) if self.edits else ALL_OFF
        return {"edits": write_edits(self.edits), "silence": "", "off": off}

    def with_(self, *added: Edit) -> Self:
        """The list with more edits at its end."""
        return replace(self, edits=(*self.edits, *added))

    def without(self, *places: int) -> Self:
        """The list without the edits at some places."""
        return self._arranged([place for place in range(len(self.edits)) if place not in places])

    def with_or_without(self, edit: Edit) -> Self:
        """The list with `edit`, or without it if it is there and switched on."""
        there = [place for place, one in enumerate(self.edits) if one == edit and place not in self.off]
        return self.without(*there) if there else self.with_(edit)

    def changed(self, place: int, edit: Edit) -> Self:
        """The list with another edit at a place."""
        return replace(self, edits=tuple(edit if at == place else one for at, one in enumerate(self.edits)))

    def has(self, place: int, edit: Edit) -> bool:
        """Whether `edit` is at a place."""
        return self.edits[place : place + 1] == (edit,)

    def switched(self, place: int, on: bool) -> Self:
        """The list with one edit switched on or off."""
        return replace(self, off=self.off - {place} if on else self.off | {place})

    def moved(self, place: int, by: int) -> Self:
        """The list with one edit moved; it stays where it is at an end of the list."""
        to = place + by
        if not 0 <= to < len(self.edits):
            return self
        order = list(range(len(self.edits)))
        order[place], order[to] = order[to], order[place]
        return self._arranged(order)

    def _arranged(self, order: Iterable[int]) -> Self:
        """The edits that are now at the places of `order`, in that order."""
        places = list(order)
        off = frozenset(new for new, old in enumerate(places) if old in self.off)
        return replace(self, edits=tuple(self.edits[old] for old in places), off=off)
