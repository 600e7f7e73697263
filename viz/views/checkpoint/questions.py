"""Form with the open questions of a file: the allowed answers, and what depends on each."""

from collections.abc import Iterator, Sequence
from functools import partial

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from model.engine.api import Engine, Inspect
from model.engine.sent_files import FILE_SETTINGS
from model.errors import HeadlightError, SeveralLayouts
from model.inspection.report import Asked
from viz.i18n.translate import _, error_message, said
from viz.labels import tokens
from viz.session.state import update
from viz.url.parsers import settings_text
from viz.url.view_state import ViewState, another_model
from viz.views.checkpoint import diagnosis, vocabulary
from viz.widgets.cards import card, say

_WRONG, _READING, _OPENED = "checkpoint:wrong", "widget:reading-of-file", "checkpoint:opened"
_ITSELF = "(the file itself)"


def is_open(question: Asked) -> bool:
    """Whether the model cannot run before this is answered."""
    return question.needed and question.answer is None


def show(engine: Engine, model: str, view: ViewState, asked: Sequence[Asked], explore: StreamlitPage | None = None) -> None:
    """Draws the form. A wrong answer shows a sentence and changes nothing.

    Args:
        explore: the page to open once all questions are answered; None if the form is on that page.
    """
    st.markdown("**" + _("What the file does not say") + "**")
    st.caption(
        _(
            "Names and shapes do not determine these settings, and Headlight does not guess. Enter the values the model was "
            "trained with."
        )
    )
    files = [question for question in asked if question.name in FILE_SETTINGS]
    others = [question for question in asked if question.name not in FILE_SETTINGS]
    if files:
        vocabulary.ask_for(engine, model)
        vocabulary.say_what_is_unclear(view, files)
    if (wrong := st.session_state.get(_WRONG)) and wrong[:2] == (model, view.settings):
        say(wrong[2])
    with st.form("questions", border=False):
        _files(model, view, files)
        _fields(model, view, first := [question for question in others if is_open(question) or _is_answered(view, question)])
        _fields(model, view, [question for question in others if question.answer is None and question not in first])
        if usual := [question for question in others if question.answer is not None and question not in first]:
            with st.expander(_("Settings with a usual value")):
                _fields(model, view, usual)
        for name, opens, key in _buttons(explore):
            st.form_submit_button(name, on_click=_take, args=(engine, model, view, asked, opens), key=key)
    if explore is not None and st.session_state.pop(_OPENED, False):
        st.switch_page(explore)


def ask_here(engine: Engine, view: ViewState) -> None:
    """Draws the form on a page that needs the answers before it can draw the model of `view`."""
    with card("questions", "content"):
        try:
            inspection = engine.ask(Inspect(view.model, view.parsed_settings()))
        except HeadlightError as error:
            say(error_message(error))
            return
        st.markdown(f"**{tokens.markdown(diagnosis.what(inspection))}**")
        show(engine, view.model, view, inspection.ask)


def _buttons(explore: StreamlitPage | None) -> Iterator[tuple[str, bool, str]]:
    """The buttons of the form: label, whether it opens Explore, and key."""
    if explore is not None:
        yield _("Apply these answers and open in Explore"), True, "answers-open"
    yield _("Apply these answers"), False, "answers"


def choose_reading(error: SeveralLayouts, view: ViewState) -> None:
    """Draws the choice between the layouts that fit a file."""
    setting, readings = str(error.fields["setting"]), str(error.fields["there"]).split(", ")
    st.selectbox(
        _("Read as"), readings, format_func=tokens.plain, index=None, key=_READING, on_change=_read_as, args=(view, setting)
    )


def _read_as(view: ViewState, setting: str) -> None:
    if (chosen := st.session_state[_READING]) is not None:
        settings = dict(view.parsed_settings()) | {setting: "" if chosen == _ITSELF else chosen}
        update(settings=settings_text(settings))


def _is_answered(view: ViewState, question: Asked) -> bool:
    return question.name in dict(view.parsed_settings())


def _key(view: ViewState, model: str, question: Asked) -> str:
    """Widget key per state of the answers, so that a field starts with the known answer and keeps what is being typed.

    A vocabulary uploaded meanwhile does not change the other fields' keys.
    """
    settings = (
        view.parsed_settings()
        if question.name in FILE_SETTINGS
        else [pair for pair in view.parsed_settings() if pair[0] not in FILE_SETTINGS]
    )
    return f"answer:{model}:{settings_text(dict(settings))}:{question.name}"


