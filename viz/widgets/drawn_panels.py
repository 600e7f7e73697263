"""Panels on a page: title, words, the content as Streamlit draws it, and the button that saves it for print."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from viz import canvas
from viz.feature import draw_parts
from viz.labels.tokens import markdown
from viz.panels import Aligned, Arrows, Bars, Chart, Curves, Markup, Panel, Picture, Plot, Scene, Table, Text
from viz.session.state import Page
from viz.widgets import numeric_tables
from viz.widgets.cards import chart


def draw(page: Page, panel: Panel, key: str, *, fills: bool = False, **options: Any) -> None:
    """Draws a panel whole.

    Args:
        key: stable name of the drawing on the page.
        fills: of a chart, as `viz.widgets.cards.chart` takes it.
        options: those of what draws the content: `viz.canvas.draw`, `viz.widgets.cards.chart`, or `numeric_tables.draw`.
    """
    draw_words(panel)
    draw_content(page, panel, key, fills=fills, **options)


def draw_words(panel: Panel) -> None:
    """Draws the title of a panel, and the sentences below it."""
    if panel.title:
        st.markdown(f"**{markdown(panel.title)}**")
    for sentence in filter(None, (*panel.words.splitlines(), panel.about)):
        st.caption(markdown(sentence))


def draw_content(page: Page, panel: Panel, key: str, *, fills: bool = False, printable: bool = True, **options: Any) -> None:
    """Draws a panel without its title and words; arguments as for `draw`.

    Args:
        printable: whether a button below a drawing saves it for print.
    """
    if panel.on_page is not None:
        panel = replace(panel, content=panel.on_page(), on_page=None, paper=None)
    match panel.content:
        case Scene(kind, data):
            canvas.draw(kind.lower(), data, key=key, **options)
        case Chart() | Arrows() as drawn:
            chart(drawn.figure(page.dark), fills=fills, key=key, alt=drawn.alt or panel.title, **options)
        case Plot(draw=plot, alt=alt) | Curves(plot=plot, alt=alt):
            chart(plot(page.dark), fills=fills, key=key, alt=alt, **options)
        case Table() as table:
            _draw_table(table, key, **options)
        case Bars() as bars:
            _draw_table(bars.table, key, **options)
        case Aligned() | Markup() as markup:
            st.html(markup.html)
        case Text() as text:
            draw_text(text, **options)
    if printable and isinstance(panel.content, Scene | Chart | Curves | Arrows | Plot):
        draw_parts("picture", Picture(key, page.trace, lambda: [panel]))


def _draw_table(table: Table, key: str, **options: Any) -> None:
    """Draws a table; options as those of `numeric_tables.draw`."""
    if not table.named:
        options["hide_index"] = True
    numeric_tables.draw(table.frame, titles=table.titles, decimals=table.decimals, key=key, **options)


def draw_text(text: Text, sentence: Callable[[str], object] = st.markdown) -> None:
    """Draws sentences and formulas, one below the other.

    Args:
        sentence: draws a sentence, given its Markdown.
    """
    for line in text.lines:
        if line.formula:
            st.latex(line.text)
        else:
            sentence(markdown(line.text))
