"""Two surveys side by side: the one that the page shows, and one that the visitor chooses."""

from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from model.engine.api import Models
from model.errors import BadTexts, CannotSurvey
from model.features.survey import texts
from model.features.survey.differences import Difference, differences
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from viz.export.tables import csv
from viz.features.survey import over_texts_panels as panels
from viz.features.survey.stored import read, stored
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.panels import NotDrawable, Table
from viz.session import access
from viz.session.state import Page, bind, update
from viz.widgets import drawn_panels
from viz.widgets.cards import heading, say
from viz.widgets.clickable_figures import choosing_point


def draw(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws the choice of another survey, both means of every head, and the differences with their standard errors; in big mode
    only the means.
    """
    sent = None if page.view.big else _choose(page)
    beside = page.view.of(SurveyView).beside
    if sent is None and not beside:
        return
    try:
        other = stored(page.engine, beside) if sent is None else read(sent.getvalue(), sent.name)
        if other is None:
            say(_("There is no stored survey of “{model}”. python -m model survey makes one.", model=beside))
            return
        apart = differences(other, survey)
    except (BadTexts, CannotSurvey) as error:
        say(error_message(error))
        return
    for sentence in panels.about_two(other, survey, apart):
        st.caption(tokens.markdown(sentence))
    _scatter(page, survey, apart, names, selected)
    if not page.view.big:
        _table(page, apart)


def _choose(page: Page) -> UploadedFile | None:
    """Draws the choice of the other survey: the stored one of a model, or a file, which is returned."""
    subtitle = _("With another model or snapshot, with the model without edits, or over other texts")
    st.html(heading(_("Two surveys side by side"), subtitle))
    usable = [info.name for info in page.engine.ask(Models()).models if not info.problem]
    choices = ["", *dict.fromkeys([*usable, *filter(None, [page.view.of(SurveyView).beside])])]
    st.selectbox(_("Compare with the stored survey of"), choices, format_func=lambda name: name or _("none"), **bind("beside"))
    if access.is_public():
        return None
    return st.file_uploader(
        _("Or with a survey in a file (.parquet)"), "parquet", key="survey-beside-file", max_upload_size=texts.MOST_BYTES // 2**20
    )


def _scatter(page: Page, survey: Survey, apart: list[Difference], names: list[str], selected: int) -> None:
    """Draws one measure of every head in both surveys; a click selects the head."""
    try:
        panel = panels.of_two(page, survey, apart, names, selected)
    except NotDrawable as reason:
        st.caption(str(reason))
        return
    clicked = choosing_point("survey-two", lambda point: _select(survey, int(point[1])))
    drawn_panels.draw_content(page, panel, "survey-two", fills=True, **clicked)


def _select(survey: Survey, head: int) -> None:
    site, number = survey.statistics.heads[head]
    update(site=site, head=number)


def _table(page: Page, apart: list[Difference]) -> None:
    """Draws all differences, those of most standard errors first; a click on a row selects its head and measure."""
    panel = panels.of_differences(apart)
    options: dict[str, Any] = {"selection_mode": "single-row", "on_select": partial(_row, apart)}
    drawn_panels.draw_content(page, panel, "survey-differences-rows", **options)
    assert isinstance(panel.content, Table)
    table = panel.content.frame
    name = "survey-differences.csv"
    st.download_button(
        _("Download as CSV"),
        lambda: csv(table),
        name,
        "text/csv",
        key="survey-csv-two",
        icon=":material/download:",
        on_click="ignore",
    )


def _row(apart: list[Difference]) -> None:
    for row in st.session_state["survey-differences-rows"].selection.rows:
        difference = apart[row]
        assert difference.measure in MEASURES
        update(site=difference.site, head=difference.head, up=difference.measure)
