"""The questions that a file leaves open, as a form: what is allowed, and what depends on each answer."""

from collections.abc import Sequence

import streamlit as st

from model.engine.base import Engine
from model.errors import HeadlightError, SeveralLayouts
from model.inspection import Asked
from viz import labels
from viz.links import FILES, View, settings_text
from viz.page import say, update
from viz.sidebar import ANOTHER_MODEL
from viz.texts import _, sentence

_WRONG, _READING = "checkpoint:wrong", "widget:reading-of-file"
_ITSELF = "(the file itself)"


def is_open(question: Asked) -> bool:
    """Whether this is still to be told before the model can run."""
    return question.needed and question.answer is None


def show(engine: Engine, model: str, view: View, asked: Sequence[Asked]) -> None:
    """Draws the form; a wrong answer is said in a sentence and changes nothing."""
    st.markdown(f"**{_('What the file does not tell')}**")
    st.caption(_("Names and shapes leave this open; nothing is guessed. Answer with the values that the model was trained with."))
    if (wrong := st.session_state.get(_WRONG)) and wrong[:2] == (model, view.settings):
        say(wrong[2])
    askable = [question for question in asked if question.name not in FILES]
    with st.form("questions", border=False):
        first = [question for question in askable if is_open(question) or _told(view, question)]
        _fields(model, view, first)
        with st.expander(_("What has a usual answer, or none")):
            _fields(model, view, [question for question in askable if question not in first])
        st.form_submit_button(_("Take these answers"), on_click=_take, args=(engine, model, view, askable), key="answers")
    if len(askable) < len(asked):
        st.caption(_("Vocabularies are files, which this page does not take: give them on the command line with --set."))


def choose_reading(error: SeveralLayouts, view: View) -> None:
    """Where a file can be read in several ways: which one."""
    setting, there = str(error.fields["setting"]), str(error.fields["there"]).split(", ")
    st.selectbox(
        _("Read it as"), there, format_func=labels.plain, index=None, key=_READING, on_change=_read_as, args=(view, setting)
    )


def _read_as(view: View, setting: str) -> None:
    if (chosen := st.session_state[_READING]) is not None:
        told = dict(view.told()) | {setting: "" if chosen == _ITSELF else chosen}
        update(settings=settings_text(told))


def _told(view: View, question: Asked) -> bool:
    return question.name in dict(view.told())


def _key(view: View, model: str, question: Asked) -> str:
    """A field of its own for each state of the answers, so that it starts with what was told and keeps what is being typed."""
    return f"answer:{model}:{view.settings}:{question.name}"


def _fields(model: str, view: View, questions: Sequence[Asked]) -> None:
    for start in range(0, len(questions), 2):
        for column, question in zip(st.columns(2, gap="large"), questions[start : start + 2], strict=False):
            with column:
                _field(question, _key(view, model, question))


def _field(question: Asked, key: str) -> None:
    label = _("{name}, needed", name=question.name) if question.needed else _("{name}, if you know it", name=question.name)
    if question.choices:
        index = question.choices.index(question.answer) if question.answer in question.choices else None
        st.selectbox(label, question.choices, index=index, placeholder=_("choose"), key=key)
    else:
        st.text_input(label, question.answer or "", placeholder=question.allowed, key=key)
    st.caption(labels.markdown(question.consequence))


def _take(engine: Engine, model: str, view: View, questions: Sequence[Asked]) -> None:
    """Makes the answers part of the state if each is allowed."""
    told = dict(view.told())
    for question in questions:
        typed = (st.session_state[_key(view, model, question)] or "").strip()
        if not typed:
            told.pop(question.name, None)
        elif typed != question.answer:
            told[question.name] = typed
    try:
        engine.inspect(model, tuple(told.items()))
    except HeadlightError as error:
        st.session_state[_WRONG] = (model, view.settings, sentence(error))
    else:
        st.session_state.pop(_WRONG, None)
        update(**ANOTHER_MODEL | {"model": model, "settings": settings_text(told)})
