"""The selected head in a survey: its roles, how its numbers are spread, and its map in single texts, run when one is chosen."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from model.errors import HeadlightError
from model.features.survey.questions import Text
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.requests.edits import Edit
from viz.features.survey import head_panels as panels
from viz.features.survey.choice import measure_of
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, error_message, number
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.session.state import Page, page_at, update
from viz.url.view_state import new_sentence
from viz.widgets import drawn_panels
from viz.widgets.cards import heading, say


def draw(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws the roles of the selected head, and how one of its numbers is spread over the texts; in big mode only this."""
    titles, big = measure_labels.titles(), page.view.big
    if not big:
        st.html(heading(names[selected], _("What it does over all texts")))
    st.session_state["survey-head-choice"] = selected
    st.selectbox(
        _("Head"),
        range(len(names)),
        format_func=names.__getitem__,
        key="survey-head-choice",
        on_change=partial(_choose, survey),
        label_visibility="collapsed" if big else "visible",
    )
    if not big:
        for sentence in panels.roles_of(survey, selected):
            st.markdown(tokens.markdown(sentence))
        if copying := panels.copying_of(survey, selected):
            st.caption(tokens.markdown(copying))
    if (name := measure_of(page, survey, selected)) != page.view.of(SurveyView).up and page.view.of(SurveyView).up in MEASURES:
        st.caption(tokens.markdown(_("“{measure}” is not defined for this head.", measure=titles[page.view.of(SurveyView).up])))
    if not name:
        return
    spread = panels.of_spread(page, survey, selected, name)
    st.caption(tokens.markdown(spread.words))
    drawn_panels.draw_content(page, spread, "survey-histogram", fills=True)


def _choose(survey: Survey) -> None:
    """Selects the head that was chosen by its name."""
    site, head = survey.statistics.heads[st.session_state["survey-head-choice"]]
    update(site=site, head=head)


def texts(page: Page, survey: Survey, selected: int) -> None:
    """Lists the texts that the survey keeps, in which the head's number is largest, smallest and between, and draws the head's map
    in the chosen one, run now; in big mode the map fills the screen, below the choice of a text.
    """
    measure = measure_of(page, survey, selected)
    if not measure:
        return
    rows = panels.listed(survey, selected, measure)
    if page.view.big:
        choices = [
            _("{title} ({name})", title=panels.line(text), name=f"{group}, {number(value, '.2f')}") for group, value, text in rows
        ]
        place = st.selectbox(
            _("Texts"), range(len(rows)), format_func=choices.__getitem__, key="survey-text", label_visibility="collapsed"
        )
        _map_of(page, survey, selected, rows[place][2])
        return
    panel = panels.of_texts(survey, selected, measure)
    st.html(heading(panel.title, panel.words))
    list_, drawn = st.columns([3, 2])
    with list_:
        event: Mapping[str, Mapping[str, list[int]]] = st.session_state.get("survey-rows") or {"selection": {"rows": []}}
        options: dict[str, Any] = {
            "widths": {"place": 92, "value": 76},
            "height": 400,
            "on_select": "rerun",
            "selection_mode": "single-row",
        }
        drawn_panels.draw_content(page, panel, "survey-rows", **options)
    chosen = [row for row in event["selection"]["rows"] if row < len(rows)]
    with drawn:
        _map_of(page, survey, selected, rows[chosen[0] if chosen else 0][2])


def _map_of(page: Page, survey: Survey, head: int, text: Text) -> None:
    """Runs one text and draws the head's map, outside big mode with a button that opens it in Explore."""
    try:
        trace = panels.run_of(page, survey, text)
    except HeadlightError as error:
        say(error_message(error))
        return
    drawn_panels.draw_content(replace(page, trace=trace), panels.of_map(trace, survey, head), "survey-map", fills=True)
    if not page.view.big:
        open_button(page, text, survey.statistics.heads[head], "survey-open", edits=panels.edits_of(survey))


def open_button(
    page: Page,
    text: Text,
    head: tuple[str, int],
    key: str,
    row: int = -1,
    edits: tuple[Edit, ...] = (),
) -> None:
    """A button that opens a text in Explore, with a head and a row selected. Texts of bare ids cannot be typed there.

    Args:
        head: site and number.
        row: the query; -1: none.
        edits: changes with which it was measured.
    """
    if not isinstance(text.source, str):
        return
    fields = new_sentence() | {"text": text.source, "target": text.target if isinstance(text.target, str) else ""}
    fields |= {"site": head[0], "head": head[1], "query": row, "silence": "", "off": ""}
    fields |= {"edits": "; ".join(map(str, edits))}
    fields |= {"max_length": 0} if page.info.spec.get("encoder") is None else {}
    if st.button(_("Open in Explore"), icon=":material/grid_view:", key=key, on_click=partial(update, **fields)):
        st.switch_page(page_at("explore"))
