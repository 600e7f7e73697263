"""The pictures of Explore and of the beam search for print, for the dialog “Figure for print”."""

from contextlib import suppress
from typing import Any

import numpy as np
import streamlit as st

from model.attribution.sums import Why, Writes
from model.errors import HeadlightError
from viz.export import run_archive, tables
from viz.export.print import line_plot as joined
from viz.export.print.catalogue import Choice, Figure, of_chart, standard_figures
from viz.export.run_archive import About, Place
from viz.i18n.translate import _, said
from viz.session.state import Page, address
from viz.views.explore import reading, reading_card, writes
from viz.views.explore.reading import Shown
from viz.views.step import why
from viz.widgets import print_dialog


def print_button(page: Page, shown: Shown, key: str) -> None:
    """Draws the button that opens the dialog with the pictures of Explore."""
    first = "head" if reading.is_raw(page, shown) else "reading"
    print_dialog.button(lambda: figures(page, shown), page.trace, address(), key, first)


def choice(page: Page) -> Choice:
    """The part of the run that the page shows."""
    view = page.view
    return Choice(page.attention, page.head, view.query, view.key, view.hypothesis)


def figures(page: Page, shown: Shown) -> list[Figure]:
    """The reading of the selected site, if it is not the weights of the head, and the standard figures of the run."""
    standard = list(standard_figures(page.trace, choice(page)))
    return standard if reading.is_raw(page, shown) else [*_of_reading(page, shown), *standard]


def _of_reading(page: Page, shown: Shown) -> list[Figure]:
    title = reading.title(page, shown)
    found = [of_chart("reading", title, reading_card.drawn(page, shown), reading_card.in_words(page, shown))]
    if shown.values.ndim == 1:
        return found
    sides = joined.of_reading(page.trace, page.attention.site, shown.values, shown.keys, page.view.query)
    return [*found, Figure("reading-lines", title, lambda options: joined.lines(sides, options, title))]


def sums(page: Page) -> dict[str, dict[str, Any]]:
    """Why the selected cell has its score, and why the selected token was written, for an archive; without what is not known.

    Where no cell is selected, it is the strongest one of the selected row, or of the last row.
    """
    view, attention, found = page.view, page.attention, dict[str, dict[str, Any]]()
    query = view.query if 0 <= view.query < attention.weights.shape[1] else attention.weights.shape[1] - 1
    strongest = int(np.nan_to_num(attention.head(page.head)[query]).argmax())
    key = view.key if min(view.query, view.key) >= 0 else strongest
    with suppress(HeadlightError):
        asked = Why(view.request(), str(attention.site), page.head, query, key, why.compared(page))
        found["why"] = page.engine.ask(asked).to_json()
    if page.trace.steps:
        with suppress(HeadlightError):
            found["writes"] = page.engine.ask(Writes(view.request(), writes.token(page), writes.rival(page))).to_json()
    return found


def archive_button(page: Page) -> None:
    """Draws the button; the archive is made when it is pressed."""
    place = Place(page.attention.site, page.head, page.view.query)
    link = "" if page.info.recorded else address()
    st.download_button(
        _("Download everything (.zip)"),
        lambda: run_archive.archive(page.trace, place, About(link, said(page.info.summary), sums(page))),
        tables.file_name(page.trace, ending="zip"),
        "application/zip",
        icon=":material/inventory_2:",
        on_click="ignore",
        key="archive",
        help=_(
            "The run, figures, tables, the link, the model card, and a notebook that draws the run again. Drop the "
            "archive on the Checkpoint page to open it here."
        ),
    )
