"""Calculation of one weight, on any page: how it was calculated and what it contributes, recomputed and compared with the run."""

from collections.abc import Iterator
from typing import Any

import streamlit as st

from model.engine.api import Explain
from model.errors import HeadlightError
from model.trace.cell_arithmetic import Explanation
from model.trace.types import Trace
from viz.feature import cell_panels
from viz.figures import arithmetic as figures
from viz.i18n.translate import _, error_message, translated
from viz.labels import tokens
from viz.panels import TextLine
from viz.session import patient_engine
from viz.session.state import Page, bind, update
from viz.views.step import cell_calculation
from viz.widgets import download, numeric_tables
from viz.widgets.cards import card, chart, say


def dialog(page: Page) -> None:
    """Draws the calculation of the state's open cell beside the maps of the page, or below them where there is no room.

    The page stays in use: another cell changes what stands here. Closing it clears the cell. Nothing where no row is chosen.
    """
    if page.view.query < 0:
        return
    with st.container(key="cell-dialog"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{tokens.markdown(tokens.site(page.attention.site, page.head))}**", width="content")
            st.button(_("Close"), key="close-cell", icon=":material/close:", type="tertiary", on_click=_close)
        with patient_engine.show_pending():
            draw(page, page.view.query, page.view.key)


def _close() -> None:
    fields: dict[str, Any] = {"key": -1}
    for panel in cell_panels().values():
        fields |= panel.reset
    update(**fields)


def draw(page: Page, query: int, key: int) -> None:
    """Draws the calculation of a cell of the page's site and head, or says why there is none.

    Args:
        query, key: counted from 0.
    """
    others = cell_panels()
    titles = {"how": _("How it was calculated")} | {name: translated(panel.title) for name, panel in others.items()}
    st.segmented_control(
        _("What the panel shows"),
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        label_visibility="collapsed",
        **bind("cell"),
    )
    if page.view.cell in others:
        others[page.view.cell].draw(page, query, key)
    else:
        _calculation(page, query, key)


def _calculation(page: Page, query: int, key: int) -> None:
    try:
        found = page.engine.ask(Explain(page.view.request(), str(page.attention.site), page.head, query, key))
    except HeadlightError as error:
        say(error_message(error))
        return
    keys = tokens.keys(page.trace, page.attention, longest=None)
    with card("arithmetic", "content"):
        title = cell_calculation.title(page, query, key)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{tokens.markdown(title)}**", width="content")
            badge(found)
        st.caption(_("The query and key vectors of this head, dimension by dimension, and their products:"))
        names = (page.trace, title)
        chart(figures.products(found.q, found.k, page.dark), names, key="cell-products")
        _lines(cell_calculation.score(found))
        _lines(cell_calculation.weight(found))
        _moves(found, keys, page.dark, names)
        _table(page, found)


def badge(found: Explanation) -> None:
    """Draws whether the calculation, repeated in float64, matches the run: in words, with an icon and a color."""
    if found.agrees:
        st.badge(cell_calculation.verdict(found), icon=":material/check:", color="green")
    else:
        st.badge(cell_calculation.verdict(found), icon=":material/error:", color="red")


def _lines(lines: Iterator[TextLine]) -> None:
    for line in lines:
        if line.formula:
            st.latex(line.text)
        else:
            st.caption(line.text.replace("_", "\\_"))


def _moves(found: Explanation, keys: list[str], dark: bool, printed: tuple[Trace, str]) -> None:
    st.markdown("**" + _("What this weight contributes") + "**")
    if found.silenced:
        st.caption(_("This head is silenced: its output was replaced by zeros, so nothing is moved."))
    st.caption(
        _(
            "The key’s contribution to the residual stream is weight · v, projected by this head’s part of W_O. "
            "Compare its length with the weight: a large weight on a short value moves almost nothing."
        )
    )
    figure = figures.row(found.weights, found.moved, keys, found.key, dark)
    chart(figure, printed, key="cell-row")
    _lines(cell_calculation.share(found))


def _table(page: Page, found: Explanation) -> None:
    table = cell_calculation.table(page, found)
    with st.expander(_("The whole row as numbers"), icon=":material/table:"):
        numeric_tables.draw(table)
        parts = (found.site, f"head-{found.head + 1}", f"query-{found.query + 1}")
        download.csv(table, page.trace, *parts, label=_("Download this row as CSV"), key="cell-csv")
