"""All heads of a survey: as dots by two numbers, as large as they matter if asked for, and as a grid of layers × heads."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from model.features.survey import mattering
from model.features.survey.mattering import Matters
from model.features.survey.questions import MeasureTexts
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.requests.edits import read_edits
from model.trace.types import Array, Site
from viz import canvas
from viz.feature import draw_parts
from viz.features.survey import dots_scene as dots
from viz.features.survey import heads_figure as figures
from viz.features.survey import labels, making
from viz.features.survey.one_head import in_order
from viz.features.survey.view import SURVEYED, SurveyView
from viz.figures.head_map import by_kind
from viz.i18n.translate import _
from viz.labels import measures as measure_labels
from viz.labels import tokens
from viz.panels import Picture, Plot
from viz.session import access
from viz.session.state import Page, background_engine, bind, update
from viz.widgets.cards import heading
from viz.widgets.clickable_figures import clickable

DOTS, MATTERS = "survey-dots", "survey-matters"

USUAL, MOST, MOST_IN_PUBLIC = 30, 1000, 30
"""Texts over which it is measured how much heads matter, unless asked otherwise, and at most."""


def draw(page: Page, survey: Survey, names: Sequence[str], roles: Sequence[str], selected: int) -> None:
    """Draws a dot for each head, with what decides its place, color and size; a click selects a head, and a box or a line marks
    several. In big mode the dots fill the screen.

    Args:
        names, roles: of each head: its name, and its roles or "".
    """
    if not page.view.big:
        subtitle = _("Each dot is the mean of one head over all texts. Click or tap a dot to select its head.")
        st.html(heading(_("All heads"), subtitle))
    if page.view.big:
        _choices(page, survey, names)
    view = page.view.of(SurveyView)
    weight = _mattering(survey) if view.dots else None
    titles, shade = measure_labels.of_heads(), _shade(page, survey)
    across, up = (survey.of_heads(name) for name in (view.across, view.up))
    named = (titles[view.across], titles[view.up])
    sites = [Site.parse(site) for site, _head in survey.statistics.heads]
    groups = [tokens.kind(site.stack, site.kind) for site in sites]

    spread = [labels.spread(counts, highest) for counts, highest in spreads(page, survey)]
    kinds = list(dict.fromkeys(groups))
    drawn = figures.dots(names, groups, across, up, roles, shade, weight, spread)
    words, marked_heads = labels.scatter(names, across, up, named), [head for head in marked() if head < len(names)]
    scene = dots.scene(page.trace, drawn, survey.statistics.heads, kinds, named, selected, marked_heads, words, shade)
    canvas.draw("dots", scene, key=DOTS, chosen=update, keeps=("marked", "painted"))
    if not canvas.painted(DOTS):
        return  # what follows takes the browser as long as the dots
    if not page.view.big:
        _choices(page, survey, names)
    title = _("All heads: {up}, {across}", across=named[0], up=named[1])

    def printed(dark: bool) -> go.Figure:
        return figures.scatter(drawn, kinds, named, selected, dark=dark, shade=shade)

    draw_parts("picture", Picture(DOTS, page.trace, lambda: [Plot(printed, words, DOTS, title)]))
    missing = int((~(np.isfinite(across) & np.isfinite(up))).sum())
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
    sizes = {"": _("all the same"), "matters": _("how much the head matters")}
    with st.container(horizontal=True):
        st.selectbox(_("Color"), list(kind), format_func=kind.__getitem__, **bind("shade"))
        st.selectbox(_("Size"), list(sizes), format_func=sizes.__getitem__, **bind("dots"))
    if page.view.of(SurveyView).dots:
        _weight(page, survey, names)


def spreads(page: Page, survey: Survey) -> list[tuple[Array, float]]:
    """For each head, how the measure upwards is spread over the texts: how many there are in each bin, and the end of the last one.
    Nothing, if what is drawn upwards is no measure."""
    name = page.view.of(SurveyView).up
    if name not in MEASURES:
        return []
    column = list(MEASURES).index(name)
    return [(counts, MEASURES[name].highest) for counts in survey.statistics.bins[:, column]]


def _shade(page: Page, survey: Survey) -> figures.Shade | None:
    """The number that colors the dots; None: their kind of attention does."""
    name = page.view.of(SurveyView).shade
    return figures.Shade(survey.of_heads(name), measure_labels.of_heads()[name]) if name else None


def marked() -> list[int]:
    """The heads in the box that somebody drew around dots; none: nobody did."""
    heads = (st.session_state.get(DOTS) or {}).get("marked")
    return [head for head in heads if type(head) is int and head >= 0] if isinstance(heads, list) else []


def select(survey: Survey, head: int) -> None:
    """Makes a head the selected one; for callbacks."""
    site, number_ = survey.statistics.heads[head]
    update(site=site, head=number_)


def grid(page: Page, survey: Survey, names: Sequence[str], selected: int) -> None:
    """Draws layers × heads by the number that colors the dots, else by the one upwards."""
    if not page.view.big:
        st.html(heading(_("Layers × heads")))
    up = page.view.of(SurveyView).up
    shade = _shade(page, survey) or figures.Shade(survey.of_heads(up), measure_labels.of_heads()[up])
    heads = survey.statistics.heads
    rows = by_kind(list(survey.statistics.sites))
    places = [(rows.index(site), head) for site, head in heads]
    sites = [tokens.site(Site.parse(site)) for site in rows]
    around = [head for head in marked() if head < len(heads)]
    figure = figures.grid(names, sites, places, _("Head"), shade, selected, around, page.dark)
    alt = _("“{measure}” of every head: layers × heads; the table “All numbers” has the numbers", measure=shade.title)
    clickable(figure, "survey-grid", lambda data: select(survey, int(data[1])), alt, (page.trace, shade.title), fills=True)


def _weight(page: Page, survey: Survey, names: Sequence[str]) -> None:
    """Draws what measures how much each head matters, or how far that is, and which matters most."""
    running: making.Making[Matters] | None = st.session_state.get(MATTERS)
    mine = running if running is not None and running.model == _key(survey) else None
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


def _mattering(survey: Survey) -> figures.Shade | None:
    """How much each head matters, as far as it was measured."""
    matters = survey.matters
    return figures.Shade(matters.mean, _("loss without it (nats)")) if matters is not None and matters.count else None


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
    running: making.Making[Matters] | None = st.session_state.get(MATTERS)
    return (
        replace(survey, matters=running.newest)
        if running is not None and running.model == _key(survey) and running.newest.count
        else survey
    )
