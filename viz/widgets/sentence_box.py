"""The sentence box at the top of every page, and the remark that a typed sentence is not what a model reads.

A translation of the wrong language looks confident all the same, so the remark names the model that reads it. A word is unknown to
the network if it got the unknown token for it, or for a part of it. A vocabulary of pieces knows any word, if need be letter by
letter: there a word in several pieces counts as unknown if they have at most LETTERS letters on average. The example sentences of
German → English have 3.3 to 5.2 letters a piece; English read by the same vocabulary has 1.3 to 2.6.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import streamlit as st
from babel import Locale

from model.engine.api import Engine, ModelInfo, Models
from model.trace.types import Trace
from viz.i18n.recognition import recognized
from viz.i18n.translate import _, current, translated
from viz.labels import tokens
from viz.labels import tokens as labels
from viz.session.patient_engine import my_calls
from viz.session.state import Page, bind, get_view_state, update
from viz.url.parsers import turns, written_turns
from viz.url.view_state import ViewState, another_model, new_sentence

LETTERS = 3.0
"""Letters a piece up to which a word was spelled rather than known. Of a sentence in its own language a model knows most words."""

PIECE = "##"
"""Begins a piece that continues a word."""

MOST = 0.5
"""Share of unknown words above which most are."""


@dataclass(frozen=True)
class Finding:
    """What is said of a sentence that does not fit.

    Attributes:
        sentence: in the current language.
        reader: a model that reads the sentence; None: none is known.
    """

    sentence: str
    reader: ModelInfo | None


def finding(info: ModelInfo, trace: Trace, engine: Engine) -> Finding | None:
    """What is to be said of the sentence of a run; None if it fits, or was not typed as words.

    Args:
        engine: asked for models that could read it instead, only if they are needed.
    """
    if info.recorded or info.chats or info.reads != "words" or "source" not in trace.tokens:
        return None
    if not (share := unknown_share(trace)):
        return None
    code = recognized(str(trace.request.get("source") or ""))
    if code and _is_read_by(info, code):
        code = ""
    reader = _reader(info, code, engine.ask(Models()).models) if code else None
    fields = {"language": _name(code), "title": reader.title if reader else "", "own": info.languages.get("source", "")}
    if share > MOST:
        if reader:
            return Finding(_("Most of these words are unknown to this model. “{title}” reads {language}.", **fields), reader)
        if code:
            return Finding(_("Most of these words are unknown to this model, and no model here reads {language}.", **fields), None)
        return Finding(_("Most of these words are unknown to this model."), None)
    if reader is None or not reads_a_language(info):
        return None
    return Finding(_("This looks like {language}, but this model reads {own}. “{title}” reads {language}.", **fields), reader)


def remark_on_language(page: Page) -> None:
    """Says it above a page, with a button that opens the model that reads the sentence."""
    if page.trace.recorded is not None or (language := finding(page.info, page.trace, page.engine)) is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="unfamiliar"):
        st.markdown(f":material/translate: {labels.markdown(language.sentence)}")
        if language.reader is not None:
            asked = another_model() | {"model": language.reader.name, "text": page.view.text}
            words = labels.markdown(_("Open “{title}”", title=language.reader.title))
            st.button(words, key="open-reader", on_click=update, kwargs=asked)


def reads_a_language(info: ModelInfo) -> bool:
    """Whether a model says which language it reads: some read digits, or any words."""
    return info.languages.get("source", "") in {translated(name) for name in Locale("en").languages.values() if name}


def _is_read_by(info: ModelInfo, code: str) -> bool:
    return info.languages.get("source") == translated(Locale("en").languages.get(code, code))


def _reader(info: ModelInfo, code: str, models: Sequence[ModelInfo]) -> ModelInfo | None:
    """A model that reads a language: one that translates, too, before others."""
    fitting = [model for model in models if not model.problem and model.name != info.name and _is_read_by(model, code)]
    return min(fitting, key=lambda model: model.translates != info.translates, default=None)


def _name(code: str) -> str:
    """A language as the titles of models call it; those that no title has, as Babel does, which says 英文 in Taiwan, not 英語."""
    if not code:
        return ""
    english = Locale("en").languages.get(code, code)
    if (ours := translated(english)) != english:
        return ours
    other: str = Locale.parse(current(), sep="-").languages.get(code, code)
    return other


def unknown_share(trace: Trace) -> float:
    """The share of the typed words that are unknown to the network, from 0 to 1; 0 where no word was typed.

    Special tokens and punctuation are no words.
    """
    tokens = trace.tokens["source"]
    generated = "target" not in trace.tokens and trace.steps  # a language model writes on in the strip that it reads
    typed = range(trace.steps[0].computed[1] if generated else len(tokens))
    words: list[list[tuple[str, bool]]] = []  # each as its pieces, with whether they are unknown
    for at in typed:
        if not tokens.special[at] or tokens.unknown[at]:
            piece = tokens.texts[at], tokens.unknown[at]
            if words and piece[0].startswith(PIECE):
                words[-1].append(piece)
            else:
                words.append([piece])
    unknown = []
    for word in words:
        letters = sum(len(text.removeprefix(PIECE)) for text, _unknown in word)
        spelled = len(word) > 1 and letters / len(word) <= LETTERS
        if any(letter.isalnum() for text, _unknown in word for letter in text):
            unknown.append(spelled or any(of_piece for _text, of_piece in word))
    return sum(unknown) / len(unknown) if unknown else 0.0


def sentence_box(info: ModelInfo, beside: Callable[[], None]) -> None:
    """Draws the box, bound to the state's text. A recorded run has none: nothing else can run; nor has a model of images or sounds,
    which has a box of its own (`media_box`).

    Boxes of texts set no limit of their own (`max_chars`): Streamlit then drops what is too long without a word. The engine says
    how much the model reads.

    Args:
        beside: draws what the page adds to its row.
    """
    if info.recorded or info.reads in ("image", "sound"):
        return
    view = get_view_state()[0]
    with st.container(horizontal=True, vertical_alignment="bottom", key="sentence"):
        if not view.chats:  # a conversation has a box of its own, below its turns
            st.text_input(
                _("Input sentence ({language})", language=info.languages.get("source", info.title)),
                label_visibility="collapsed",
                placeholder=_placeholder(info),
                **bind("text", **new_sentence()),
            )
            st.button(_("Run"), icon=":material/keyboard_return:", on_click=my_calls().resume)
        with st.popover(_("Examples"), key="examples", on_change="rerun") as part:
            if part.open:
                _examples(info, view)
        beside()
    if info.reads == "features":
        st.caption(
            _("This model reads vectors instead of words. They are random: the first number is how many, the second is the seed.")
        )


def _examples(info: ModelInfo, view: ViewState) -> None:
    anew = {"chat": written_turns(turn for turn in turns(view.chat) if turn.role == "system")} if view.chats else {}
    for number, (example, shows) in enumerate(zip_longest(info.examples, info.example_labels, fillvalue="")):
        chosen = {"text": example, "target": "", **anew, **new_sentence()}
        words = tokens.markdown(example) + (f" :small[:gray[{tokens.markdown(shows)}]]" if shows else "")
        st.button(words, key=f"example:{number}", on_click=update, kwargs=chosen, type="tertiary")


def _placeholder(info: ModelInfo) -> str:
    match info.reads:
        case "ids":
            return _("This model has no vocabulary: type token ids separated by spaces or commas, and press Enter")
        case "features":
            return _("Type the number of random vectors and a seed, such as 6 0, and press Enter")
    goes_on = _("Type the beginning of a text and press Enter; the model continues it")
    return goes_on if info.continues else _("Type a sentence and press Enter")
