"""Calculation of one weight, on any page: how it was calculated and what it contributes, recomputed and compared with the run."""

from typing import Any

import streamlit as st

from model.errors import HeadlightError
from model.trace.cell_arithmetic import Explanation
from viz import feature
from viz.i18n.translate import _, error_message, translated
from viz.labels import tokens
from viz.panels import Text
from viz.session import patient_engine
from viz.session.state import Page, bind, update
from viz.views.step import cell_panels
from viz.widgets import download
from viz.widgets.cards import card, say
from viz.widgets.drawn_panels import draw, draw_content, draw_text


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
            _panel_of_cell(page, page.view.query, page.view.key)


def _close() -> None:
    fields: dict[str, Any] = {"key": -1}
    for panel in feature.cell_panels().values():
        fields |= panel.reset
    update(**fields)


def _panel_of_cell(page: Page, query: int, key: int) -> None:
    """Draws the calculation of a cell of the page's site and head, or says why there is none.

    Args:
        query, key: counted from 0.
    """
    others = feature.cell_panels()
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
        cell = cell_panels.explained(page, query, key)
    except HeadlightError as error:
        say(error_message(error))
        return
    with card("arithmetic", "content"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"**{tokens.markdown(cell_panels.title(page, cell))}**", width="content")
            badge(cell)
        products = cell_panels.of_products(page, cell)
        st.caption(tokens.markdown(products.words))
        draw_content(page, products, "cell-products")
        draw_content(page, cell_panels.of_calculation(page, cell), "cell-calculation", sentence=st.caption)
        draw(page, cell_panels.of_contributions(page, cell), "cell-row")
        draw_text(Text(list(cell_panels.share(cell))), st.caption)
        row = cell_panels.of_row(page, cell)
        with st.expander(row.title, icon=":material/table:"):
            draw_content(page, row, "cell-numbers")
            parts = (cell.site, f"head-{cell.head + 1}", f"query-{cell.query + 1}")
            frame = cell_panels.table(page, cell)
            download.csv(frame, page.trace, *parts, label=_("Download this row as CSV"), key="cell-csv")


def badge(cell: Explanation) -> None:
    """Draws whether the calculation, repeated in float64, matches the run: in words, with an icon and a color."""
    if cell.agrees:
        st.badge(cell_panels.verdict(cell), icon=":material/check:", color="green")
    else:
        st.badge(cell_panels.verdict(cell), icon=":material/error:", color="red")
