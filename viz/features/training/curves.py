"""Curves of the training film: losses, a measure of every head, and when each head specialized."""

import numpy as np
import streamlit as st

from viz.features.training import curve_panels as panels
from viz.features.training.metrics import Course, moments, numbers
from viz.features.training.view import MEASURES, TrainingView
from viz.i18n.translate import _, join_sentences
from viz.labels import measures, tokens
from viz.session.state import Page, bind
from viz.widgets import download, drawn_panels
from viz.widgets.cards import card, choosing_head, expander_state


def draw(page: Page, measured: Course) -> None:
    """Draws both pictures, the table of when heads specialized, and the numbers."""
    heads, losses = st.columns([3, 2])
    with heads, card("training-heads"):
        _heads(page, measured)
    with losses, card("losses"):
        _losses(page, measured)
    with card("moments"):
        _moments(page, measured)
    with st.expander(_("The numbers behind these charts"), icon=":material/table:", **expander_state("part-training")) as part:
        if part.open:
            _numbers(page, measured)


def draw_one(page: Page, measured: Course, name: str) -> None:
    """Draws the one of both pictures that fills the screen in big mode: `curves` of all heads, or `losses`."""
    (_draw_losses if name == "losses" else _draw_heads)(page, measured)


def _draw_heads(page: Page, measured: Course) -> None:
    measure = page.view.of(TrainingView).measure
    drawn_panels.draw_content(page, panels.of_heads(page, measured), f"training-{measure}", fills=True)


def _draw_losses(page: Page, measured: Course) -> None:
    drawn_panels.draw_content(page, panels.of_losses(page, measured), "training-losses", fills=True)


def _heads(page: Page, measured: Course) -> None:
    """Draws one measure of every head."""
    titles, measure = measures.of_training(), page.view.of(TrainingView).measure
    with_numbers = [name for name in MEASURES if np.isfinite(measured.values[name]).any() or name == measure]
    _heading(
        _("All heads during training"),
        _("One line per head; the selected head is bold. Point at a line or tap it to see its name."),
    )
    st.segmented_control(
        _("Measure"), with_numbers, format_func=titles.__getitem__, required=True, label_visibility="collapsed", **bind("measure")
    )
    _draw_heads(page, measured)
    st.caption(tokens.markdown(join_sentences((measures.meanings()[measure], measures.of_rows()))))


def _losses(page: Page, measured: Course) -> None:
    _heading(_("Loss"), _("On this sentence and on the training data. The dashed line marks the snapshot shown."))
    if not page.info.losses:
        st.caption(_("The model’s folder has no readable curve.csv, so the training losses are unknown."))
    _draw_losses(page, measured)
    st.caption(
        _(
            "The training loss includes regularization (dropout, label smoothing), the validation loss does not, so "
            "the training loss can be higher."
        )
    )


def _moments(page: Page, measured: Course) -> None:
    """Draws a table of when each head specialized; a click on a row selects the head."""
    panel, measure = panels.of_moments(page, measured), page.view.of(TrainingView).measure
    drawn_panels.draw_words(panel)
    key = f"moments-{measure}"
    columns = {"moment": st.column_config.NumberColumn(panels.titles_of_moments()["moment"], format="localized")}
    clicked = choosing_head(moments(measured, measure), key)["on_select"]
    drawn_panels.draw_content(page, panel, key, columns=columns, selection_mode="single-row", on_select=clicked)


def _numbers(page: Page, measured: Course) -> None:
    measure = page.view.of(TrainingView).measure
    files = {f"training-{measure}": numbers(measured, measure), "training-losses": panels.losses(page, measured)}
    for panel, (name, table) in zip(panels.of_numbers(page, measured), files.items(), strict=True):
        st.caption(tokens.markdown(panel.title))
        drawn_panels.draw_content(page, panel, f"numbers-{name}")
        label = tokens.markdown(_("Download as CSV: {what}", what=panel.title))
        download.csv(table, page.trace, name, label=label, key=f"csv-{name}")


def _heading(title: str, explanation: str) -> None:
    st.markdown(f"**{title}**")
    st.caption(explanation)
