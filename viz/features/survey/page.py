"""The page Survey: what each head of the model does over many texts."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from model.errors import BadTexts, from_json
from model.features.survey import tables
from model.features.survey.survey import Survey
from viz import canvas
from viz.export.tables import csv
from viz.features.survey import all_heads, beside, form, making, one_head, selected_head, side_by_side, stored
from viz.features.survey.all_heads_panels import names_of, of_table, spreads
from viz.features.survey.choice import head_of, measure_of
from viz.features.survey.view import SurveyView
from viz.i18n.translate import _, error_message
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import Table, needs_network
from viz.session.state import Page, background_engine, get_view_state
from viz.widgets import drawn_panels
from viz.widgets.cards import card, choose_picture, heading, one_screen, say


def show(page: Page) -> None:
    """Draws the page."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    making_of_session = making.made(page.info.name)
    if making_of_session is not None and making_of_session.runs:
        making.progress(making_of_session)
    elif making_of_session is not None:
        making.ended(making_of_session)
        making.go_on(background_engine("survey").ask, making_of_session)
        form.go_on_with_file(page, making_of_session)
    survey = (
        making_of_session.newest if making_of_session is not None and making_of_session.newest.statistics.texts else _stored(page)
    )
    if survey is None:
        if making_of_session is None or not making_of_session.runs:
            st.info(_("There is no survey of this model yet. Make one below."), icon=":material/query_stats:")
    else:
        survey = all_heads.with_matters(survey)
        _about(page, survey)
        if making_of_session is not None and not making_of_session.runs and not page.view.big:
            _kept(survey)
        if page.view.big:
            _one_picture(page, survey)
            return
        _drawn(page, survey)
    if (making_of_session is None or not making_of_session.runs) and (survey is None or canvas.painted(all_heads.DOTS)):
        with st.expander(_("Make a survey"), icon=":material/query_stats:", expanded=survey is None):
            form.draw(page)


def _stored(page: Page) -> Survey | None:
    """The survey in the model's folder; None: there is none that can be read."""
    try:
        return stored.stored(page.engine, page.info.name)
    except BadTexts as error:
        say(error_message(error))
        return None


def _about(page: Page, survey: Survey) -> None:
    """Says what was measured, and what was left out."""
    summary = survey.statistics
    fields = {"count": summary.texts, "texts": survey.about.texts, "tokens": summary.tokens, "skipped": survey.skipped}
    text = _(
        "Texts: {count:,} ({texts}), tokens: {tokens:,}; texts that could not be run: {skipped:,}. Every "
        "text counts equally; rows for which a measure is not defined do not count.",
        **fields,
    )
    if not page.view.big:
        st.caption(tokens.markdown(text))
    if survey.about.edits:
        st.caption(tokens.markdown(_("In every run: {edits}", edits="; ".join(survey.about.edits))))
    if survey.about.fingerprint != page.trace.model.get("fingerprint"):
        say(_("This survey was made with different weights from those shown now. Make a new one to see what these do."))
    if survey.problems and not page.view.big:
        with st.expander(_("Texts that could not be run"), icon=":material/error:"):
            for number_, problem in survey.problems.items():
                reason = error_message(from_json(problem))
                st.markdown(tokens.markdown(_("Text {number:,}: {problem}", number=number_ + 1, problem=reason)))
            if (more := survey.skipped - len(survey.problems)) > 0:
                st.caption(_("And {count:,} more.", count=more))


def _kept(survey: Survey) -> None:
    """Offers the survey of this visitor as a file, and the way back to the stored one."""
    with st.container(horizontal=True, key="survey-kept"):
        st.download_button(
            _("Download the survey"),
            lambda: tables.to_bytes(survey),
            "survey.parquet",
            "application/vnd.apache.parquet",
            icon=":material/download:",
            on_click="ignore",
            key="survey-download",
        )
        st.button(_("Close this survey"), icon=":material/close:", key="survey-close", on_click=making.drop)


