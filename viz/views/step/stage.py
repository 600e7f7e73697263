"""Draws one stage: formula, picture, numbers, a sentence, and its lines of code."""

from functools import partial

import numpy as np
import streamlit as st

from model.engine.api import Texts
from model.errors import HeadlightError
from model.trace import source_lines, stages
from model.trace.stages import AXES, OF_CELLS, Stage
from model.trace.types import Array, Trace
from viz import canvas
from viz.canvas.scenes import attention
from viz.feature import draw_parts
from viz.figures import stages as figures
from viz.i18n.translate import _, _n, said
from viz.labels import alt_text, titles, tokens
from viz.panels import OfRun, Picture
from viz.session.state import Page, bind, decimals, update
from viz.views.step import formulas, numbers, sentences
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, chart, say


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
        st.markdown(sentences.sentence(trace, stage))
        if text := formulas.formula(trace, stage):
            st.latex(text)
            st.caption(" · ".join(map(formulas.bound, formulas.symbols(trace, stage, page.head))))
        _say_what_is_no_number(trace, stage, page.head)
        _picture(page, trace, stage)
        _numbers(page, trace, stage)
        _code(trace, stage)
        if stage.name == "weights":
            draw_parts("stage", page, trace)


def draw_picture(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the picture of a stage alone, as large as the screen of a projector, with its title and its sentence."""
    place = tokens.markdown(titles.place(trace, stage, page.head))
    st.markdown(f"**{titles.titles()[stage.name]}** · {place}")
    st.markdown(sentences.sentence(trace, stage))
    _say_what_is_no_number(trace, stage, page.head)
    if stage.name in ("tokens", "ids"):
        _numbers(page, trace, stage)
    else:
        _picture(page, trace, stage)


def _say_what_is_no_number(trace: Trace, stage: Stage, head: int) -> None:
    """Names the first stage with NaN or infinities, and counts them at this stage."""
    first = stages.first_unsound(trace)
    if first is None:
        return
    wrong = stages.unsound(trace, stage)
    here = 0 if wrong is None else int((wrong[head] if stage.in_head else wrong).sum())
    gaps = {"count": here, "title": titles.titles()[first.name], "place": titles.place(trace, first, head), "stage": str(first)}
    if here:
        say(
            _n(
                "{count} value here is NaN or infinite. In this run, such values first appear at {stage} ({title}, {place}).",
                "{count} values here are NaN or infinite. In this run, such values first appear at {stage} ({title}, {place}).",
                here,
                **gaps,
            )
        )
    else:
        say(_("This run contains NaN or infinite values, first at {stage} ({title}, {place}); here there are none.", **gaps))


def _picture(page: Page, trace: Trace, stage: Stage) -> None:
    if stage.name in ("tokens", "ids"):
        return None
    if stage.name in ("logits", "probabilities"):
        return _vocabulary(page, trace, stage)
    if stage.name == "chosen":
        return _taken(page, trace)
    array = stages.tensor(trace, stage, page.head)
    if array is None:
        return say(_not_recorded(trace, stage))
    if stage.name in OF_CELLS:
        return _cells(page, trace, stage)
    rows = numbers.row_labels(trace, stage, len(array))
    figure = figures.vectors(array, rows, titles.down(trace, stage), titles.across(AXES[stage.name][1]), page.dark)
    chart(
        figure,
        (trace, _title(page, trace, stage)),
        fills=True,
        key="stage-vectors",
        alt=alt_text.vectors(rows, array),
    )
    return None


def _title(page: Page, trace: Trace, stage: Stage) -> str:
    """Title of a stage's picture, with its place."""
    return f"{titles.titles()[stage.name]}: {titles.place(trace, stage, page.head)}"


def _not_recorded(trace: Trace, stage: Stage) -> str:
    why = stages.why_missing(trace, stage)
    if why:
        return _("No numbers for this stage: {why}.", why=said(why))
    return _("No numbers for this stage: this run did not record them.")


def _cells(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the cells of the head; a chosen one becomes part of the state."""
    scene = attention.cells(trace, stage, page.head, page.view.query, page.view.key)
    canvas.draw("cells", scene, key="cells", chosen=partial(update, site=stage.place, head=page.head))
    printed = OfRun("", trace, page.attention.site, page.head, page.view.query, page.view.key)
    draw_parts("picture", Picture("cells", trace, lambda: [printed]))


def _vocabulary(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the largest logits or probabilities of one row, which can be chosen."""
    assert trace.logits is not None
    row = _row(page, trace)
    step = next((s for s in trace.steps if s.computed[1] - 1 == row), None)
    if stage.name == "probabilities" and step is not None:
        listed = list(step.candidates) + [step.chosen] * all(c.id != step.chosen.id for c in step.candidates)
        values, ids = [float(np.exp(c.log_probability)) for c in listed], [c.id for c in listed]
    else:
        ids = numbers.likeliest(trace, row)
        values = _softmax(trace.logits[row])[ids].tolist() if stage.name == "probabilities" else trace.logits[row, ids].tolist()
    chosen = ids.index(step.chosen.id) if step is not None and step.chosen.id in ids else -1
    title = _("probability") if stage.name == "probabilities" else _("logit")
    texts = words(page, trace, ids)
    figure = figures.bars(values, texts, title, page.dark, chosen, stage.name == "probabilities", decimals(4))
    chart(
        figure,
        (trace, _title(page, trace, stage)),
        fills=True,
        key="stage-vocabulary",
        alt=alt_text.bars(texts, values),
    )
    gaps = {"count": len(ids), "all": trace.logits.shape[1]}
    st.caption(_("The {count} most likely of {all} tokens in the vocabulary; the chosen one is highlighted.", **gaps))


def words(page: Page, trace: Trace, ids: list[int]) -> list[str]:
    """The texts of ids, also of those that the run did not list as candidates."""
    strip = stages.strip(trace, Stage("output", "logits"))
    try:
        found = page.engine.ask(Texts(page.info.name, strip=strip, ids=tuple(ids), settings=page.view.parsed_settings()))
    except HeadlightError:  # an earlier answer is shown while the engine is away
        return [numbers.text_of(trace, id_) for id_ in ids]
    return [tokens.word(text) for text in found]


def _softmax(logits: Array) -> Array:
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(exponentials / exponentials.sum())


def _row(page: Page, trace: Trace) -> int:
    """The chosen row of logits: the state's query if it has logits, else the first row that generated a token."""
    assert trace.logits is not None
    rows = titles.rows(trace, stages.strip(trace, Stage("output", "logits")), len(trace.logits))
    first = trace.steps[0].computed[1] - 1 if trace.steps else len(rows) - 1
    tied = bind("query", key=-1)
    st.session_state[tied["key"]] = page.view.query if 0 <= page.view.query < len(rows) else first
    after = trace.tokens[stages.strip(trace, Stage("output", "logits"))]

    def name(row: int) -> str:
        written = f" → {tokens.token(after, row + 1)}" if row + 1 < len(after) else ""
        return f"{row + 1} {rows[row]}{written}"

    row: int = st.selectbox(_("Last token read"), range(len(rows)), format_func=name, **tied)
    return row


def _taken(page: Page, trace: Trace) -> None:
    if not trace.steps:
        st.info(_("This run generated nothing."), icon=":material/info:")
        return
    table = numbers.steps(trace)
    texts = [f"{row + 1} {tokens.word(step.chosen.text)}" for row, step in enumerate(trace.steps)]
    figure = figures.bars(table[_("probability")].tolist(), texts, _("probability"), page.dark, form=decimals(4))
    alt = alt_text.bars(texts, table[_("probability")].tolist())
    chart(figure, (trace, _("probability")), fills=True, key="stage-taken", alt=alt)


def _numbers(page: Page, trace: Trace, stage: Stage) -> None:
    """Draws the numbers of the picture as a table, with a download."""
    table = numbers.table(trace, stage, page.head)
    if table is None:
        return
    if stage.name in ("tokens", "ids"):
        numeric_tables.draw(table)
        return
    head = [f"head-{page.head + 1}"] if stage.in_head else []
    with st.expander(_("The numbers"), icon=":material/table:"):
        if count := _never_computed(trace, stage, page.head):
            st.caption(
                _n(
                    "{count} score is empty: it was never computed, because its key comes later.",
                    "{count} scores are empty: they were never computed, because their keys come later.",
                    count,
                    count=count,
                )
            )
        numeric_tables.draw(table, key="stage-numbers")
        download.csv(table, trace, stage.place, stage.name, *head, key="stage-csv")


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
    gaps = {"function": lines.function, "first": lines.first_line, "last": lines.first_line + lines.text.count("\n")}
    with st.expander(_("The whole function: {function}, lines {first} to {last}", **gaps), icon=":material/code:"):
        st.code(lines.text, language="python", wrap_lines=True)
