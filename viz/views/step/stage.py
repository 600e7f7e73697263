"""Draws one stage: formula, picture, numbers, a sentence, and its lines of code."""

from functools import partial

import numpy as np
import streamlit as st

from model.trace import source_lines, stages
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Trace
from viz.feature import draw_parts
from viz.i18n.translate import _, _n
from viz.labels import titles, tokens
from viz.panels import NotDrawable, OfRun, Panel, Picture, Table
from viz.session.state import Page, bind, update
from viz.views.step import formulas, sentences, stage_panels
from viz.widgets import download
from viz.widgets.cards import card, say
from viz.widgets.drawn_panels import draw_content


def draw(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws a stage of a run that recorded everything.

    Args:
        page: the page; its site is the stage's, if the stage has one.
        trace: the run.
        stage: one of its stages.
    """
    with card("stage", "content"):
        st.markdown(f"### {titles.titles()[stage.name]}")
        st.caption(f"{tokens.markdown(titles.place(trace, stage, page.head))} · `{stage}`")
        formula = stage_panels.of_formula(page, trace, stage)
        draw_content(page, formula, "stage-formula")
        if formulas.formula(trace, stage):
            st.caption(" · ".join(map(formulas.bound, formulas.symbols(trace, stage, page.head))))
        _say_what_is_no_number(trace, stage, page.head)
        _picture(page, trace, stage)
        _numbers(page, trace, stage)
        _code(trace, stage)
        if stage.name == "weights":
            draw_parts("stage", page, trace)


def draw_picture(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the picture of a stage alone, as large as the screen of a projector, with its title and its sentence."""
    where = tokens.markdown(titles.place(trace, stage, page.head))
    st.markdown(f"**{titles.titles()[stage.name]}** · {where}")
    st.markdown(sentences.sentence(trace, stage))
    _say_what_is_no_number(trace, stage, page.head)
    _picture(page, trace, stage)


def _say_what_is_no_number(trace: Trace, stage: Stage, head: int) -> None:
    """Names the first stage with NaN or infinities, and counts them at this stage."""
    first = stages.first_unsound(trace)
    if first is None:
        return
    wrong = stages.unsound(trace, stage)
    here = 0 if wrong is None else int((wrong[head] if stage.in_head else wrong).sum())
    fields = {"count": here, "title": titles.titles()[first.name], "place": titles.place(trace, first, head), "stage": str(first)}
    if here:
        say(
            _n(
                "{count} value here is NaN or infinite. In this run, such values first appear at {stage} ({title}, {place}).",
                "{count} values here are NaN or infinite. In this run, such values first appear at {stage} ({title}, {place}).",
                here,
                **fields,
            )
        )
    else:
        say(_("This run contains NaN or infinite values, first at {stage} ({title}, {place}); here there are none.", **fields))


def _picture(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the picture of a stage, or says why it has none; below logits and probabilities which ones they are."""
    try:
        panel = _panel(page, trace, stage)
    except NotDrawable as reason:
        if stage.name == "chosen":
            st.info(str(reason), icon=":material/info:")
        else:
            say(str(reason))
        return
    if stage.name in ("tokens", "ids"):
        draw_content(page, panel, "stage-tokens")
    elif stage.name in OF_CELLS:
        chosen = partial(update, site=stage.place, head=page.head)
        draw_content(page, panel, "cells", chosen=chosen, printable=False)
        printed = OfRun("", trace, page.attention.site, page.head, page.view.query, page.view.key)
        draw_parts("picture", Picture("cells", trace, lambda: [printed]))
    else:
        draw_content(page, panel, _KEYS.get(stage.name, "stage-vectors"), fills=True)
        if panel.about:
            st.caption(panel.about)


_KEYS = {"logits": "stage-vocabulary", "probabilities": "stage-vocabulary", "chosen": "stage-taken"}
"""Keys of charts on the page; another stage's chart is `stage-vectors`."""


def _panel(page: Page, trace: Trace, stage: Stage) -> Panel:
    """The picture of a stage; of logits and probabilities that of the row that is chosen above it."""
    if stage.name in ("logits", "probabilities"):
        return stage_panels.of_vocabulary(page, trace, stage, _row(page, trace))
    return stage_panels.of_stage(page, trace, stage)


def _row(page: Page, trace: Trace) -> int:
    """Draws the choice of a row of logits."""
    strip = stages.strip(trace, stage_panels.OUTPUT)
    first = stage_panels.row_of(page, trace)
    assert trace.logits is not None
    rows = titles.rows(trace, strip, len(trace.logits))
    tied = bind("query", key=-1)
    st.session_state[tied["key"]] = first
    written = trace.tokens[strip]

    def name(row: int) -> str:
        following = f" → {tokens.token(written, row + 1)}" if row + 1 < len(written) else ""
        return f"{row + 1} {rows[row]}{following}"

    row: int = st.selectbox(_("Last token read"), range(len(rows)), format_func=name, **tied)
    return row


def _numbers(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the numbers of the picture as a table, with a download."""
    if stage.name in ("tokens", "ids"):  # they are the picture
        return
    try:
        values = stage_panels.of_table(page, trace, stage)
    except NotDrawable:
        return
    head = [f"head-{page.head + 1}"] if stage.in_head else []
    with st.expander(values.title, icon=":material/table:"):
        if count := _never_computed(trace, stage, page.head):
            st.caption(
                _n(
                    "{count} score is empty: it was never computed, because its key comes later.",
                    "{count} scores are empty: they were never computed, because their keys come later.",
                    count,
                    count=count,
                )
            )
        draw_content(page, values, "stage-numbers")
        assert isinstance(values.content, Table)
        download.csv(values.content.frame, trace, stage.place, stage.name, *head, key="stage-csv")


def _never_computed(trace: Trace, stage: Stage, head: int) -> int:
    """Number of scores that decoding with a cache never computed, because their keys came later."""
    scores = stages.tensor(trace, stage, head) if stage.name == "scores" else None
    return 0 if scores is None else int((np.isnan(scores) & ~trace.at(stage.place).mask).sum())


def _code(trace: Trace, stage: Stage) -> None:
    """Draws the line of code that computed the stage, within its function."""
    lines = source_lines.code(trace, stage)
    if lines is None:
        return
    st.caption(_("Computed in {path}, line {line}:", path=f"`{lines.path}`", line=lines.line))
    st.code(lines.statement, language="python", wrap_lines=True)
    fields = {"function": lines.function, "first": lines.first_line, "last": lines.first_line + lines.text.count("\n")}
    with st.expander(_("The whole function: {function}, lines {first} to {last}", **fields), icon=":material/code:"):
        st.code(lines.text, language="python", wrap_lines=True)
