"""Step through, inside the network: the map of the network, one stage of the run, and the calculation of a chosen cell."""

from dataclasses import replace
from functools import partial
from weakref import ref

import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.spec.request import KEEP
from model.trace import stages
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Attention, Site, Trace
from viz import canvas
from viz.canvas.scenes import network
from viz.export.print.catalogue import Choice, figure_called
from viz.i18n.translate import _, error_message
from viz.session.state import Page, address, bind, update
from viz.views.step import cell_dialog
from viz.views.step import stage as one_stage
from viz.views.step.titles import titles
from viz.widgets import print_dialog
from viz.widgets.cards import one_screen, panel, say


def draw(page: Page) -> None:
    """Draws map and stage. The run that records everything is requested once; for further stages the engine has it cached."""
    try:
        trace = page.engine.ask(Run(page.view.request(keep=KEEP)))
    except HeadlightError as error:
        say(error_message(error))
        return
    walk = stages.walk(trace)
    stage = _asked(page, trace, walk)
    page = _at(page, trace, stage)
    plan_of_network = network.scene(trace, walk, titles(), stage)
    go = partial(_go, ref(trace), page.attention.site)
    if page.view.big:
        with one_screen():
            canvas.draw("network", plan_of_network, key="network", chosen=go)
            one_stage.draw_picture(page, trace, stage)
        if stage.name in OF_CELLS and page.view.query >= 0 and page.view.key >= 0:
            cell_dialog.dialog(page)
        return
    plan, shown = st.columns([4, 9], gap="medium")
    with plan, panel("network"):
        canvas.draw("network", plan_of_network, key="network", chosen=go)
    choice = Choice(page.attention, page.head)
    with plan:
        print_dialog.button(lambda: [figure_called(trace, choice, "network")], trace, address(), "network")
    with shown:
        if stage.in_head or stage.name == "mask":
            _choose_head(page)
        one_stage.draw(page, trace, stage)
        if stage.name in OF_CELLS and page.view.query >= 0 and page.view.key >= 0:
            cell_dialog.draw(page, page.view.query, page.view.key)


def _asked(page: Page, trace: Trace, walk: tuple[Stage, ...]) -> Stage:
    """The stage that the view asks for; if the run lacks it, the first one and a sentence."""
    try:
        return stages.find(trace, page.view.stage) if page.view.stage else walk[0]
    except HeadlightError as error:
        say(error_message(error))
        return walk[0]


def _at(page: Page, trace: Trace, stage: Stage) -> Page:
    """The page at a stage: with its site, and a head of this site."""
    attention = page.attention if stage.site is None else trace.at(stage.site)
    attention = trace.at(attention.site)
    head = page.head if page.head < attention.heads else 0
    return replace(page, trace=trace, attention=attention, head=head)


def _choose_head(page: Page) -> None:
    tied = bind("head")
    st.session_state[tied["key"]] = page.head
    heads = range(page.attention.heads)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_("Head"), width="content")
        st.segmented_control(
            _("Head"), heads, format_func=lambda index: str(index + 1), required=True, label_visibility="collapsed", **tied
        )


def _go(found: ref[Trace], site: Site, **fields: str | int) -> None:
    """Goes to another stage and its site; the selected row is cleared if its tokens are others there.

    Args:
        found: the run. Callbacks are kept as long as the session, which must not hold a trace.
        site: the current site.
    """
    text, trace = str(fields["stage"]), found()
    if trace is None:
        return update(stage=text)
    try:
        stage = stages.find(trace, text)
    except HeadlightError:
        return update(stage=text)
    now = trace.at(site)
    attention = _attention_near(now, trace, stage)
    same = (attention.query_tokens, attention.key_tokens) == (now.query_tokens, now.key_tokens)
    rows = {} if same and attention.weights.shape[1:] == now.weights.shape[1:] else {"query": -1, "key": -1}
    return update(stage=text, site=str(attention.site), **rows)


def _attention_near(now: Attention, trace: Trace, stage: Stage) -> Attention:
    """The site of a stage: its own, for the output the decoder's last, else the current one."""
    if stage.site is not None:
        return trace.at(stage.site)
    own = [attention for site, attention in trace.attention.items() if site.stack == "decoder"]
    return own[-1] if stage.place == "output" and own else now
