"""Vocabularies on the page Checkpoint: the session's vocabulary files, and their assignment to the model's source and target."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from model.engine.api import Engine, Inspect, Receive
from model.engine.sent_files import FILE_SETTINGS, VOCABULARY_ENDINGS, VOCABULARY_PREFIX, sent_names
from model.errors import HeadlightError
from model.inspection.report import Asked
from viz.i18n.translate import _, error_message, join_list
from viz.labels import tokens
from viz.session import access
from viz.session.state import get_view_state, the_engine, update
from viz.url.parsers import settings_text
from viz.url.view_state import ViewState, another_model
from viz.widgets.cards import say
from viz.widgets.upload_limit import watch

MOST_MEGABYTES = 8
"""Size limit of an uploaded vocabulary."""

_GIVEN, _MOST_GIVEN = "checkpoint:words", 16
_SENT, _PATH, _ROUND, _WRONG = "widget:words", "widget:words-path", "checkpoint:words-round", "checkpoint:words-wrong"
_NONE = ""
_VOCABULARY, _MERGES = "vocab.json", "merges.txt"
_PICKLES = (".pt", ".pth", ".pkl", ".pickle")
"""Endings of files that may hold a pickled vocabulary: the engine looks into them."""
_TELLS = {
    "source_vocab": {"src", "source", "input", "encoder"},
    "target_vocab": {"trg", "tgt", "target", "output", "decoder"},
}
"""Words in a file's name that tell which vocabulary it is. A language does not: "de" may be source or target."""


def given() -> Mapping[str, str]:
    """File names of this session's vocabularies, by the engine's names."""
    given: dict[str, str] = st.session_state.setdefault(_GIVEN, {})
    return given


def offer(engine: Engine, model: str, words: Mapping[str, str]) -> None:
    """Adds vocabularies to the session and assigns those whose place is certain; the form asks for the others.

    Args:
        words: file names, by the engine's names.
    """
    st.session_state.pop(_WRONG, None)
    kept = in_pairs({**given(), **words})
    words = {sent_name: name for sent_name, name in kept.items() if set(sent_names(sent_name)) & words.keys()}
    st.session_state[_GIVEN] = dict(list(kept.items())[-_MOST_GIVEN:])
    view = get_view_state()[0]
    settings = dict(view.parsed_settings()) if view.model == model else {}
    try:
        asked = [
            question.name for question in engine.ask(Inspect(model, tuple(settings.items()))).ask if question.name in FILE_SETTINGS
        ]
    except HeadlightError:  # the page shows the reason
        return
    if places := places_of(words, asked):
        try:
            engine.ask(Inspect(model, tuple((settings | places).items())))
        except HeadlightError as error:
            st.session_state[_WRONG] = error_message(error)
        else:
            update(**another_model() | {"model": model, "settings": settings_text(settings | places)})


def in_pairs(words: Mapping[str, str]) -> dict[str, str]:
    """The vocabularies, each `vocab.json` with its `merges.txt` as one; before these names, both may have a name in common.

    Args:
        words: as for `offer`.
    """
    sent_files = dict(words)
    for joins, joins_name in words.items():
        for sent_name, name in words.items():
            if joins_name.endswith(_MERGES) and name == f"{joins_name.removesuffix(_MERGES)}{_VOCABULARY}":
                sent_files |= {f"{sent_name},{joins}": f"{name} + {joins_name}"}
                sent_files.pop(sent_name, None)
                sent_files.pop(joins, None)
    return sent_files


def places_of(words: Mapping[str, str], asked: Sequence[str]) -> dict[str, str]:
    """The vocabularies whose place is certain: by their file name, or because one is given and one is asked for.

    Args:
        words: as for `offer`.
        asked: the settings that take a vocabulary.

    Returns:
        The engine's names, by setting.
    """
    if len(asked) == len(words) == 1:
        return dict(zip(asked, words, strict=True))
    by_setting: dict[str, list[str]] = {}
    for sent_name, name in words.items():
        parts = set(re.split(r"[^a-z]+", name.lower()))
        telling = [setting for setting in asked if parts & _TELLS.get(setting, set())]
        if len(telling) == 1:
            by_setting.setdefault(telling[0], []).append(sent_name)
    return {setting: those[0] for setting, those in by_setting.items() if len(those) == 1}