def _fields(model: str, view: ViewState, questions: Sequence[Asked]) -> None:
    for start in range(0, len(questions), 2):
        for column, question in zip(st.columns(2, gap="large"), questions[start : start + 2], strict=False):
            with column:
                _field(question, _key(view, model, question))


def _field(question: Asked, key: str) -> None:
    """Draws one question with its title, its name on the command line, and what depends on it."""
    label = _titles().get(question.name, question.name)
    if question.choices:
        index = question.choices.index(question.answer) if question.answer in question.choices else None
        placeholder = _("choose …") if question.needed else _("not specified")
        st.selectbox(label, question.choices, index=index, placeholder=placeholder, format_func=tokens.plain, key=key)
    else:
        st.text_input(label, question.answer or "", placeholder=said(question.allowed), key=key)
    st.caption(tokens.markdown(_("{name}: {value}", name=question.name, value=said(question.consequence))))
    if question.proposal and not question.answer:
        st.button(
            _("Use {name}", name=tokens.markdown(question.proposal)),
            icon=":material/check:",
            key=f"{key}:proposal",
            help=_("It is the only tensor of its kind in this file. The file does not say whether it is used here."),
            on_click=partial(st.session_state.__setitem__, key, question.proposal),
        )
    if question.origin:
        st.caption(tokens.markdown(_("The answer comes from: {origin}.", origin=said(question.origin))))


def _files(model: str, view: ViewState, files: Sequence[Asked]) -> None:
    for column, question in zip(st.columns(2, gap="large"), files, strict=False):
        with column:
            vocabulary.field(_titles()[question.name], question, _key(view, model, question))


def _titles() -> dict[str, str]:
    """Titles of the questions; a question without one is shown by its name."""
    return {
        "n_heads": _("Number of heads"),
        "key_heads": _("Number of key and value heads"),
        "rotary_base": _("Base of rotary positions"),
        "variant": _("Options that the file does not show"),
        "norm_epsilon": _("ε of the normalization"),
        "max_positions": _("Longest input"),
        "encoder_heads": _("Number of encoder heads"),
        "decoder_heads": _("Number of decoder heads"),
        "head_dim": _("Head dimension"),
        "norm": _("Kind of normalization"),
        "norm_order": _("Position of the normalization (pre- or post-norm)"),
        "activation": _("Activation"),
        "decoder_passes": _("Number of passes through the decoder"),
        "pad_id": _("Padding id"),
        "source_pad_id": _("Source padding id"),
        "target_pad_id": _("Target padding id"),
        "bos_id": _("Start token id"),
        "eos_id": _("End token id"),
        "unk_id": _("Unknown token id"),
        "embed_scale": _("Embedding scale"),
        "positions": _("Type of positional encoding"),
        "decode_positions": _("Positions during decoding"),
        "causal": _("Does the mask hide the future?"),
        "source_vocab": _("Source vocabulary"),
        "target_vocab": _("Target vocabulary"),
        "tokenizer": _("How typed text is tokenized"),
        "source_embedding": _("Source embedding"),
        "target_embedding": _("Target embedding"),
        "output_layer": _("Output layer"),
        "source_positions": _("Positions of the source"),
        "target_positions": _("Positions of the target"),
    }


def _take(engine: Engine, model: str, view: ViewState, questions: Sequence[Asked], opens: bool) -> None:
    """Stores the answers in the state if all are allowed; `opens`: opens Explore if no question is left."""
    settings = dict(view.parsed_settings())
    for question in questions:
        given = (st.session_state[_key(view, model, question)] or "").strip()
        if not given:
            settings.pop(question.name, None)
        elif given != question.answer:
            settings[question.name] = given
    try:
        inspection = engine.ask(Inspect(model, tuple(settings.items())))
    except HeadlightError as error:
        st.session_state[_WRONG] = (model, view.settings, error_message(error))
    else:
        st.session_state.pop(_WRONG, None)
        st.session_state[_OPENED] = opens and not any(map(is_open, inspection.ask))
        update(**another_model() | {"model": model, "settings": settings_text(settings)})
