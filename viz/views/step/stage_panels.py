"""The panels of a stage of the computation: what it computes with its formula, its picture, and its numbers."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from model.engine.api import Texts
from model.errors import HeadlightError
from model.trace import stages
from model.trace.stages import AXES, OF_CELLS, Stage
from model.trace.steps import Step
from model.trace.types import Array, Trace
from viz.canvas.scenes import attention as scene
from viz.canvas.scenes import matrix
from viz.canvas.wire.transport import changed
from viz.figures import stages as figures
from viz.i18n.translate import _, said
from viz.labels import alt_text, titles, tokens
from viz.panels import Bars, NotDrawable, Panel, Plot, Scene, Table, Text, TextLine
from viz.session.state import Page, decimals
from viz.views.step import formulas, numbers, sentences

MOST_COLUMNS = 128
"""Most dimensions of a vector that a lecture draws."""

OUTPUT = Stage("output", "logits")


def heading(page: Page, trace: Trace, stage: Stage) -> str:
    """Name and place of a stage."""
    return f"{titles.titles()[stage.name]} · {titles.place(trace, stage, page.head)}"


def of_formula(page: Page, trace: Trace, stage: Stage) -> Panel:
    """What a stage computes: a sentence, and the formula where there is one."""
    lines = [TextLine(sentences.sentence(trace, stage))]
    if formula := formulas.formula(trace, stage):
        lines.append(TextLine(formula, formula=True))
    return Panel("formula", heading(page, trace, stage), Text(lines), width="half")


def of_stage(page: Page, trace: Trace, stage: Stage) -> Panel:
    """The picture of a stage; for tokens and ids their table.

    Raises:
        NotDrawable: the run has no numbers of this stage.
    """
    match stage.name:
        case "tokens":
            return _of_tokens(page, trace, stage)
        case "ids":
            return _of_ids(page, trace, stage)
        case "logits" | "probabilities":
            return of_vocabulary(page, trace, stage, row_of(page, trace))
        case "chosen":
            return _of_chosen(page, trace, stage)
    array = stages.tensor(trace, stage, page.head)
    if array is None:
        why = stages.why_missing(trace, stage)
        sentence = _("No numbers for this stage: {why}.", why=said(why)) if why else ""
        raise NotDrawable(sentence or _("No numbers for this stage: this run did not record them."))
    if stage.name in OF_CELLS:
        return _of_cells(page, trace, stage)
    return _of_vectors(page, trace, stage, array)


def _of_tokens(page: Page, trace: Trace, stage: Stage) -> Panel:
    content = Scene("Strips", changed(scene.strips(trace, page.attention.site, -1), {}, continues=None))
    return Panel("numbers", heading(page, trace, stage), content, width="half", on_page=partial(_table, page, trace, stage))


def _of_ids(page: Page, trace: Trace, stage: Stage) -> Panel:
    strip = trace.tokens[stages.strip(trace, stage)]
    texts = [tokens.token(strip, position) for position in range(len(strip))]
    content = Table(pd.DataFrame({_("id"): list(strip.ids)}, index=pd.Index(texts, name=_("token"))))
    return Panel("numbers", heading(page, trace, stage), content, width="half", on_page=partial(_table, page, trace, stage))


def _table(page: Page, trace: Trace, stage: Stage) -> Table:
    frame = numbers.table(trace, stage, page.head)
    assert frame is not None, "tokens have a table"
    return Table(frame, decimals=4)


def _of_cells(page: Page, trace: Trace, stage: Stage) -> Panel:
    """The cells of a head. On a page a cell opens its calculation; a lecture does not say so."""
    cells = scene.cells(trace, stage, page.head, page.view.query, page.view.key)
    content = Scene("Cells", changed(cells, {"hint": "", "hintTouch": ""}))
    return Panel("numbers", heading(page, trace, stage), content, width="half", on_page=lambda: Scene("Cells", cells))


def _of_vectors(page: Page, trace: Trace, stage: Stage, array: Array) -> Panel:
    """A row of numbers for each token; of a wide one a lecture draws the first MOST_COLUMNS."""
    rows, down, across = numbers.row_labels(trace, stage, len(array)), titles.down(trace, stage), titles.across(AXES[stage.name][1])
    columns = [str(number) for number in range(1, min(array.shape[1], MOST_COLUMNS) + 1)]
    content = Scene("Cells", matrix.numbers(array[:, :MOST_COLUMNS], rows, columns, (down, across)))

    def on_page() -> Plot:
        return _plot(
            "stage-vectors", page, trace, stage, partial(figures.vectors, array, rows, down, across), alt_text.vectors(rows, array)
        )

    return Panel("numbers", heading(page, trace, stage), content, width="half", on_page=on_page)


def row_of(page: Page, trace: Trace) -> int:
    """The chosen row of logits: the view's query if it has logits, else the first row that generated a token, else the last.

    Raises:
        NotDrawable: the run has no logits.
    """
    if trace.logits is None:
        raise NotDrawable(_("This run generated nothing."))
    if 0 <= page.view.query < len(trace.logits):
        return page.view.query
    return trace.steps[0].computed[1] - 1 if trace.steps else len(trace.logits) - 1


def of_vocabulary(page: Page, trace: Trace, stage: Stage, row: int) -> Panel:
    """The largest logits or probabilities of a row; the probabilities of a step are those that it chose among."""
    assert trace.logits is not None
    step = next((step for step in trace.steps if step.computed[1] - 1 == row), None)
    shares = stage.name == "probabilities"
    if shares and step is not None:
        values, ids, chosen = _of_step(step)
    else:
        ids = numbers.likeliest(trace, row)
        values = (_softmax(trace.logits[row]) if shares else trace.logits[row])[ids].tolist()
        chosen = ids.index(step.chosen.id) if step is not None and step.chosen.id in ids else -1
    texts, axis = words(page, trace, ids), _("probability") if shares else _("logit")

    def on_page() -> Plot:
        form = decimals(4)
        return _plot(
            "stage-vocabulary",
            page,
            trace,
            stage,
            lambda dark: figures.bars(values, texts, axis, dark, chosen, shares, form),
            alt_text.bars(texts, values),
        )

    count = {"count": len(ids), "all": trace.logits.shape[1]}
    about = _("The {count} most likely of {all} tokens in the vocabulary; the chosen one is highlighted.", **count)
    return Panel("numbers", heading(page, trace, stage), Bars(texts, values, chosen), about=about, width="half", on_page=on_page)


def _of_step(step: Step) -> tuple[list[float], list[int], int]:
    """The probabilities and ids of a step's candidates, and the index of the one that it chose."""
    listed = [*step.candidates, *([] if any(token.id == step.chosen.id for token in step.candidates) else [step.chosen])]
    ids = [token.id for token in listed]
    return [math.exp(token.log_probability) for token in listed], ids, ids.index(step.chosen.id)


