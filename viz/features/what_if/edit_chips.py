"""The edits as chips: each can be switched off and on, moved and removed; undo, redo, and experiments in one click."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from model.requests.edits import Edit
from viz.features.what_if import examples
from viz.features.what_if.conflicts import overruled
from viz.features.what_if.edit_list import EditList
from viz.features.what_if.examples import Experiment
from viz.features.what_if.undo import change_edits, history, redo, undo
from viz.i18n.translate import _
from viz.labels import tokens
from viz.labels.edits import words
from viz.session.state import Page


def draw(page: Page, edits: EditList) -> None:
    """Draws a line for each edit."""
    with st.container(key="edits", gap="small"):
        opposed = overruled(edits, page.trace)
        for index in range(len(edits.edits)):
            _chip(page, edits, index, opposed.get(index))
        if not edits.edits:
            st.caption(_("No edit yet: hide a token, drag over cells of a head, or choose an experiment."))


def buttons(page: Page, edits: EditList) -> None:
    """Draws the experiments, and the buttons for undo, redo and removing all edits."""
    _experiments(page)
    _button(_("Undo"), "undo", undo, bool(history().past), "Mod+Z")
    _button(_("Redo"), "redo", redo, bool(history().future), "Mod+Shift+Z")
    if len(edits.edits) > 1:
        _button(_("Remove all"), "delete_sweep", partial(change_edits, lambda _edits: EditList()), True)


def _chip(page: Page, edits: EditList, index: int, later: int | None) -> None:
    """One edit: a switch with its words, and buttons. The key holds the place, so that keyboard focus stays in the line.

    Args:
        later: the place of a later edit that says the opposite; None: there is none.
    """
    edit = edits.edits[index]
    words_ = words(edit, page.trace.tokens)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"edit-{index}"):
        key = f"edit-on-{index}"
        st.session_state[key] = index not in edits.off
        st.checkbox(tokens.markdown(words_), key=key, on_change=_switch, args=(key, index, edit))
        if later is not None:
            wins = words(edits.edits[later], page.trace.tokens)
            st.caption(tokens.markdown(_("Where two edits contradict each other, the later one wins: {edit}", edit=wins)))
        if len(edits.edits) > 1:
            up, down = _("Apply earlier: {edit}", edit=words_), _("Apply later: {edit}", edit=words_)
            _small(f"up-{index}", "arrow_upward", up, partial(_move, index, edit, -1), index > 0)
            _small(f"down-{index}", "arrow_downward", down, partial(_move, index, edit, 1), index < len(edits.edits) - 1)
        _small(f"remove-{index}", "close", _("Remove: {edit}", edit=words_), partial(_remove, index, edit), True)


def _small(key: str, icon: str, help_: str, act: Callable[[], None], enabled: bool) -> None:
    st.button(
        "", key=f"edit-{key}", icon=f":material/{icon}:", help=tokens.markdown(help_), type="tertiary",
        on_click=act, disabled=not enabled,
    )  # fmt: skip


def _switch(key: str, index: int, edit: Edit) -> None:
    on = st.session_state[key]
    change_edits(lambda edits: edits.switched(index, on) if edits.has(index, edit) else edits)


def _move(index: int, edit: Edit, by: int) -> None:
    change_edits(lambda edits: edits.moved(index, by) if edits.has(index, edit) else edits)


def _remove(index: int, edit: Edit) -> None:
    change_edits(lambda edits: edits.without(index) if edits.has(index, edit) else edits)


def _button(label: str, icon: str, act: Callable[[], None], enabled: bool, shortcut: str | None = None) -> None:
    st.button(
        label, key=f"edits-{icon}", icon=f":material/{icon}:", on_click=act, disabled=not enabled, shortcut=shortcut,
    )  # fmt: skip


def _experiments(page: Page) -> None:
    with st.popover(_("Experiments"), icon=":material/science:", key="experiments", on_change="rerun") as part:
        if not part.open:
            return
        st.caption(_("With this sentence"))
        _offer(examples.of_any(page), "any")
        if of_model := examples.of_model(page.info.name):
            st.caption(_("With the experiment’s sentence"))
            _offer(of_model, "own")


def _offer(offered: tuple[Experiment, ...], name: str) -> None:
    with st.container(gap=None):
        for number, experiment in enumerate(offered):
            st.button(
                tokens.markdown(experiment.title),
                key=f"experiment:{name}:{number}",
                help=tokens.markdown(experiment.text) or None,
                type="tertiary",
                on_click=_try,
                args=(experiment,),
            )


def _try(chosen: Experiment) -> None:
    change_edits(lambda _edits: EditList(chosen.edits), **chosen.fields())
