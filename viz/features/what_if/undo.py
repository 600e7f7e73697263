"""Undo and redo of edits, and of the sentences that experiments bring with them. Kept by the session."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from model.requests.edits import Edit
from viz.features.what_if.edit_list import EditList
from viz.session.state import get_view_state, update
from viz.url.parsers import ALL_OFF

FIELDS = ("model", "text", "target", "edits", "silence", "off")
"""Fields of ViewState that undo restores."""

MOST_STEPS = 100
"""Most changes that can be taken back."""

_KEY, _EXAMPLE = "whatif:history", "whatif:example"


@dataclass
class History:
    """States that were left, the last one last.

    Attributes:
        past: what undo goes back to.
        future: what redo goes forward to.
    """

    past: list[dict[str, Any]] = field(default_factory=list)
    future: list[dict[str, Any]] = field(default_factory=list)

    def leave(self, state: dict[str, Any]) -> None:
        """Notes a state before it is changed."""
        self.past = [*self.past, state][-MOST_STEPS:]
        self.future.clear()

    def undo(self, state: dict[str, Any]) -> dict[str, Any] | None:
        """The state before `state`; None if there is none."""
        return _step(self.past, self.future, state)

    def redo(self, state: dict[str, Any]) -> dict[str, Any] | None:
        """The state after `state`, if it was undone."""
        return _step(self.future, self.past, state)


def _step(taken: list[dict[str, Any]], given: list[dict[str, Any]], state: dict[str, Any]) -> dict[str, Any] | None:
    if not taken:
        return None
    given.append(state)
    return taken.pop()


def history() -> History:
    """The history of this session."""
    history: History = st.session_state.setdefault(_KEY, History())
    return history


def current_edits() -> EditList:
    """The edits of the state, or the example that the page begins with."""
    return EditList(st.session_state.get(_EXAMPLE, ())) if _is_example() else EditList.of(get_view_state()[0])


def _is_example() -> bool:
    """Whether the state has no edits, so that the page shows its example."""
    view = get_view_state()[0]
    return not view.all_edits() and view.off != ALL_OFF


def begin_with(example: tuple[Edit, ...]) -> None:
    """Keeps the edits that the page begins with where the state has none."""
    st.session_state[_EXAMPLE] = example


def change_edits(change: Callable[[EditList], EditList], **also: object) -> None:
    """Changes the edits of the state, which undo can take back; for callbacks.

    Two gestures may come before the page is drawn again: a callback changes what the state holds then, not what the page showed.
    The first edit of one's own replaces the example: with both, the result would be that of neither.

    Args:
        change: the list after the change, of the list before it.
        also: further fields of ViewState to change.
    """
    before = current_edits()
    after = change(before)
    if _is_example() and any(edit not in before.edits for edit in after.edits):
        after = change(EditList())
    if after != before:
        history().leave(_state())
        update(**{**also, **after.fields()})


def undo() -> None:
    """Goes back one change; for callbacks."""
    _go(history().undo(_state()))


def redo() -> None:
    """Makes an undone change again; for callbacks."""
    _go(history().redo(_state()))


def _go(state: dict[str, Any] | None) -> None:
    if state is not None:
        update(**state)


def _state() -> dict[str, Any]:
    view = get_view_state()[0]
    return {name: getattr(view, name) for name in FIELDS}
