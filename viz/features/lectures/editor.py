"""Writing a lecture in the app: any view is added to a draft; the page Lecture edits its steps and saves the file."""

import os
from dataclasses import replace
from pathlib import Path

import streamlit as st

from model.errors import BadLecture
from model.requests.snapshots import without_step
from viz.features.lectures.script import draft as drafts
from viz.features.lectures.script import library
from viz.features.lectures.script.draft import Draft
from viz.i18n import translate
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session.access import is_owner
from viz.session.state import get_view_state

_DRAFT, _NAME, _STEP = "lecture-draft", "lecture-name", "lecture-step"
_TEXT, _FRONT, _TYPED_NAME = "widget:lecture-text", "widget:lecture-front", "widget:lecture-name"
"""Keys of boxes: their contents are lost when another page is opened, so they are filled from the draft each time."""


LONGEST_STEP = 20_000
"""Most characters of a step that is edited here."""


def add(page: str) -> None:
    """Adds the present view to the draft; a callback. `page`: its URL path."""
    view = get_view_state()[0]
    model = without_step(view.model)[0]
    draft = _draft() or drafts.begin(_("My lecture"), translate.current(), model)
    step = drafts.step_of(page, view, view.text or view.model, _("What should students notice?"))
    _keep(draft.added(step, model), len(draft.steps))
    st.toast(_("Step {number} of your lecture. Edit it and save the file on the Lecture page.", number=len(draft.steps) + 1))


def _draft() -> Draft | None:
    draft: Draft | None = st.session_state.get(_DRAFT)
    return draft


def _keep(draft: Draft, number: int) -> None:
    """Stores the draft, and shows one of its steps in the editor."""
    st.session_state[_DRAFT] = draft
    st.session_state[_STEP] = min(max(number, 0), max(len(draft.steps) - 1, 0))


def draw() -> None:
    """Draws the editor on the page Lecture."""
    st.markdown("### " + _("Write a lecture"))
    draft = _draft()
    if draft is None:
        st.caption(_("To start one, click “Add this view to a lecture” in the sidebar of any page. Or start from a copy:"))
        _copies()
        return
    number = st.session_state[_STEP]
    st.session_state[_FRONT] = draft.front
    st.text_area(_("Title, language, minutes and models"), key=_FRONT, height=136, max_chars=2_000, on_change=_changed)
    if draft.steps:
        _step(draft, number)
    _problems(draft)
    _save(draft)


def _copies() -> None:
    """Draws a button for each lecture, which begins a draft with a copy of it."""
    with st.container(horizontal=True, key="lecture-copies"):
        for name, path in library.files().items():
            st.button(name, icon=":material/content_copy:", key=f"copy-{name}", on_click=_copy, args=(name, path))


def _copy(name: str, path: Path) -> None:
    try:
        _keep(drafts.parts_of(library.text_of(path)), 0)
    except BadLecture as error:
        st.toast(tokens.markdown(error_message(error)))
        return
    st.session_state[_NAME] = name.rpartition(".")[0] or name


def _changed() -> None:
    """Takes over what was typed."""
    draft = _draft()
    assert draft is not None
    number = st.session_state[_STEP]
    typed = replace(draft, front=st.session_state[_FRONT])
    st.session_state[_DRAFT] = typed.replaced(number, st.session_state[_TEXT]) if draft.steps else typed


def _step(draft: Draft, number: int) -> None:
    """Draws one step: which one it is, its text, and buttons that move it."""

    def choose() -> None:
        _keep(draft, st.session_state["widget:lecture-step"])

    st.session_state["widget:lecture-step"] = number
    st.selectbox(
        _("Step"),
        range(len(draft.steps)),
        format_func=lambda index: f"{index + 1}. {_heading(draft.steps[index])}",
        key="widget:lecture-step",
        on_change=choose,
    )
    st.session_state[_TEXT] = draft.steps[number]
    st.text_area(
        _("Text of the step (format: docs/lectures.md)"), key=_TEXT, height=320, max_chars=LONGEST_STEP, on_change=_changed
    )
    with st.container(horizontal=True, key="lecture-step-buttons"):
        for label, icon, key, changed, target in (
            (_("Move up"), "arrow_upward", "lecture-earlier", draft.moved(number, -1), number - 1),
            (_("Move down"), "arrow_downward", "lecture-later", draft.moved(number, 1), number + 1),
            (_("Remove"), "delete", "lecture-remove", draft.without(number), number),
        ):
            st.button(label, icon=f":material/{icon}:", key=key, on_click=_keep, args=(changed, target))


def _heading(step: str) -> str:
    """The first line of a step, without the marks of a heading."""
    title = next((line.lstrip("# ") for line in step.split("\n") if line.strip()), "")[:60]
    return " ".join(map(tokens.plain, title.split(" ")))


def _problems(draft: Draft) -> None:
    """Says what cannot be read. Claims are not run here."""
    if not draft.steps:
        return
    try:
        problems = draft.lecture("draft").problems
    except BadLecture as error:
        st.warning(tokens.markdown(error_message(error)), icon=":material/info:")
        return
    for problem in problems[:5]:
        fields = {"line": problem.line, "sentence": problem.sentence}
        st.warning(tokens.markdown(_("Line {line}: {sentence}", **fields)), icon=":material/info:")
    st.caption(
        tokens.markdown(_("Claims (expect:) are checked by the command {command}.", command="python -m model lecture check FILE"))
    )


def _save(draft: Draft) -> None:
    """Draws the name of the file and the buttons that save it and end the draft."""
    st.session_state[_TYPED_NAME] = st.session_state.get(_NAME, "my-lecture")
    name = st.text_input(_("File name"), key=_TYPED_NAME, max_chars=60, on_change=_rename)
    file = f"{name}.{_language(draft)}"
    if not library.is_name(file):
        st.caption(_("A name consists of letters, digits, - and _."))
        return
    with st.container(horizontal=True, key="lecture-save"):
        st.download_button(
            _("Save as {file}", file=f"{file}.md"),
            draft.text.encode(),
            f"{file}.md",
            "text/markdown",
            icon=":material/download:",
            on_click="ignore",
            key="lecture-download",
        )
        if (folder := os.environ.get(library.VARIABLE)) and is_owner():
            into = Path(folder) / f"{file}.md"
            st.button(
                _("Save to the lectures folder"),
                icon=":material/save:",
                key="lecture-write",
                on_click=_write,
                args=(into, draft.text),
            )
        st.button(_("Discard this draft"), icon=":material/close:", key="lecture-discard", on_click=_discard)


def _rename() -> None:
    st.session_state[_NAME] = st.session_state[_TYPED_NAME]


def _language(draft: Draft) -> str:
    """The language code of the front matter."""
    languages = (line.partition(":")[2].strip() for line in draft.front.split("\n") if line.partition(":")[0].strip() == "language")
    return next(languages, "en")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        st.toast(tokens.markdown(_("The file could not be written: {reason}", reason=error.strerror or str(error))))
        return
    st.toast(tokens.markdown(_("Saved: {file}", file=path.name)))


def _discard() -> None:
    for key in (_DRAFT, _NAME, _STEP):
        st.session_state.pop(key, None)
