"""The sentence box at the top of every page, with the model's examples. Enter runs the sentence."""

from collections.abc import Callable
from itertools import zip_longest

import streamlit as st

from model.engine.api import ModelInfo
from model.spec.request import allowed_characters
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.patient_engine import my_calls
from viz.session.state import bind, get_view_state, update
from viz.url.view_state import NEW_SENTENCE


def sentence_box(info: ModelInfo, beside: Callable[[], None]) -> None:
    """Draws the box, bound to the state's text. A recorded run has none: nothing else can run.

    Args:
        beside: draws what the page adds to its row.
    """
    if info.recorded:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="sentence"):
        st.text_input(
            _("Input sentence ({language})", language=info.languages.get("source", info.title)),
            label_visibility="collapsed",
            placeholder=_placeholder(info),
            max_chars=most_characters(info.max_source, get_view_state()[0].text or ""),
            **bind("text", **NEW_SENTENCE),
        )
        st.button(_("Run"), icon=":material/keyboard_return:", on_click=my_calls().resume)
        with st.popover(_("Examples"), key="examples", on_change="rerun") as part:
            if part.open:
                _examples(info)
        beside()
    if info.reads == "features":
        st.caption(
            _("This model reads vectors instead of words. They are random: the first number is how many, the second is the seed.")
        )


def most_characters(positions: int, shown: str) -> int:
    """Character limit of the box for a model with so many positions. A longer text from a link is still shown whole."""
    return max(allowed_characters(positions), len(shown))


def _examples(info: ModelInfo) -> None:
    for number, (example, shows) in enumerate(zip_longest(info.examples, info.example_labels, fillvalue="")):
        chosen = {"text": example, "target": "", **NEW_SENTENCE}
        words = tokens.markdown(example) + (f" :small[:gray[{tokens.markdown(shows)}]]" if shows else "")
        st.button(words, key=f"example:{number}", on_click=update, kwargs=chosen, type="tertiary")


def _placeholder(info: ModelInfo) -> str:
    goes_on = _("Type the beginning of a text and press Enter; the model continues it")
    words = goes_on if info.continues else _("Type a sentence and press Enter")
    return {
        "words": words,
        "ids": _("This model has no vocabulary: type token ids separated by spaces or commas, and press Enter"),
        "features": _("Type the number of random vectors and a seed, such as 6 0, and press Enter"),
    }[info.reads]
