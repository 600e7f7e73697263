"""What wrote a token: its logit as a sum over what every head, layer and bias added, beside what silencing each head does."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from model.errors import HeadlightError
from model.features.circuit.sums import LogitSum, Writes
from model.features.what_if.questions import Heads
from model.features.what_if.results import HeadEffects
from viz.features.circuit import stream_parts
from viz.features.circuit import write_panels as panels
from viz.features.circuit.view import CircuitView
from viz.features.circuit.why import badge
from viz.figures.head_map import sites_of
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.session import patient_engine
from viz.session.state import Page, bind, update
from viz.widgets import download, drawn_panels
from viz.widgets.cards import panel, say
from viz.widgets.clickable_figures import choosing_point


def draw(page: Page) -> None:
    """Draws the sum of one token's logit, or says why there is none."""
    if reason := stream_parts.reason_against(page):
        st.caption(reason)
        return
    with panel("writes"):
        _sum(page)


def _sum(page: Page) -> None:
    _choices(page, panels.token(page))
    try:
        logit_sum = page.engine.ask(Writes(page.view.request(), panels.token(page), panels.rival(page)))
    except HeadlightError as error:
        say(error_message(error))
        _saved(page)
        return
    bars = panels.of_token(logit_sum)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.markdown(f"**{tokens.markdown(bars.title)}**", width="content")
        badge(logit_sum)
    for sentence in (bars.words, *stream_parts.about_the_run(page, bool(np.isfinite(logit_sum.values).all()))):
        st.caption(tokens.markdown(sentence))
    drawn_panels.draw_content(page, bars, "writes-bars")
    rows = sites_of(panels.of_heads(logit_sum))
    clicked = choosing_point("writes-heads", lambda point: _select(rows[point[0]], point[1]))
    drawn_panels.draw(page, panels.of_map(page, logit_sum), "writes-heads", **clicked)
    drawn_panels.draw(page, panels.of_sources(page, logit_sum), "writes-keys")
    _totals(page, logit_sum)


def _saved(page: Page) -> None:
    """Draws, for a recording that was saved with the sum of a token, a button that shows it."""
    if page.info.recorded and (saved := page.trace.sums.get("writes")):
        rival = "none" if saved["minus"] is None else str(saved["minus"])
        st.button(
            _("Show the token whose sum was saved with this recording"),
            key="saved-writes",
            icon=":material/functions:",
            on_click=partial(update, step=saved["token"], rival=rival),
        )


def _choices(page: Page, token: int) -> None:
    """Draws the choice of the token, and of the one that it is compared with."""
    left, right = st.columns(2)
    written = {step.index: f"{step.index + 1} {tokens.word(step.chosen.text)}" for step in page.trace.steps}
    tied = bind("step", rival="runner-up")
    st.session_state[tied["key"]] = token
    with left:
        st.selectbox(_("Token"), list(written), format_func=written.__getitem__, **tied)
    step = page.trace.steps[token]
    rivals = {"runner-up": _("the most likely other token"), "none": _("nothing: the logit itself")}
    rivals |= {str(candidate.id): tokens.word(candidate.text) for candidate in step.candidates if candidate.id != step.chosen.id}
    chosen = page.view.of(CircuitView).rival
    if chosen not in rivals:
        rivals[chosen] = f"#{chosen}"
    with right:
        st.selectbox(_("Compared with"), list(rivals), format_func=rivals.__getitem__, **bind("rival"))


def _table(page: Page, numbers: pd.DataFrame) -> None:
    all_parts = panels.of_numbers(numbers)
    with st.expander(all_parts.title, icon=":material/table:"):
        drawn_panels.draw_content(page, all_parts, all_parts.name)
        download.csv(numbers, page.trace, f"token-{panels.token(page) + 1}", "writes", key="writes-csv")


def _totals(page: Page, logit_sum: LogitSum) -> None:
    """Draws direct effects against total ones, where the visitor wants the copies to be run."""
    if page.info.recorded or not st.toggle(
        _("Compare with total effects"),
        key="writes-totals-shown",
        help=_(
            "Runs the sentence again without each head, its output replaced by the mean over the sentence, and compares how the "
            "log-probability of this token changes."
        ),
    ):
        return _table(page, panels.table(logit_sum))
    with patient_engine.show_pending():
        try:
            effects = page.engine.ask(Heads(page.view.request(), ("without",), by="mean"))
        except HeadlightError as error:
            say(error_message(error))
            return None
        if logit_sum.token >= len(effects.tokens):
            return None
        _compared(page, logit_sum, effects)
        _table(page, panels.table(logit_sum, panels.totals(effects, logit_sum.token)))
    return None


def _compared(page: Page, logit_sum: LogitSum, effects: HeadEffects) -> None:
    heads = panels.compared_heads(logit_sum, effects)
    clicked = choosing_point("writes-totals", lambda index: _select(*heads[index]))
    drawn_panels.draw(page, panels.of_totals(logit_sum, effects), "writes-totals", **clicked)


def _select(site: str, head: int) -> None:
    update(site=site, head=head)
