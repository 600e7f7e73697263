"""What matters: the part of the page that measures heads, words and edges, one question at a time."""

from collections.abc import Callable

import streamlit as st

from model.errors import HeadlightError
from viz.features.what_if import importance_edges, importance_heads, importance_pruning, importance_words
from viz.i18n.translate import _, error_message
from viz.session import patient_engine
from viz.session.state import Page
from viz.widgets.cards import card, heading, say

_CHOSEN = "matters:chosen"


def draw(page: Page) -> None:
    """Draws the choice of a question and, once one is chosen, its answer. Nothing is measured before."""
    asked: dict[str, tuple[str, Callable[[Page], None]]] = {
        "heads": (_("Heads"), importance_heads.draw),
        "prune": (_("Prune until it breaks"), importance_pruning.draw),
        "words": (_("Words"), importance_words.draw),
        "edges": (_("Edges"), importance_edges.draw),
    }
    writes = page.info.writes
    with card("matters"):
        st.html(
            heading(
                _("What matters?"),
                _("Measured on the run without edits: its output is fed in again, each time without one part of the network.")
                if writes
                else _("This model generates nothing, so there is no output whose probability could change."),
            )
        )
        if not writes:
            return
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
            with patient_engine.show_pending():
                asked[chosen][1](page)
        except HeadlightError as error:
            say(error_message(error))
