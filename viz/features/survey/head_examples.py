"""Examples of a head: the cells with certain words and weights in many texts, and how many chance would give."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from model.features.survey.examples import Wanted, searched
from model.features.survey.reading import HeadTexts
from viz.features.survey import plane_panels as panels
from viz.features.survey.query_key import NOTHING
from viz.features.survey.selected_head import open_button
from viz.i18n.translate import _
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import drawn_panels

ROWS = "survey-examples-rows"


def draw(page: Page, read: HeadTexts, parts: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Draws what can be looked for, how much of it there is, and the cells with the largest weights."""
    names = sorted({part for sides in parts for side in sides for part in side if part and part != "_"})
    with st.container(horizontal=True, vertical_alignment="bottom", key="survey-examples-form"):
        query = st.text_input(_("Word of the row (empty: any)"), key="survey-examples-query")
        key = st.text_input(_("Word of the key (empty: any)"), key="survey-examples-key")
        query_part, key_part = "", ""
        if names:
            choices = ["", *names]
            query_part = st.selectbox(_("Part of speech of the row"), choices, format_func=_any, key="survey-examples-query-part")
            key_part = st.selectbox(_("Part of speech of the key"), choices, format_func=_any, key="survey-examples-key-part")
        least = st.number_input(_("Weight at least"), 0.0, 1.0, 0.3, 0.05, key="survey-examples-least")
    examples = searched(read.texts, Wanted(query, key, query_part, key_part, least), parts)
    st.markdown(tokens.markdown(panels.about_examples(examples, least)))
    if not examples.examples:
        return
    options: dict[str, Any] = {"on_select": "rerun", "selection_mode": "single-row"}
    drawn_panels.draw_content(page, panels.of_examples(read, examples), ROWS, **options)
    chosen = [row for row in (st.session_state.get(ROWS) or NOTHING)["selection"]["rows"] if row < len(examples.examples)]
    best = examples.examples[chosen[0] if chosen else 0]
    head = read.question.site, read.question.head
    open_button(page, read.asked[read.places[best.text]], head, "survey-examples-open", best.query, read.question.edits)


def _any(part: str) -> str:
    return part or _("any")
