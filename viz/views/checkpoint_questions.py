"""The questions that a file leaves open, as a form: what is allowed, and what depends on each answer."""

from collections.abc import Sequence

import streamlit as st

from model.engine.base import Engine
from model.engine.files import FILES
from model.errors import HeadlightError, SeveralLayouts
from model.inspection import Asked
from viz import labels
from viz.link_values import settings_text
from viz.links import View
from viz.page import say, update
from viz.sidebar import ANOTHER_MODEL
from viz.texts import _, sentence

_WRONG, _READING = "checkpoint:wrong", "widget:reading-of-file"
_ITSELF = "(the file itself)"
_ENDINGS, _MOST_MEGABYTES = ["txt", "json", "vocab"], 8


def is_open(question: Asked) -> bool:
    """Whether this is still to be told before the model can run."""
    return question.needed and question.answer is None


def show(engine: Engine, model: str, view: View, asked: Sequence[Asked], sent: bool) -> None:
    """Draws the form; a wrong answer is said in a sentence and changes nothing.

    Args:
        sent: the model is a file that somebody sent: its vocabularies can be sent too.
    """
    st.markdown(f"**{_('What the file does not tell')}**")
    st.caption(_("Names and shapes leave this open; nothing is guessed. Answer with the values that the model was trained with."))
    if (wrong := st.session_state.get(_WRONG)) and wrong[:2] == (model, view.settings):
        say(wrong[2])
    askable = [question for question in asked if question.name not in FILES]
    files = [question for question in asked if question.name in FILES]
    with st.form("questions", border=False):
        first = [question for question in askable if is_open(question) or _told(view, question)]
        _fields(model, view, first)
        with st.expander(_("What has a usual answer, or needs none")):
            _fields(model, view, [question for question in askable if question not in first])
        if sent:
            _uploaders(model, view, files)
        taken = (*askable, *files) if sent else askable
        st.form_submit_button(_("Take these answers"), on_click=_take, args=(engine, model, view, taken), key="answers")
    if files and not sent:
        st.caption(
            _("Vocabularies of a file of this server stand in a spec.json beside it, or are given on the command line with --set.")
        )


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
    """One question in people's words; below it its name for the command line, and what depends on it."""
    label = _titles().get(question.name, question.name)
    if question.choices:
        index = question.choices.index(question.answer) if question.answer in question.choices else None
        placeholder = _("choose") if question.needed else _("not told")
        st.selectbox(label, question.choices, index=index, placeholder=placeholder, format_func=labels.plain, key=key)
    else:
        st.text_input(label, question.answer or "", placeholder=question.allowed, key=key)
    st.caption(labels.markdown(f"{question.name}: {question.consequence}"))


def _uploaders(model: str, view: View, files: Sequence[Asked]) -> None:
    """A place for each vocabulary; one that was sent stays until it is left out or another is sent."""
    for column, question in zip(st.columns(2, gap="large"), files, strict=False):
        with column:
            key = _key(view, model, question)
            st.file_uploader(_titles()[question.name], type=_ENDINGS, key=key, max_upload_size=_MOST_MEGABYTES)
            if _told(view, question):
                st.checkbox(_("Leave out the vocabulary that was sent"), key=_without(key))
    if files:
        st.caption(
            _(
                "A vocabulary is a text file with one token a line, a JSON list, a JSON object from token to id, or the "
                "tokenizer.json of a folder of Headlight's own: as many texts as the embedding has rows. Then tokens are shown "
                "as words, and words can be typed."
            )
        )


def _without(key: str) -> str:
    return f"without:{key}"


def _titles() -> dict[str, str]:
    """What the questions are called on screen; one that has no title here goes by its name."""
    return {
        "n_heads": _("Heads"),
        "encoder_heads": _("Heads of the encoder"),
        "decoder_heads": _("Heads of the decoder"),
        "head_dim": _("Width of a head"),
        "norm_order": _("Where the norms stand"),
        "activation": _("Activation"),
        "decoder_passes": _("Passes through the decoder"),
        "pad_id": _("Id of padding"),
        "source_pad_id": _("Id of the source's padding"),
        "target_pad_id": _("Id of the target's padding"),
        "bos_id": _("Id of the start token"),
        "eos_id": _("Id of the end token"),
        "unk_id": _("Id of the unknown token"),
        "embed_scale": _("Scale of the embeddings"),
        "positions": _("Kind of positions"),
        "decode_positions": _("Positions while decoding"),
        "causal": _("Does the mask hide the future?"),
        "source_vocab": _("Vocabulary of the source"),
        "target_vocab": _("Vocabulary of the target"),
        "tokenizer": _("How a typed text is cut"),
        "source_embedding": _("Embedding of the source"),
        "target_embedding": _("Embedding of the target"),
        "output_layer": _("Output layer"),
        "source_positions": _("Positions of the source"),
        "target_positions": _("Positions of the target"),
    }


def _take(engine: Engine, model: str, view: View, questions: Sequence[Asked]) -> None:
    """Makes the answers part of the state if each is allowed."""
    told = dict(view.told())
    try:
        for question in questions:
            given = _given(engine, question, _key(view, model, question))
            if not given:
                told.pop(question.name, None)
            elif given != question.answer:
                told[question.name] = given
        engine.inspect(model, tuple(told.items()))
    except HeadlightError as error:
        st.session_state[_WRONG] = (model, view.settings, sentence(error))
    else:
        st.session_state.pop(_WRONG, None)
        update(**ANOTHER_MODEL | {"model": model, "settings": settings_text(told)})


def _given(engine: Engine, question: Asked, key: str) -> str:
    """What the form says now: what was typed or chosen, or the name of the vocabulary that was sent."""
    if question.name not in FILES:
        return (st.session_state[key] or "").strip()
    if (file := st.session_state[key]) is not None:
        return engine.receive(file.getvalue(), file.name)
    return "" if st.session_state.get(_without(key)) else question.answer or ""
