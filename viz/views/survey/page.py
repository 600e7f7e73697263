"""The page Survey: what each head of the model does over many texts."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.navigation.page import StreamlitPage

from model.engine.api import Engine
from model.errors import BadTexts, HeadlightError
from model.survey import texts
from model.survey.measures import MEASURES
from model.survey.questions import MeasureTexts
from model.survey.survey import Survey, begun, gone_on
from model.trace.types import Site
from viz.export.tables import csv
from viz.figures import survey as figures
from viz.i18n.translate import _, error_message
from viz.labels import survey as labels
from viz.labels import tokens
from viz.session import access
from viz.session.state import Page, background_engine, bind, update
from viz.views.survey import alike, born, dependencies, making, one_head, selected_head, side_by_side, stored
from viz.views.what_if.cell_clicks import clickable
from viz.widgets import numeric_tables, recorded_run
from viz.widgets.cards import card, heading, say

MOST_PASTED = 2000
"""Texts that a visitor can paste; a file has no such limit on the command line."""

MOST_IN_PUBLIC = 200


def show(page: Page, explore: StreamlitPage) -> None:
    """Draws the page; `explore` is where a text is opened."""
    if page.info.recorded:
        st.info(recorded_run.needs_network(), icon=":material/info:")
        return
    own = making.made(page.info.name)
    if own is not None and own.runs:
        making.progress(own)
    elif own is not None:
        making.ended(own)
    found = own.newest if own is not None and own.newest.statistics.texts else _stored(page)
    if found is None:
        if own is None or not own.runs:
            st.info(_("There is no survey of this model yet. Make one below."), icon=":material/query_stats:")
    else:
        _about(page, found)
        _drawn(page, found, explore)
    if own is None or not own.runs:
        with st.expander(_("Make a survey"), icon=":material/query_stats:", expanded=found is None):
            _form(page)


def _stored(page: Page) -> Survey | None:
    """The survey in the model's folder; None: there is none that can be read."""
    try:
        return stored.stored(page.engine, page.info.name)
    except BadTexts as error:
        say(error_message(error))
        return None


def _about(page: Page, found: Survey) -> None:
    """Says what was measured, and what was left out."""
    own = found.statistics
    gaps = {"count": own.texts, "texts": found.about.texts, "tokens": own.tokens, "skipped": found.skipped}
    text = _(
        "Texts: {count:,} ({texts}), tokens: {tokens:,}; texts that could not be run: {skipped:,}. Every "
        "text weighs the same; rows for which a measure is not defined do not count.",
        **gaps,
    )
    st.caption(tokens.markdown(text))
    if found.about.edits:
        st.caption(tokens.markdown(_("In every run: {edits}", edits="; ".join(found.about.edits))))
    if found.about.fingerprint != page.trace.model.get("fingerprint"):
        say(_("This survey was made with other weights than those shown now. Make a new one to see what these do."))


def _drawn(page: Page, found: Survey, explore: StreamlitPage) -> None:
    """Draws all heads, the table and the selected head."""
    heads = found.statistics.heads
    names = [tokens.site(Site.parse(site), head) for site, head in heads]
    there = (str(page.attention.site), page.head)
    selected = heads.index(there) if there in heads else 0
    all_heads, one = st.columns([3, 2])
    with all_heads, card("survey"):
        _scatter(page, found, names, selected)
    with one, card("survey-head"):
        selected_head.draw(page, found, names, selected)
    with card("survey-texts"):
        selected_head.texts(page, found, selected, explore)
    one_head.draw(page, found, names, selected, explore)
    if found.compared is not None:
        with card("survey-alike"):
            alike.draw(page, found, names, selected)
    dependencies.draw(found, names, selected)
    born.draw(page)
    with card("survey-table"):
        _table(page, found)
    with card("survey-two"):
        side_by_side.draw(page, found, names, selected)


def _role_names(found: Survey) -> list[str]:
    """The roles of each head in one text; empty: it has none."""
    titles = labels.roles()
    return [", ".join(titles[role.criterion.role] for role in roles) for roles in found.roles]


