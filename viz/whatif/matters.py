"""What matters: the part of the page that measures heads, words and edges, one question at a time."""

from collections.abc import Callable

import streamlit as st

from model.errors import HeadlightError
from viz import waiting
from viz.page import Page, card, heading, say
from viz.texts import _, sentence
from viz.whatif import matter_edges, matter_heads, matter_prune, matter_words

_CHOSEN = "matters:chosen"


def draw(page: Page) -> None:
    """Draws the choice of a question and, once one is chosen, its answer. Nothing is measured before."""
    asked: dict[str, tuple[str, Callable[[Page], None]]] = {
        "heads": (_("Heads"), matter_heads.draw),
        "prune": (_("Prune until it breaks"), matter_prune.draw),
        "words": (_("Words"), matter_words.draw),
        "edges": (_("Edges"), matter_edges.draw),
    }
    with card("matters"):
        st.html(
            heading(
                _("What matters?"),
                _("Measured on the run without edits: its output is fed in again, each time without one part of the network."),
            )
        )
        chosen = st.segmented_control(
            _("What is measured"),
            list(asked),
            format_func=lambda name: asked[name][0],
            key=_CHOSEN,
            label_visibility="collapsed",
        )
        if chosen is None:
            return
        try:
            with waiting.shown():
                asked[chosen][1](page)
        except HeadlightError as error:
            say(sentence(error))
