"""Panels on a page: title, words, the content as Streamlit draws it, and the button that saves it for print."""

from collections.abc import Sequence

import streamlit as st

from viz import canvas
from viz.canvas import Chosen
from viz.export.print.panel_figures import figures_of
from viz.labels.tokens import markdown
from viz.panels import Arrows, Bars, Chart, Panel, Plot, Scene, Table, Text
from viz.session.state import Page, address
from viz.widgets import numeric_tables, print_dialog
from viz.widgets.cards import chart


def draw(
    page: Page, panel: Panel, key: str, *, chosen: Chosen | None = None, keeps: Sequence[str] = (), fills: bool = False
) -> None:
    """Draws a panel whole.

    Args:
        key: stable name of the drawing on the page.
        chosen, keeps: of a drawing, as `viz.canvas.draw` takes them.
        fills: of a chart, as `viz.widgets.cards.chart` takes it.
    """
    draw_words(panel)
    draw_content(page, panel, key, chosen=chosen, keeps=keeps, fills=fills)


def draw_words(panel: Panel) -> None:
    """Draws the title of a panel, and the sentences below it."""
    if panel.title:
        st.markdown(f"**{markdown(panel.title)}**")
    for sentence in filter(None, (panel.words, panel.about)):
        st.caption(markdown(sentence))


def draw_content(
    page: Page, panel: Panel, key: str, *, chosen: Chosen | None = None, keeps: Sequence[str] = (), fills: bool = False
) -> None:
    """Draws a panel without its title and words; arguments as for `draw`."""
    match panel.content:
        case Scene(kind, data):
            canvas.draw(kind.lower(), data, key=key, chosen=chosen, keeps=keeps)
        case Chart() | Arrows() as drawn:
            chart(drawn.figure(page.dark), fills=fills, key=key, alt=drawn.alt or panel.title)
        case Plot() as plot:
            chart(plot.draw(page.dark), fills=fills, key=key, alt=plot.alt)
        case Table() as table:
            numeric_tables.draw(table.frame, decimals=table.decimals, key=key)
        case Bars() as bars:
            numeric_tables.draw(bars.table.frame, decimals=2, key=key)
        case Text(lines):
            for line in lines:
                (st.latex if line.formula else st.markdown)(line.text if line.formula else markdown(line.text))
    if isinstance(panel.content, Scene | Chart | Arrows | Plot):
        print_dialog.button(lambda: figures_of(panel), page.trace, address(), key)
