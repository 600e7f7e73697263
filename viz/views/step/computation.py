"""Step through, inside the network: the map of the network, one stage of the run, and the calculation of a chosen cell."""

from dataclasses import replace
from functools import partial
from weakref import ref

import numpy as np
import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.requests.request import KEEP
from model.trace import stages
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Attention, Site, Trace
from viz import canvas
from viz.canvas.scenes import motion, network
from viz.canvas.scenes.motion import Followed
from viz.export import tables
from viz.feature import draw_parts
from viz.i18n.translate import _, error_message
from viz.labels import titles, tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, update
from viz.views.step import cell_dialog, numbers, sentences, stage_panels
from viz.views.step import stage as one_stage
from viz.widgets.cards import one_screen, panel, say


def draw(page: Page, moves: bool) -> None:
    """Draws map and stage. The run that records everything is requested once; for further stages the engine has it cached.

    Args:
        moves: whether a token moves beside the map; in big mode, where that fills the screen, in the place of the stage.
    """
    try:
        trace = page.engine.ask(Run(page.view.request(keep=KEEP)))
    except HeadlightError as error:
        say(error_message(error))
        return
    walk = stages.walk(trace)
    stage = _asked(page, trace, walk)
    page = _at(page, trace, stage)
    moves = moves and motion.can_follow(trace)
    if page.view.big:
        with one_screen():
            _draw_network(page, trace, walk, stage, moves)
            if not moves:
                one_stage.draw_picture(page, trace, stage)
        if stage.name in OF_CELLS and page.view.key >= 0:
            cell_dialog.dialog(page)
        return
    with panel("network"):
        _draw_network(page, trace, walk, stage, moves)
    if stage.in_head or stage.name == "mask":
        _choose_head(page)
    one_stage.draw(page, trace, stage)
    printed = OfRun("network", trace, page.attention.site, page.head)
    draw_parts("picture", Picture("network", trace, lambda: [printed]))
    if stage.name in OF_CELLS and page.view.key >= 0:
        cell_dialog.dialog(page)


def _draw_network(page: Page, trace: Trace, walk: tuple[Stage, ...], stage: Stage, moves: bool) -> None:
    """Draws the map of the network and, if it `moves`, the picture of one token on its way through it."""
    follow = _followed(page, trace, walk) if moves else None
    film = tables.file_name(trace, "inside", ending="webm").removesuffix(".webm")
    scene = network.scene(trace, walk, titles.titles(), stage, follow, film)
    canvas.draw("network", scene, key="network", chosen=partial(_go, ref(trace), page.attention.site))


def _followed(page: Page, trace: Trace, walk: tuple[Stage, ...]) -> Followed:
    """Whom the moving picture follows: the selected row and head, up to the tokens among which the row chose the next one."""
    rows = motion.rows(trace, page.attention.site.stack, page.view.query)
    row = rows[motion.stack_of(trace, Stage("output", "logits"))]
    step = next((step for step in trace.steps if step.computed[1] - 1 == row), None)
    captions = tuple(
        (f"{titles.titles()[stage.name]} · {titles.place(trace, stage, page.head)}", sentences.sentence(trace, stage))
        for stage in walk
    )
    if step is not None:
        listed = [*step.candidates[: motion.LISTED]]
        listed += [step.chosen] * all(token.id != step.chosen.id for token in listed)
        ids, shares = [token.id for token in listed], tuple(float(np.exp(token.log_probability)) for token in listed)
        words = [tokens.word(token.text) for token in listed]
    else:
        ids, shares = numbers.likeliest(trace, row)[: motion.LISTED] if trace.logits is not None else [], ()
        words = stage_panels.words(page, trace, ids) if ids else []
    taken = ids.index(step.chosen.id) if step is not None else -1
    return Followed(rows, page.head, tuple(zip(ids, words, strict=True)), shares, taken, captions)


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


def _go(run: ref[Trace], site: Site, **fields: str | int) -> None:
    """Goes to another stage and its site, or follows another token or head there.

    The selected row is cleared if its tokens are others at the new site.

    Args:
        run: the run. Callbacks are kept as long as the session, which must not hold a trace.
        site: the current site.
    """
    text, trace = str(fields.pop("stage")), run()
    if trace is None:
        return update(stage=text)
    try:
        stage = stages.find(trace, text)
    except HeadlightError:
        return update(stage=text)
    now = trace.at(site)
    attention = _attention_near(now, trace, stage, "query" in fields)
    same = (attention.query_tokens, attention.key_tokens) == (now.query_tokens, now.key_tokens)
    rows = {} if same and attention.weights.shape[1:] == now.weights.shape[1:] else {"query": -1, "key": -1}
    if "query" in fields:
        rows |= {"key": -1}
    return update(stage=text, site=str(attention.site), **{**rows, **fields})


def _attention_near(now: Attention, trace: Trace, stage: Stage, own_stack: bool) -> Attention:
    """The site of a stage: its own, for the output the decoder's last, else the current one.

    Args:
        own_stack: whether it must be one of the stage's own stack, because a row of it was selected.
    """
    if stage.site is not None:
        return trace.at(stage.site)
    of_stack = [attention for site, attention in trace.attention.items() if site.stack == stage.stack]
    other = stage.place == "output" or (own_stack and now.site.stack != stage.stack)
    return of_stack[-1] if of_stack and other else now