def _one_picture(page: Page, survey: Survey) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them."""
    names, selected = _heads(page, survey)
    measure = measure_of(page, survey, selected)
    film, read = beside.film_of(page, measure), one_head.picture_of(page, survey, selected)
    pictures: dict[str, tuple[str, Callable[[], None]]] = {
        "heads": (_("All heads"), lambda: all_heads.draw(page, survey, names, selected)),
        "grid": (_("Layers × heads"), lambda: all_heads.grid(page, survey, selected)),
        "spread": (_("Over all texts"), lambda: selected_head.draw(page, survey, names, selected)),
        "head": (_("In one text"), lambda: selected_head.texts(page, survey, selected)),
    }
    if read is not None:
        pictures["plane"] = _("Queries and keys"), lambda: one_head.plane_of(page, read)
    if survey.compared is not None:
        pictures["alike"] = _("Similar heads"), lambda: beside.alike(page, survey, names, selected)
    if film is not None:
        pictures["film"] = _("During training"), lambda: beside.film(page, survey, film, selected, measure)
    if page.view.of(SurveyView).beside:
        pictures["two"] = _("Two surveys"), lambda: side_by_side.draw(page, survey, names, selected)
    with one_screen():
        picture = choose_picture({name: title for name, (title, _draw) in pictures.items()})
        pictures[picture][1]()


def _heads(page: Page, survey: Survey) -> tuple[list[str], int]:
    """The names of all heads, and which one is selected."""
    chosen = bool(get_view_state()[0].site)  # the page's own view names the site that other pages open on
    return names_of(survey), head_of(page, survey, chosen)


def _drawn(page: Page, survey: Survey) -> None:
    names, selected = _heads(page, survey)
    left, right = st.columns([3, 2])
    with left, card("survey"):
        all_heads.draw(page, survey, names, selected)
    if not canvas.painted(all_heads.DOTS):
        return  # the dots report it and the rest follows: it keeps the browser busy for seconds, and nobody waits for the dots
    with right, card("survey-head"):
        selected_head.draw(page, survey, names, selected)
    with card("survey-grid"):
        all_heads.grid(page, survey, selected)
    with card("survey-texts"):
        selected_head.texts(page, survey, selected)
    one_head.draw(page, survey, names, selected)
    if survey.compared is not None:
        with card("survey-alike"):
            beside.alike(page, survey, names, selected)
    beside.dependencies(page, survey, names, selected)
    measure = measure_of(page, survey, selected)
    if (film := beside.film_of(page, measure)) is not None:
        with card("survey-film"):
            beside.film(page, survey, film, selected, measure)
    with card("survey-table"):
        _table(page, survey)
    with card("survey-two"):
        side_by_side.draw(page, survey, names, selected)


def _table(page: Page, survey: Survey) -> None:
    """Draws the means of all heads as a sortable table; a click on a row selects its head."""
    panel = of_table(page, survey)
    assert isinstance(panel.content, Table)
    st.html(heading(panel.title, panel.words))
    spread, frame = spreads(page, survey), panel.content.frame
    rows = [row for row in all_heads.marked() if row < len(frame)] or list(range(len(frame)))
    if len(rows) < len(frame):
        st.caption(_("Only the heads that are marked in the picture: {count:,}.", count=len(rows)))
    table = frame.iloc[rows]
    with_spread = table.copy(deep=False)
    if spread:
        with_spread.insert(2, "spread", [spread[row][0] for row in rows])
    over_texts = _("“{measure}” over the texts", measure=measure_labels.of_heads()[page.view.of(SurveyView).up])
    drawn_panels.draw_content(
        page,
        replace(panel, content=replace(panel.content, frame=with_spread)),
        "survey-heads",
        columns={"spread": st.column_config.BarChartColumn(over_texts)},
        selection_mode="single-row",
        on_select=partial(_row, survey, rows),
    )
    st.download_button(
        _("Download as CSV"), lambda: csv(table), "survey.csv", "text/csv", icon=":material/download:", on_click="ignore"
    )


def _row(survey: Survey, rows: Sequence[int]) -> None:
    for row in st.session_state["survey-heads"].selection.rows:
        all_heads.select(survey, rows[row])
