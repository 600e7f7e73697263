"""Examples of a head: the cells with certain words and weights in many texts, and how many chance would give."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from model.features.survey.examples import Examples, Wanted, searched
from model.features.survey.reading import HeadTexts
from viz.features.survey.query_key import NOTHING
from viz.features.survey.selected_head import line, open_button
from viz.i18n.translate import _, number
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import numeric_tables

ROWS = "survey-examples-rows"


def draw(page: Page, read: HeadTexts, parts: Sequence[tuple[Sequence[str], Sequence[str]]]) -> None:
    """Draws what can be looked for, how much of it there is, and the cells with the largest weights."""
    names = sorted({part for parts_of_text in parts for side in parts_of_text for part in side if part and part != "_"})
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
    st.markdown(tokens.markdown(sentence(examples, least)))
    if not examples.examples:
        return
    rows = []
    for example in examples.examples:
        text = read.texts[example.text]
        words = tokens.plain(text.queries.texts[example.query]), tokens.plain(text.keys.texts[example.key])
        rows.append((example.weight, *words, line(read.asked[read.places[example.text]])))
    numeric_tables.draw(
        pd.DataFrame(rows, columns=["weight", "row", "key", "text"]),
        titles={"weight": _("weight"), "row": _("row"), "key": _("key"), "text": _("text")},
        decimals=3,
        hide_index=True,
        key=ROWS,
        on_select="rerun",
        selection_mode="single-row",
    )
    chosen = [row for row in (st.session_state.get(ROWS) or NOTHING)["selection"]["rows"] if row < len(rows)]
    best = examples.examples[chosen[0] if chosen else 0]
    head = read.question.site, read.question.head
    open_button(page, read.asked[read.places[best.text]], head, "survey-examples-open", best.query, read.question.edits)


def _any(part: str) -> str:
    return part or _("any")


def sentence(examples: Examples, least: float) -> str:
    """How many cells there are, and how many chance would give."""
    if not examples.of:
        return _("No row with more than one key has such a cell.")
    fields = {
        "of": examples.of,
        "count": examples.count,
        "least": number(least, ".2f"),
        "texts": examples.texts,
        "uniform": examples.uniform,
    }
    fields |= {
        "dealt": number(examples.dealt, ",.1f"),
        "mean": number(examples.mean, ".3f"),
        "even": number(examples.uniform_mean, ".3f"),
    }
    return _(
        "Cells with these words: {of:,}. With a weight of at least {least}: {count:,} (texts: {texts:,}). By "
        "chance, if the weights of each row were in random order: {dealt}; with equal weights: {uniform:,}. "
        "Mean weight: {mean}; with equal weights: {even}.",
        **fields,
    )
