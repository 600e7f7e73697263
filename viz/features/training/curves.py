"""Curves of the training film: losses, a measure of every head, and when each head specialized."""

import numpy as np
import pandas as pd
import streamlit as st

from model.trace.types import Array
from viz.features.training import figures
from viz.features.training.metrics import Course, moments, numbers, specialised
from viz.features.training.view import TrainingView
from viz.i18n.translate import _, join_sentences, localized, titled
from viz.labels import alt_text, measures, tokens
from viz.session.state import Page, bind
from viz.url.parsers import MEASURES
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, chart, choosing_head, expander_state


def draw(page: Page, measured: Course) -> None:
    """Draws both pictures, the table of when heads specialized, and the numbers."""
    at = _step(page, measured)
    heads, losses = st.columns([3, 2])
    with heads, card("heads"):
        _heads(page, measured, at)
    with losses, card("losses"):
        _losses(page, measured, at)
    with card("moments"):
        _moments(page, measured)
    with st.expander(_("The numbers behind these charts"), icon=":material/table:", **expander_state("part-training")) as part:
        if part.open:
            _numbers(page, measured)


def draw_one(page: Page, measured: Course, name: str) -> None:
    """Draws the one of both pictures that fills the screen in big mode: `curves` of all heads, or `losses`."""
    at = _step(page, measured)
    if name == "losses":
        _loss_chart(page, measured, at)
    else:
        _head_chart(page, measured, at)


def _step(page: Page, measured: Course) -> int:
    """The snapshot that is shown; the first one if the view names none, the last one if that does not exist."""
    asked = page.view.of(TrainingView).snapshot
    missing = measured.steps[0 if asked < 0 else -1]
    return asked if asked in measured.steps else missing


def _heads(page: Page, measured: Course, at: int) -> None:
    """Draws one measure of every head."""
    titles = measures.of_training()
    with_numbers = [
        name for name in MEASURES if np.isfinite(measured.values[name]).any() or name == page.view.of(TrainingView).measure
    ]
    _heading(
        _("All heads during training"),
        _("One line per head; the selected head is bold. Point at a line or tap it to see its name."),
    )
    st.segmented_control(
        _("Measure"), with_numbers, format_func=titles.__getitem__, required=True, label_visibility="collapsed", **bind("measure")
    )
    _head_chart(page, measured, at)
    st.caption(tokens.markdown(join_sentences((measures.meanings()[page.view.of(TrainingView).measure], measures.of_rows()))))


def _head_chart(page: Page, measured: Course, at: int) -> None:
    """Draws one line for each head."""
    measure, title = page.view.of(TrainingView).measure, measures.of_training()[page.view.of(TrainingView).measure]
    selected = measured.heads.index((page.attention.site, page.head))
    values = measured.values[measure]
    names = [tokens.site(site, head) for site, head in measured.heads]
    groups = [tokens.kind(site.stack, site.kind) for site, _head in measured.heads]
    chosen = (selected, specialised(measured.steps, values[:, selected]))
    chart = figures.measure(measured.steps, values, names, groups, at, chosen, title, page.dark)
    told = _worth_telling(values, selected)
    said = alt_text.curves([names[i] for i in told], [measured.steps] * len(told), [values[:, i] for i in told])
    _chart(page, chart, f"training-{measure}", title, said)


def _worth_telling(values: Array, selected: int) -> list[int]:
    """The selected head, and those with the largest and the smallest number at the last snapshot: [snapshot, head] of numbers."""
    last = values[-1]
    ends = [int(np.nanargmax(last)), int(np.nanargmin(last))] if np.isfinite(last).any() else []
    return list(dict.fromkeys([selected, *ends]))


def _losses(page: Page, measured: Course, at: int) -> None:
    _heading(_("Loss"), _("On this sentence and on the training data. The dashed line marks the snapshot shown."))
    if not page.info.losses:
        st.caption(_("The model’s folder has no readable curve.csv, so the training losses are unknown."))
    _loss_chart(page, measured, at)
    st.caption(
        _(
            "The training loss includes regularization (dropout, label smoothing), the validation loss does not, so "
            "the training loss can be higher."
        )
    )


def _loss_chart(page: Page, measured: Course, at: int) -> None:
    """Draws the losses of the training and of the sentence."""
    epochs = [one.step for one in page.info.losses]
    training, validation = (np.array([getattr(one, name) for one in page.info.losses]) for name in ("training", "validation"))
    chart = figures.losses(epochs, training, validation, measured.steps, measured.losses, at, page.dark)
    named = [_("training"), _("validation"), _("this sentence")]
    told = alt_text.curves(named, [epochs, epochs, measured.steps], [training, validation, np.asarray(measured.losses, float)])
    _chart(page, chart, "training-losses", _("Loss"), told)


def _moments(page: Page, measured: Course) -> None:
    """Draws a table of when each head specialized; a click on a row selects the head."""
    title = measures.of_training()[page.view.of(TrainingView).measure]
    _heading(
        tokens.markdown(_("When each head specializes: {measure}", measure=title)),
        _(
            "The first snapshot after which the head has made, and keeps, more than half of its total change. If the "
            "total change is near 0, the step means nothing: the head did not specialize by this measure."
        ),
    )
    table = moments(measured, page.view.of(TrainingView).measure)
    titles = {"kind": _("attention"), "pass": _("pass"), "layer": _("layer"), "head": _("head"), "moment": _("specializes at step")}
    titles |= {"start": _("start"), "end": _("end"), "change": _("change")}
    columns = {"moment": st.column_config.NumberColumn(titles["moment"], format="localized")}
    clicked = choosing_head(table, f"moments-{page.view.of(TrainingView).measure}")
    options = {"hide_index": True, "selection_mode": "single-row", **clicked}
    numeric_tables.draw(table, titles=titles, decimals=3, columns=columns, **options)


def _numbers(page: Page, measured: Course) -> None:
    measure = page.view.of(TrainingView).measure
    tables = {f"training-{measure}": numbers(measured, measure), "training-losses": _loss_table(page, measured)}
    captions = (measures.of_training()[measure], _("Loss"))
    for (name, table), caption in zip(tables.items(), captions, strict=True):
        st.caption(tokens.markdown(caption))
        numeric_tables.draw(table.rename(columns=localized))
        label = tokens.markdown(_("Download as CSV: {what}", what=caption))
        download.csv(table, page.trace, name, label=label, key=f"csv-{name}")


def _loss_table(page: Page, measured: Course) -> pd.DataFrame:
    """Table of losses by step; a step may be the end of an epoch, a snapshot, or both."""
    sentence = pd.DataFrame({_("this sentence"): measured.losses}, index=pd.Index(measured.steps, name=_("step")))
    index = pd.Index([one.step for one in page.info.losses], name=_("step"))
    columns = {
        _("training"): [one.training for one in page.info.losses],
        _("validation"): [one.validation for one in page.info.losses],
    }
    return pd.DataFrame(columns, index=index).join(sentence, how="outer").sort_index()


def _chart(page: Page, figure: object, name: str, title: str, told: str) -> None:
    chart(figure, (page.trace, title), fills=True, key=name, alt=titled(title, told))


def _heading(title: str, explanation: str) -> None:
    st.markdown(f"**{title}**")
    st.caption(explanation)
