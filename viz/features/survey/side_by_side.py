"""Two surveys side by side: the one that the page shows, and one that the visitor chooses."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from model.engine.api import Models
from model.errors import BadTexts, CannotSurvey
from model.features.survey import texts
from model.features.survey.differences import Difference, differences
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Site
from viz.export.tables import csv
from viz.features.survey import figures, labels
from viz.features.survey.stored import read, stored
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, error_message
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.session import access
from viz.session.state import Page, bind, update
from viz.widgets import numeric_tables
from viz.widgets.cards import heading, say
from viz.widgets.clickable_figures import clickable


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
    _about(other, survey, apart)
    _scatter(page, survey, apart, names, selected)
    if not page.view.big:
        _table(apart)


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


def _about(other: Survey, survey: Survey, apart: list[Difference]) -> None:
    """Says which surveys these are, and what the errors are of."""
    fields = {"model": other.about.model, "texts": other.about.texts, "count": other.statistics.texts}
    fields |= {"own": survey.about.model, "own_texts": survey.about.texts, "own_count": survey.statistics.texts}
    text = _("First: {model} over {texts} ({count:,}). Second: {own} over {own_texts} ({own_count:,}).", **fields)
    st.caption(tokens.markdown(text))
    if other.about.edits:
        st.caption(tokens.markdown(_("First, in every run: {edits}", edits="; ".join(other.about.edits))))
    if survey.about.edits:
        st.caption(tokens.markdown(_("Second, in every run: {edits}", edits="; ".join(survey.about.edits))))
    if any(difference.paired for difference in apart):
        st.caption(
            _("Both read the same texts, so the standard errors are those of the differences text by text, in the sampled texts.")
        )
    else:
        st.caption(_("They read different texts, so the standard errors are those of two independent means."))


def _scatter(page: Page, survey: Survey, apart: list[Difference], names: list[str], selected: int) -> None:
    """Draws one measure of every head in both surveys; on the line nothing changed. A click selects a head."""
    title = measure_labels.of_heads()[page.view.of(SurveyView).up]
    by_head = {
        (difference.site, difference.head): difference for difference in apart if difference.measure == page.view.of(SurveyView).up
    }
    if not by_head:
        st.caption(_("No head has this measure in both surveys: choose another one above."))
        return
    heads = [head for head, name in enumerate(survey.statistics.heads) if name in by_head]
    chosen = [by_head[survey.statistics.heads[head]] for head in heads]
    axes = _("{measure}, first", measure=title), _("{measure}, second", measure=title)
    before, now = np.array([difference.first for difference in chosen]), np.array([difference.second for difference in chosen])
    errors = np.array([difference.error for difference in chosen])
    called = [names[head] for head in heads]
    figure = figures.two(called, heads, before, now, errors, axes, selected, page.dark)
    alt = labels.scatter(called, before, now, axes)
    clickable(figure, "survey-two", lambda data: _select(survey, int(data[1])), alt, (page.trace, title), fills=True)


def _select(survey: Survey, head: int) -> None:
    site, number = survey.statistics.heads[head]
    update(site=site, head=number)


def _table(apart: list[Difference]) -> None:
    """Draws all differences, those of most standard errors first; a click on a row selects its head and measure."""
    titles = measure_labels.titles()
    rows = [
        (
            tokens.site(Site.parse(difference.site), difference.head),
            titles[difference.measure],
            difference.first,
            difference.second,
            difference.difference,
            difference.error,
            difference.errors if np.isfinite(difference.errors) else np.nan,
        )
        for difference in apart
    ]
    table = pd.DataFrame(rows, columns=["head", "measure", "first", "second", "difference", "error", "errors"])
    numeric_tables.draw(
        table,
        titles={
            "head": _("head"),
            "measure": _("measure"),
            "first": _("first"),
            "second": _("second"),
            "difference": _("difference"),
            "error": _("standard error"),
            "errors": _("difference in standard errors"),
        },
        decimals=3,
        hide_index=True,
        key="survey-differences-rows",
        selection_mode="single-row",
        on_select=partial(_row, apart),
    )
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