def ask_for(engine: Engine, model: str) -> None:
    """Draws the inputs for vocabularies; they take several at once."""
    if wrong := st.session_state.get(_WRONG):
        say(wrong)
    st.file_uploader(
        _("Vocabularies (one or several files)"),
        accept_multiple_files=True,
        key=f"{_SENT}:{st.session_state.get(_ROUND, 0)}",
        max_upload_size=MOST_MEGABYTES,
        on_change=_receive,
        args=(engine, model),
    )
    if access.is_owner():
        st.text_input(_("Or the path of a vocabulary on this machine"), key=_PATH, on_change=_open_path, args=(engine, model))
    st.caption(
        _(
            "A vocabulary is a text file with one token per line, a JSON list or object (itos or stoi, for one or "
            "both languages), a SentencePiece model or a tokenizer.json. It needs one entry per embedding row. "
            "Tokens are then shown as words, and you can type words."
        )
    )
    watch("questions", MOST_MEGABYTES, _refuse_too_large)


def say_what_is_unclear(view: ViewState, questions: Sequence[Asked]) -> None:
    """Says which vocabularies are not assigned yet, if the model still lacks one."""
    settings = dict(view.parsed_settings())
    names = [name for sent_name, name in given().items() if sent_name not in settings.values()]
    if names and any(question.answer is None for question in questions):
        text = _("These file names do not say which vocabulary they contain, so choose below: {names}.", names=join_list(names))
        st.info(tokens.markdown(text), icon=":material/help:")


def field(title: str, question: Asked, key: str) -> None:
    """Draws the choice among this session's vocabularies for one setting of the model."""
    names = dict(given())
    none = _("none: tokens are shown as numbers")
    choices = [*dict.fromkeys([*names, question.answer]), _NONE] if question.answer else [*names]
    index = choices.index(question.answer) if question.answer else None

    def called(sent_name: str) -> str:
        return none if sent_name == _NONE else tokens.plain(names.get(sent_name, Path(sent_name).name))

    st.selectbox(title, choices, index=index, placeholder=_("choose …") if names else none, format_func=called, key=key)


def _receive(engine: Engine, model: str) -> None:
    files = st.session_state[f"{_SENT}:{st.session_state.get(_ROUND, 0)}"]
    if _are_words([file.name for file in files], (*VOCABULARY_ENDINGS, *_PICKLES)):
        _try(engine, model, lambda: {engine.ask(Receive(file.getvalue(), file.name)): file.name for file in files})
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1


def _open_path(engine: Engine, model: str) -> None:
    if typed := str(st.session_state[_PATH]).strip().strip("\"'"):
        path = Path(typed).expanduser()
        if _are_words([path.name]):
            _try(engine, model, lambda: {the_engine().open_path(path): path.name})


def _try(engine: Engine, model: str, take: Callable[[], Mapping[str, str]]) -> None:
    try:
        taken = take()
        if other := next((name for sent_name, name in taken.items() if not sent_name.startswith(VOCABULARY_PREFIX)), None):
            st.session_state[_WRONG] = _("No vocabulary was found in {name}.", name=other)
        else:
            offer(engine, model, taken)
    except HeadlightError as error:
        st.session_state[_WRONG] = error_message(error)


def _are_words(names: Sequence[str], endings: Sequence[str] = VOCABULARY_ENDINGS) -> bool:
    """Whether all files have one of these endings; says so if one has not."""
    other = next((name for name in names if Path(name).suffix.lower() not in endings), None)
    if other is not None:
        st.session_state[_WRONG] = _(
            "{name} is not a vocabulary file: the name of one ends in {endings}.", name=other, endings=join_list(endings)
        )
    return other is None


def _refuse_too_large(name: str, megabytes: float) -> None:
    fields = {"name": name, "size": megabytes, "most": MOST_MEGABYTES}
    st.session_state[_WRONG] = _("{name} is {size:,.0f} MB, but a vocabulary may be at most {most} MB.", **fields)
    st.session_state[_ROUND] = st.session_state.get(_ROUND, 0) + 1
