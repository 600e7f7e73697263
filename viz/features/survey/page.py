"""The page Survey: what each head of the model does over many texts."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import BadTexts, from_json
from model.features.survey import tables
from model.features.survey.survey import Survey
from model.trace.types import Site
from viz import canvas
from viz.export.tables import csv
from viz.features.survey import (
    alike,
    all_heads,
    born,
    dependencies,
    form,
    labels,
    making,
    one_head,
    selected_head,
    side_by_side,
    stored,
)
from viz.features.survey.choice import head_of, measure_of
from viz.features.survey.view import SURVEYED, SurveyView
from viz.i18n.translate import _, error_message
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import needs_network
from viz.session.state import Page, background_engine, get_view_state
from viz.widgets import numeric_tables
from viz.widgets.cards import card, choose_picture, heading, one_screen, say


def show(page: Page) -> None:
    """Draws the page."""
    if page.info.recorded:
        st.info(needs_network(), icon=":material/info:")
        return
    own = making.made(page.info.name)
    if own is not None and own.runs:
        making.progress(own)
    elif own is not None:
        making.ended(own)
        making.go_on(background_engine("survey").ask, own)
        form.go_on_with_file(page, own)
    found = own.newest if own is not None and own.newest.statistics.texts else _stored(page)
    if found is None:
        if own is None or not own.runs:
            st.info(_("There is no survey of this model yet. Make one below."), icon=":material/query_stats:")
    else:
        found = all_heads.with_matters(found)
        _about(page, found)
        if own is not None and not own.runs and not page.view.big:
            _kept(found)
        if page.view.big:
            _one_picture(page, found)
            return
        _drawn(page, found)
    if (own is None or not own.runs) and (found is None or canvas.painted(all_heads.DOTS)):
        with st.expander(_("Make a survey"), icon=":material/query_stats:", expanded=found is None):
            form.draw(page)


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
        "text counts equally; rows for which a measure is not defined do not count.",
        **gaps,
    )
    if not page.view.big:
        st.caption(tokens.markdown(text))
    if found.about.edits:
        st.caption(tokens.markdown(_("In every run: {edits}", edits="; ".join(found.about.edits))))
    if found.about.fingerprint != page.trace.model.get("fingerprint"):
        say(_("This survey was made with different weights from those shown now. Make a new one to see what these do."))
    if found.problems and not page.view.big:
        with st.expander(_("Texts that could not be run"), icon=":material/error:"):
            for number_, problem in found.problems.items():
                said = error_message(from_json(problem))
                st.markdown(tokens.markdown(_("Text {number:,}: {problem}", number=number_ + 1, problem=said)))
            if (more := found.skipped - len(found.problems)) > 0:
                st.caption(_("And {count:,} more.", count=more))


def _kept(found: Survey) -> None:
    """Offers the survey of this visitor as a file, and the way back to the stored one."""
    with st.container(horizontal=True, key="survey-kept"):
        st.download_button(
            _("Download the survey"),
            lambda: tables.to_bytes(found),
            "survey.parquet",
            "application/vnd.apache.parquet",
            icon=":material/download:",
            on_click="ignore",
            key="survey-download",
        )
        st.button(_("Close this survey"), icon=":material/close:", key="survey-close", on_click=making.drop)


def _one_picture(page: Page, found: Survey) -> None:
    """Draws the picture that fills the screen in big mode, and the choice among them."""
    names, selected = _heads(page, found)
    measure = measure_of(page, found, selected)
    film, read = born.film_of(page, measure), one_head.picture_of(page, found, selected)
    pictures: dict[str, tuple[str, Callable[[], None]]] = {
        "heads": (_("All heads"), lambda: all_heads.draw(page, found, names, _role_names(found), selected)),
        "grid": (_("Layers × heads"), lambda: all_heads.grid(page, found, names, selected)),
        "spread": (_("Over all texts"), lambda: selected_head.draw(page, found, names, selected)),
        "head": (_("In one text"), lambda: selected_head.texts(page, found, selected)),
    }
    if read is not None:
        pictures["plane"] = _("Queries and keys"), lambda: one_head.plane_of(page, read)
    if found.compared is not None:
        pictures["alike"] = _("Similar heads"), lambda: alike.draw(page, found, names, selected)
    if film is not None:
        pictures["film"] = _("During training"), lambda: born.draw(page, found, film, selected, measure)
    if page.view.of(SurveyView).beside:
        pictures["two"] = _("Two surveys"), lambda: side_by_side.draw(page, found, names, selected)
    with one_screen():
        shown = choose_picture({name: title for name, (title, _draw) in pictures.items()})
        pictures[shown][1]()


def _heads(page: Page, found: Survey) -> tuple[list[str], int]:
    """The names of all heads, and which one is selected."""
    names = [tokens.site(Site.parse(site), head) for site, head in found.statistics.heads]
    chosen = bool(get_view_state()[0].site)  # the page's own view names the site that other pages open on
    return names, head_of(page, found, chosen)


def _drawn(page: Page, found: Survey) -> None:
    names, selected = _heads(page, found)
    left, one = st.columns([3, 2])
    with left, card("survey"):
        all_heads.draw(page, found, names, _role_names(found), selected)
    if not canvas.painted(all_heads.DOTS):
        return  # the dots report it and the rest follows: it keeps the browser busy for seconds, and nobody waits for the dots
    with one, card("survey-head"):
        selected_head.draw(page, found, names, selected)
    with card("survey-grid"):
        all_heads.grid(page, found, names, selected)
    with card("survey-texts"):
        selected_head.texts(page, found, selected)
    one_head.draw(page, found, names, selected)
    if found.compared is not None:
        with card("survey-alike"):
            alike.draw(page, found, names, selected)
    dependencies.draw(found, names, selected)
    measure = measure_of(page, found, selected)
    if (film := born.film_of(page, measure)) is not None:
        with card("survey-film"):
            born.draw(page, found, film, selected, measure)
    with card("survey-table"):
        _table(page, found)
    with card("survey-two"):
        side_by_side.draw(page, found, names, selected)


def _role_names(found: Survey) -> list[str]:
    """The roles of each head in one text; empty: it has none."""
    titles = labels.roles()
    return [", ".join(titles[role.criterion.role] for role in roles) for roles in found.roles]


def _table(page: Page, found: Survey) -> None:
    """Draws the means of all heads as a sortable table; a click on a row selects its head."""
    st.html(heading(_("All numbers"), _("Means over the texts. An empty cell: the measure is not defined there.")))
    columns = {name: found.of_heads(name) for name in SURVEYED}
    columns |= {} if found.matters is None else {"matters": found.matters.mean}
    columns = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    table = pd.DataFrame(
        {"head": [tokens.site(Site.parse(site), head) for site, head in found.statistics.heads], "roles": _role_names(found)}
        | columns
    )
    spreads = all_heads.spreads(page, found)
    rows = [row for row in all_heads.marked() if row < len(table)] or list(range(len(table)))
    if len(rows) < len(table):
        st.caption(_("Only the heads that are marked in the picture: {count:,}.", count=len(rows)))
    table = table.iloc[rows]
    shown = table.copy(deep=False)
    if spreads:
        shown.insert(2, "spread", [spreads[row][0] for row in rows])
    over_texts = _("“{measure}” over the texts", measure=measure_labels.of_heads()[page.view.of(SurveyView).up])
    numeric_tables.draw(
        shown,
        columns={"spread": st.column_config.BarChartColumn(over_texts)},
        titles={"head": _("head"), "roles": _("roles"), "matters": _("loss without it (nats)")} | measure_labels.of_heads(),
        decimals=3,
        hide_index=True,
        key="survey-heads",
        selection_mode="single-row",
        on_select=partial(_row, found, rows),
    )
    st.download_button(
        _("Download as CSV"), lambda: csv(table), "survey.csv", "text/csv", icon=":material/download:", on_click="ignore"
    )


def _row(found: Survey, rows: Sequence[int]) -> None:
    for row in st.session_state["survey-heads"].selection.rows:
        all_heads.select(found, rows[row])