def _of_chosen(page: Page, trace: Trace, stage: Stage) -> Panel:
    """The tokens that were chosen with their probabilities; in a lecture, the candidates of one of them."""
    if not trace.steps:
        raise NotDrawable(_("This run generated nothing."))
    selected = next((step for step in trace.steps if step.computed[1] - 1 == page.view.query), trace.steps[0])
    values, ids, chosen = _of_step(selected)
    texts = [tokens.plain(token.text) for token in (*selected.candidates, selected.chosen)][: len(ids)]

    def on_page() -> Plot:
        table = numbers.steps(trace)
        steps = [f"{row} {tokens.word(step.chosen.text)}" for row, step in enumerate(trace.steps, start=1)]
        shares, form = table[_("probability")].tolist(), decimals(4)
        return Plot(
            lambda dark: figures.bars(shares, steps, _("probability"), dark, form=form),
            alt_text.bars(steps, shares),
            "stage-taken",
            _("probability"),
        )

    return Panel("numbers", heading(page, trace, stage), Bars(texts, values, chosen), width="half", on_page=on_page)


def words(page: Page, trace: Trace, ids: list[int]) -> list[str]:
    """The texts of ids, also of those that the run did not list as candidates."""
    strip, settings = stages.strip(trace, OUTPUT), page.view.parsed_settings()
    try:
        texts = page.engine.ask(Texts(page.info.name, strip=strip, ids=tuple(ids), settings=settings))
    except HeadlightError:  # an earlier answer is shown while the engine is away
        return [numbers.text_of(trace, id_) for id_ in ids]
    return [tokens.word(text) for text in texts]


def _softmax(logits: Array) -> Array:
    exponentials = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(exponentials / exponentials.sum())


def _plot(name: str, page: Page, trace: Trace, stage: Stage, draw: Callable[[bool], go.Figure], alt: str) -> Plot:
    """A picture of a stage, whose title on paper says its place."""
    return Plot(draw, alt, name, f"{titles.titles()[stage.name]}: {titles.place(trace, stage, page.head)}")


def of_table(page: Page, trace: Trace, stage: Stage) -> Panel:
    """The numbers of a stage as a table.

    Raises:
        NotDrawable: nothing was recorded.
    """
    frame = numbers.table(trace, stage, page.head)
    if frame is None:
        raise NotDrawable(_("No numbers for this stage: this run did not record them."))
    return Panel("values", _("The numbers"), Table(frame), on_page=lambda: Table(frame, decimals=4))
