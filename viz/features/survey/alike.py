"""How alike the maps of heads are over many texts: those of one kind in an order that puts like ones side by side."""

import numpy as np
import streamlit as st

from model.features.survey.agreement import clustered
from model.features.survey.survey import Survey
from model.trace.types import Site
from viz.features.survey import figures
from viz.i18n.translate import _, join_list, number
from viz.labels import tokens
from viz.session.state import Page
from viz.widgets.cards import chart, heading


def draw(page: Page, survey: Survey, names: list[str], selected: int) -> None:
    """Draws the divergence of each two heads that attend between the same tokens as the selected one."""
    if not page.view.big:
        st.html(heading(_("Similar heads"), _("How much the rows of two heads differ in the same texts")))
    apart = None if survey.compared is None else survey.compared.mean_divergence
    group = np.zeros(0, int) if apart is None else np.flatnonzero(np.isfinite(apart[selected]))
    if apart is None or len(group) < 2:
        st.caption(_("This head is compared with no other: none attends between the same tokens."))
        return
    order = group[clustered(apart[np.ix_(group, group)])]
    nearest = min((head for head in group if head != selected), key=lambda head: apart[selected, head])
    text = _(
        "{head}: the most similar head is {other}, at {bits} bits (0: the same rows; 1: no key in common). Texts: {count}.",
        head=names[selected],
        other=names[nearest],
        bits=number(float(apart[selected, nearest]), ".2f"),
        count=f"{survey.compared_done}",
    )
    st.caption(tokens.markdown(text))
    short = [_short(survey, head) for head in order]
    figure = figures.alike(short, [names[head] for head in order], apart[np.ix_(order, order)], _("divergence (bits)"), page.dark)
    title = _("How much the rows of two heads differ in the same texts")
    alt = (
        f"{title}: {join_list([names[head] for head in order])}"  # not of the selected head, so that it is not drawn anew for each
    )
    chart(figure, (page.trace, title), fills=True, key="survey-alike-chart", alt=alt)


def _short(survey: Survey, head: int) -> str:
    """Layer and head, counted from 1; with the pass where there are several."""
    site, number_ = survey.statistics.heads[head]
    parsed = Site.parse(site)
    return f"{parsed.layer + 1}.{number_ + 1}" if not parsed.pass_ else f"{parsed.pass_ + 1}.{parsed.layer + 1}.{number_ + 1}"
