"""Heads beside each other over many texts: how alike they are, how they follow dependencies, and how they came about."""

from typing import Any

import streamlit as st

from model.errors import BadTexts
from model.features.survey.film import SurveyFilm
from model.features.survey.survey import Survey
from viz.features.survey import over_texts_panels as panels
from viz.features.survey.stored import stored_film
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.panels import NotDrawable
from viz.session.state import Page, update
from viz.widgets import drawn_panels
from viz.widgets.cards import card, heading, say

ROWS = "survey-relations-rows"


def alike(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws how alike the maps of heads are: those of one kind in an order that puts like ones side by side."""
    if not page.view.big:
        st.html(heading(_("Similar heads"), _("How much the rows of two heads differ in the same texts")))
    try:
        panel = panels.of_alike(survey, names, selected)
    except NotDrawable as reason:
        st.caption(str(reason))
        return
    st.caption(tokens.markdown(panel.words))
    drawn_panels.draw_content(page, panel, "survey-alike-chart", fills=True)


def dependencies(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws how well heads follow the dependencies between words, where the texts have parses."""
    if survey.relations is None:
        return
    best = panels.best_of_relations(survey)

    def choose() -> None:
        for row in st.session_state[ROWS].selection.rows:
            site, head = survey.statistics.heads[best[row].head]
            update(site=site, head=head)

    panel = panels.of_relations(survey, names, selected)
    with card("survey-relations"):
        st.html(heading(panel.title, panel.words))
        options: dict[str, Any] = {"widths": {"relation": 84}, "selection_mode": "single-row", "on_select": choose}
        drawn_panels.draw_content(page, panel, ROWS, **options)


def film_of(page: Page, measure: str) -> SurveyFilm | None:
    """The film of the model's survey; None: there is none of this measure, or none that can be read."""
    try:
        film = stored_film(page.engine, page.info.name) if page.info.snapshots and measure else None
    except BadTexts as error:
        say(error_message(error))
        return None
    return film if film is not None and len(film.steps) > 1 else None


def film(page: Page, survey: Survey, snapshots: SurveyFilm, selected: int, measure: str) -> None:
    """Draws the measure that the survey shows of its selected head in every snapshot of a training."""
    if not page.view.big:
        st.html(heading(_("During training"), panels.about_film(measure)))
    try:
        panel = panels.of_film(survey, snapshots, selected, measure)
    except NotDrawable as reason:
        st.caption(str(reason))
        return
    st.caption(tokens.markdown(panel.words))
    drawn_panels.draw_content(page, panel, "survey-film-chart", fills=True)