def _scatter(page: Page, found: Survey, names: list[str], selected: int) -> None:
    """Draws a dot for each head, with two measures as axes; a click selects a head."""
    own, titles = found.statistics, labels.measures()
    st.html(heading(_("All heads"), _("Each dot is the mean of one head over all texts. Click or tap a dot to select its head.")))
    left, right = st.columns(2)
    with left:
        st.selectbox(_("From left to right"), list(MEASURES), format_func=titles.__getitem__, **bind("across"))
    with right:
        st.selectbox(_("From bottom to top"), list(MEASURES), format_func=titles.__getitem__, **bind("up"))
    columns = [list(MEASURES).index(name) for name in (page.view.across, page.view.up)]
    across, up = (np.where(own.count[:, column] > 0, own.mean[:, column], np.nan) for column in columns)
    named = (titles[page.view.across], titles[page.view.up])
    groups = [tokens.kind(site.stack, site.kind) for site in (Site.parse(site) for site, _head in own.heads)]
    figure = figures.scatter(names, groups, across, up, named, _role_names(found), selected, page.dark)
    alt = labels.scatter(names, across, up, named)
    title = _("All heads: {up}, {across}", across=named[0], up=named[1])
    clickable(figure, "survey-scatter", lambda data: _select(found, int(data[1])), alt, (page.trace, title))


def _select(found: Survey, head: int) -> None:
    site, number_ = found.statistics.heads[head]
    update(site=site, head=number_)


def _table(page: Page, found: Survey) -> None:
    """Draws the means of all heads as a sortable table; a click on a row selects its head."""
    own, titles = found.statistics, labels.measures()
    st.html(heading(_("All numbers"), _("Means over the texts. An empty cell: the measure is not defined there.")))
    columns = {name: np.where(own.count[:, n] > 0, own.mean[:, n], np.nan) for n, name in enumerate(MEASURES)}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    table = pd.DataFrame(
        {"head": [tokens.site(Site.parse(site), head) for site, head in own.heads], "roles": _role_names(found)} | columns
    )
    numeric_tables.draw(
        table,
        titles={"head": _("head"), "roles": _("roles")} | titles,
        decimals=3,
        hide_index=True,
        key="survey-heads",
        selection_mode="single-row",
        on_select=partial(_row, found),
    )
    st.download_button(
        _("Download as CSV"), lambda: csv(table), "survey.csv", "text/csv", icon=":material/download:", on_click="ignore"
    )


def _row(found: Survey) -> None:
    for row in st.session_state["survey-heads"].selection.rows:
        _select(found, row)


def _form(page: Page) -> None:
    """Draws what a survey can read, and the button that starts it."""
    kinds = {"bundled": _("Bundled texts"), "repeated": _("Repeated random tokens"), "pasted": _("My own texts")}
    kind = st.segmented_control(
        _("Texts"), list(kinds), format_func=kinds.__getitem__, required=True, default="bundled", key="survey-kind"
    )
    pasted = ""
    if kind == "pasted":
        pasted = st.text_area(
            _("One text per line; a tab between source and target"), key="survey-pasted", height=160, max_chars=200_000
        )
    most = MOST_IN_PUBLIC if access.is_public() else MOST_PASTED
    count = st.number_input(_("Maximum number of texts"), 10, most, min(200, most), 10, key="survey-most")
    if st.button(_("Survey"), icon=":material/play_arrow:", key="survey-start"):
        try:
            _begin(background_engine("survey"), page, str(kind), pasted, int(count))
        except HeadlightError as error:
            say(error_message(error))
            return
        st.rerun()


def _begin(engine: Engine, page: Page, kind: str, pasted: str, count: int) -> None:
    """Starts a survey of the model with the page's edits.

    Raises:
        BadTexts: no text was pasted, or its columns differ.
        CannotSurvey: the network reads no tokens.
    """
    match kind:
        case "bundled":
            found = texts.bundled(page.info.name)
        case "repeated":
            found = texts.repeated_for(count, page.info.spec)
        case _:
            found = texts.read(pasted, _("My own texts"))
    chosen = texts.Texts(found.name, found.items[:count], found.empty)
    question = MeasureTexts(page.info.name, page.view.parsed_settings(), texts=(), edits=page.view.active_edits())
    first = begun(question, chosen)
    making.keep(making.start(engine.ask, lambda ask: gone_on(ask, question, chosen, first), first))
