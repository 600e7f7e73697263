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


def draw(page: Page, found: Survey, names: list[str], selected: int) -> None:
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
        apart = differences(other, found)
    except (BadTexts, CannotSurvey) as error:
        say(error_message(error))
        return
    _about(other, found, apart)
    _scatter(page, found, apart, names, selected)
    if not page.view.big:
        _table(apart)


def _choose(page: Page) -> UploadedFile | None:
    """Draws the choice of the other survey: the stored one of a model, or a file, which is returned."""
    subtitle = _("With another model or snapshot, with the model without edits, or over other texts")
    st.html(heading(_("Two surveys side by side"), subtitle))
    there = [info.name for info in page.engine.ask(Models()).models if not info.problem]
    choices = ["", *dict.fromkeys([*there, *filter(None, [page.view.of(SurveyView).beside])])]
    st.selectbox(_("Compare with the stored survey of"), choices, format_func=lambda name: name or _("none"), **bind("beside"))
    if access.is_public():
        return None
    return st.file_uploader(
        _("Or with a survey in a file (.parquet)"), "parquet", key="survey-beside-file", max_upload_size=texts.MOST_BYTES // 2**20
    )


def _about(other: Survey, found: Survey, apart: list[Difference]) -> None:
    """Says which surveys these are, and what the errors are of."""
    gaps = {"model": other.about.model, "texts": other.about.texts, "count": other.statistics.texts}
    gaps |= {"own": found.about.model, "own_texts": found.about.texts, "own_count": found.statistics.texts}
    text = _("First: {model} over {texts} ({count:,}). Second: {own} over {own_texts} ({own_count:,}).", **gaps)
    st.caption(tokens.markdown(text))
    if other.about.edits:
        st.caption(tokens.markdown(_("First, in every run: {edits}", edits="; ".join(other.about.edits))))
    if found.about.edits:
        st.caption(tokens.markdown(_("Second, in every run: {edits}", edits="; ".join(found.about.edits))))
    if any(each.paired for each in apart):
        st.caption(
            _("Both read the same texts, so the standard errors are those of the differences text by text, in the sampled texts.")
        )
    else:
        st.caption(_("They read different texts, so the standard errors are those of two independent means."))


def _scatter(page: Page, found: Survey, apart: list[Difference], names: list[str], selected: int) -> None:
    """Draws one measure of every head in both surveys; on the line nothing changed. A click selects a head."""
    title = measure_labels.of_heads()[page.view.of(SurveyView).up]
    own = {(each.site, each.head): each for each in apart if each.measure == page.view.of(SurveyView).up}
    if not own:
        st.caption(_("No head has this measure in both surveys: choose another one above."))
        return
    heads = [head for head, place in enumerate(found.statistics.heads) if place in own]
    chosen = [own[found.statistics.heads[head]] for head in heads]
    axes = _("{measure}, first", measure=title), _("{measure}, second", measure=title)
    before, now = np.array([each.first for each in chosen]), np.array([each.second for each in chosen])
    errors = np.array([each.error for each in chosen])
    called = [names[head] for head in heads]
    figure = figures.two(called, heads, before, now, errors, axes, selected, page.dark)
    alt = labels.scatter(called, before, now, axes)
    clickable(figure, "survey-two", lambda data: _select(found, int(data[1])), alt, (page.trace, title), fills=True)


def _select(found: Survey, head: int) -> None:
    site, number = found.statistics.heads[head]
    update(site=site, head=number)


def _table(apart: list[Difference]) -> None:
    """Draws all differences, those of most standard errors first; a click on a row selects its head and measure."""
    titles = measure_labels.titles()
    rows = [
        (
            tokens.site(Site.parse(each.site), each.head),
            titles[each.measure],
            each.first,
            each.second,
            each.difference,
            each.error,
            each.errors if np.isfinite(each.errors) else np.nan,
        )
        for each in apart
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
        each = apart[row]
        assert each.measure in MEASURES
        update(site=each.site, head=each.head, up=each.measure)
