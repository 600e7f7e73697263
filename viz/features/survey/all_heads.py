"""All heads of a survey: as dots by two numbers, as large as they matter if asked for, and as a grid of layers × heads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import streamlit as st

from model.features.survey import mattering
from model.features.survey.mattering import Matters
from model.features.survey.questions import MeasureTexts
from model.features.survey.survey import Survey
from model.requests.edits import read_edits
from viz import canvas
from viz.feature import draw_parts
from viz.features.survey import all_heads_panels as panels
from viz.features.survey import labels, making
from viz.features.survey.one_head import in_order
from viz.features.survey.view import SURVEYED, SurveyView
from viz.i18n.translate import _
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import Picture
from viz.session import access
from viz.session.state import Page, background_engine, bind, update
from viz.widgets import drawn_panels
from viz.widgets.cards import heading
from viz.widgets.clickable_figures import choosing_point

DOTS, MATTERS = "survey-dots", "survey-matters"


USUAL, MOST, MOST_IN_PUBLIC = 30, 1000, 30
"""Texts over which it is measured how much heads matter, unless asked otherwise, and at most."""


def draw(page: Page, survey: Survey, names: Sequence[str], selected: int) -> None:
    """Draws a dot for each head, with what decides its place, color and size; a click selects a head, and a box or a line marks
    several. In big mode the dots fill the screen.

    Args:
        names: of the heads.
    """
    if not page.view.big:
        subtitle = _("Each dot is the mean of one head over all texts. Click or tap a dot to select its head.")
        st.html(heading(_("All heads"), subtitle))
    if page.view.big:
        _choices(page, survey, names)
    panel = panels.of_dots(page, survey, selected, [head for head in marked() if head < len(names)])
    drawn_panels.draw_content(page, panel, DOTS, printable=False, chosen=update, keeps=("marked", "painted"))
    if not canvas.painted(DOTS):
        return  # what follows takes the browser as long as the dots
    if not page.view.big:
        _choices(page, survey, names)
    draw_parts("picture", Picture(DOTS, page.trace, lambda: [panel]))
    missing = panels.without_dot(page, survey)
    if missing and not page.view.big:
        st.caption(_("Heads without a dot, because one of the two numbers is not defined for them: {count:,}.", count=missing))


def _choices(page: Page, survey: Survey, names: Sequence[str]) -> None:
    """Draws what decides place, color and size of the dots."""
    titles, big = measure_labels.of_heads(), page.view.big
    kind = {"": _("kind of attention")} | titles
    label: Literal["collapsed", "visible"] = "collapsed" if big else "visible"  # in big mode the axes and the legend say it
    with st.container(horizontal=True):
        st.selectbox(_("From left to right"), SURVEYED, format_func=titles.__getitem__, label_visibility=label, **bind("across"))
        st.selectbox(_("From bottom to top"), SURVEYED, format_func=titles.__getitem__, label_visibility=label, **bind("up"))
        if big:
            st.selectbox(_("Color"), list(kind), format_func=kind.__getitem__, label_visibility=label, **bind("shade"))
            return
    sizes = {"": _("all the same"), "matters": _("log-probability lost without the head")}
    with st.container(horizontal=True):
        st.selectbox(_("Color"), list(kind), format_func=kind.__getitem__, **bind("shade"))
        st.selectbox(_("Size"), list(sizes), format_func=sizes.__getitem__, **bind("dots"))
    if page.view.of(SurveyView).dots:
        _weight(page, survey, names)


def marked() -> list[int]:
    """The heads in the box that somebody drew around dots; none: nobody did."""
    reported = (st.session_state.get(DOTS) or {}).get("marked")
    return [head for head in reported if type(head) is int and head >= 0] if isinstance(reported, list) else []


def select(survey: Survey, head: int) -> None:
    """Makes a head the selected one; for callbacks."""
    site, number_ = survey.statistics.heads[head]
    update(site=site, head=number_)


def grid(page: Page, survey: Survey, selected: int) -> None:
    """Draws layers × heads by the number that colors the dots, else by the one upwards; a click selects the head."""
    panel = panels.of_grid(page, survey, selected, marked())
    if not page.view.big:
        st.html(heading(panel.title))
    clicked = choosing_point("survey-grid", lambda point: select(survey, int(point[1])))
    drawn_panels.draw_content(page, panel, "survey-grid", fills=True, **clicked)


def _weight(page: Page, survey: Survey, names: Sequence[str]) -> None:
    """Draws what measures how much each head matters, or how far that is, and which matters most."""
    making_of_session: making.Making[Matters] | None = st.session_state.get(MATTERS)
    mine = making_of_session if making_of_session is not None and making_of_session.model == _key(survey) else None
    if mine is not None and mine.runs:
        making.progress(mine, MATTERS)
    elif mine is not None:
        making.ended(mine)
    if mine is None or not mine.runs:
        _form(page, survey, again=survey.matters is not None)
    matters = survey.matters
    if matters is None or not matters.count:
        return
    most = int(np.nanargmax(matters.mean))
    loss, error = labels.with_error(float(matters.mean[most]), float(matters.error[most]), 3)
    fields = {"count": matters.count, "head": names[most], "loss": loss, "error": error}
    st.caption(
        tokens.markdown(
            _(
                "The area of a dot: how much log-probability a token of the target loses when this head alone is silenced (nats, "
                "mean over texts: {count:,}). Most: {head}, {loss} ± {error}. Heads can replace each other, so a small dot may "
                "still be of use.",
                **fields,
            )
        )
    )
    if skipped := matters.done - matters.count:
        st.caption(_("Texts that could not be run, and do not count: {count:,}.", count=skipped))


def _key(survey: Survey) -> str:
    """What tells surveys apart."""
    about = survey.about
    return " ".join((about.model, about.fingerprint, about.content, *about.edits))


def _form(page: Page, survey: Survey, again: bool) -> None:
    """Draws over how many texts it is measured how much heads matter, and the button that starts it."""
    texts = in_order(survey)
    most = min(MOST_IN_PUBLIC if access.is_public() else MOST, len(texts))
    if not most:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", key="survey-matters-form"):
        count = int(st.number_input(_("Maximum number of texts"), 1, most, min(USUAL, most), key="survey-matters-most"))
        title = _("Measure again") if again else _("Measure how much heads matter")
        if st.button(title, icon=":material/play_arrow:", key="survey-matters-start"):
            edits = read_edits("; ".join(survey.about.edits))
            question = MeasureTexts(page.info.name, page.view.parsed_settings(), texts=(), edits=edits)
            encoder, chosen = page.info.spec.get("encoder") is not None, texts[:count]
            first = mattering.not_measured(survey.statistics.heads, count)
            engine = background_engine("matters")
            making.keep(
                making.start(
                    engine.ask,
                    lambda ask, before: mattering.measured_on(ask, question, encoder, chosen, before),
                    first,
                    _key(survey),
                ),
                MATTERS,
            )
            st.rerun()


def with_matters(survey: Survey) -> Survey:
    """The survey with what this visitor measured of how much its heads matter, if anything."""
    measured: making.Making[Matters] | None = st.session_state.get(MATTERS)
    return (
        replace(survey, matters=measured.newest)
        if measured is not None and measured.model == _key(survey) and measured.newest.count
        else survey
    )
