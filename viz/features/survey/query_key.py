"""The queries and keys of a head in a plane, colored as asked; the sentences of those that are selected there."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.survey.plane import Plane
from model.features.survey.reading import HeadInText, HeadTexts
from viz.features.survey import plane_figure as figures
from viz.features.survey import plane_panels as panels
from viz.features.survey.head_panels import line
from viz.features.survey.plane_panels import Colouring, Way
from viz.features.survey.selected_head import open_button
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets import drawn_panels, numeric_tables
from viz.widgets.cards import say, with_tools

MOST_ROWS = 200
"""Sentences of a selection that are listed."""


CHART = "survey-plane-chart"


NOTHING: Mapping[str, Mapping[str, Any]] = {"selection": {"points": [], "rows": []}}


"""What is selected before anybody selected anything."""


def draw(
    page: Page,
    read: HeadTexts,
    plane: Plane | None,
    no_plane: HeadlightError | None,
    parts: Sequence[tuple[Sequence[str], Sequence[str]]],
) -> None:
    """Draws the plane with how well it tells the scores, and lists the sentences of the selected dots."""
    if no_plane is not None:
        say(error_message(no_plane))
    if plane is None:
        return
    ways: dict[Way, str] = {"kind": _("queries and keys"), "position": _("position"), "token": _("token"), "cluster": _("cluster")}
    ways |= {"part": _("part of speech")} if any(any(sides) for sides in parts) else {}
    with st.container(horizontal=True, vertical_alignment="bottom", key="survey-plane-colours"):
        way = st.selectbox(_("Color"), list(ways), format_func=ways.__getitem__, key="survey-plane-colour")
        word = st.text_input(_("This word (empty: the most frequent ones)"), key="survey-plane-word") if way == "token" else ""
    panel = panels.of_plane(read, plane, parts, Colouring(way, word))
    st.caption(tokens.markdown(panel.words))
    config = with_tools(figures.MODES)
    modes: tuple[Literal["box", "lasso", "points"], ...] = ("box", "lasso", "points")
    options: dict[str, Any] = {"config": config, "on_select": "rerun", "selection_mode": modes}
    drawn_panels.draw_content(page, panel, CHART, printable=False, fills=True, **options)
    if not page.view.big:
        _selected(page, read, plane)


def _selected(page: Page, read: HeadTexts, plane: Plane) -> None:
    """Lists the sentences of the selected dots, those with most of them first."""
    event = st.session_state.get(CHART) or NOTHING
    dots = [int(point["customdata"][0]) for point in event["selection"]["points"] if point.get("customdata") is not None]
    rows = sentences([dot for dot in dots if dot < len(plane.points)], read.texts, plane)
    if not rows:
        st.caption(_("To list the texts of dots, choose the line or the box above the picture, then draw it around them."))
        return
    table = pd.DataFrame(
        [(count, ", ".join(words), line(read.asked[read.places[text]])) for text, count, words in rows[:MOST_ROWS]],
        columns=["dots", "tokens", "text"],
    )
    numeric_tables.draw(
        table,
        titles={"dots": _("dots"), "tokens": _("tokens"), "text": _("text")},
        hide_index=True,
        key="survey-plane-rows",
        on_select="rerun",
        selection_mode="single-row",
    )
    chosen = [row for row in (st.session_state.get("survey-plane-rows") or NOTHING)["selection"]["rows"] if row < len(table)]
    text = read.asked[read.places[rows[chosen[0] if chosen else 0][0]]]
    head = read.question.site, read.question.head
    open_button(page, text, head, "survey-plane-open", edits=read.question.edits)


def sentences(dots: Sequence[int], texts: Sequence[HeadInText], plane: Plane) -> list[tuple[int, int, list[str]]]:
    """For each text with selected dots its number, how many there are and the tokens of these, those with most dots first."""
    words_by_text: dict[int, list[str]] = {}
    for dot in dots:
        text_read = texts[text := int(plane.texts[dot])]
        strip = text_read.keys if plane.keys[dot] else text_read.queries
        words_by_text.setdefault(text, []).append(tokens.plain(strip.texts[int(plane.positions[dot])]))
    rows = [(text, len(words), list(dict.fromkeys(words))) for text, words in words_by_text.items()]
    return sorted(rows, key=lambda row: (-row[1], row[0]))
