"""The dialog “Export” of Explore: five ways to save what the page shows, each with what it is for; and its pictures for print."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

from viz.canvas import standalone
from viz.canvas.scenes import overlay
from viz.export import tables
from viz.feature import features
from viz.features.print import line_plot as joined
from viz.features.print import print_dialog, run_archive
from viz.features.print.catalogue import Choice, Figure, of_chart, of_image, standard_figures
from viz.features.print.run_archive import About, ArchivedCell
from viz.i18n.translate import _, said
from viz.session.state import Page, address
from viz.views.explore import panels, reading
from viz.views.explore.reading import SiteReading
from viz.widgets import download

_PRINT = "export:print"
"""The dialog of figures was chosen in the dialog of exports, and opens in its place."""


def button(page: Page, site_reading: SiteReading) -> None:
    """Draws the button that opens the dialog with all ways to save what the page shows."""
    if st.session_state.pop(_PRINT, False):
        first = "head" if reading.is_raw(page, site_reading) else "reading"
        print_dialog.open_dialog(figures(page, site_reading), page.trace, address(), first)
    if st.button(_("Export …"), key="export", icon=":material/download:"):
        _opened(page, site_reading)


def _opened(page: Page, site_reading: SiteReading) -> None:
    @st.dialog(_("Export"), width="large")
    def opened() -> None:
        ways: dict[str, tuple[str, Callable[[], None]]] = {
            _("Figure"): (
                _("For a paper, a poster or slides: SVG, PDF or PNG, in millimeters and points, with a caption."),
                _figure_button,
            ),
            _("Table"): (
                _("The numbers of this picture with all digits, for a spreadsheet or a program of your own (CSV)."),
                lambda: download.csv(
                    reading.table(page, site_reading), page.trace, *reading.file_parts(page, site_reading), key="export-csv"
                ),
            ),
            _("Web page"): (
                _("One HTML file with everything that the overview can do here; it works offline and without a server."),
                lambda: _page_button(page),
            ),
            _("Trace"): (
                _("The whole run with all its numbers. The Checkpoint page opens it again."),
                lambda: _trace_button(page),
            ),
            _("Everything"): (
                _(
                    "The run, figures, tables, the link, the model card, and a notebook that draws the run again. Drop the "
                    "archive on the Checkpoint page to open it here."
                ),
                lambda: _archive_button(page),
            ),
        }
        for title, (words, draw) in ways.items():
            text, way = st.columns([3, 2], vertical_alignment="center")
            text.markdown(f"**{title}**  \n{words}")
            with way:
                draw()

    opened()


def _figure_button() -> None:
    """Draws the button that opens the dialog of figures: one dialog at a time, so this one closes."""
    if st.button(_("Figure …"), key="figure-explore", icon=":material/print:", on_click=_ask_for_figures):
        st.rerun()


def _ask_for_figures() -> None:
    st.session_state[_PRINT] = True


def _trace_button(page: Page) -> None:
    st.download_button(
        _("Download the run (trace file)"),
        lambda: tables.trace_file(page.trace),
        tables.file_name(page.trace, ending="trace.safetensors"),
        "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
    )


def _page_button(page: Page) -> None:
    st.download_button(
        _("Download the overview as a web page"),
        lambda: standalone.page(page.trace, page.attention.site, page.head, page.view.query, hide=page.view.hide),
        tables.file_name(page.trace, ending="html"),
        "text/html",
        icon=":material/download:",
        on_click="ignore",
    )


def choice(page: Page) -> Choice:
    """The part of the run that the page shows."""
    view = page.view
    return Choice(page.attention, page.head, view.query, view.key, view.hypothesis, view.overlay)


def figures(page: Page, site_reading: SiteReading) -> list[Figure]:
    """The reading of the selected site, if it is not the weights of the head, and the standard figures of the run."""
    standard = list(standard_figures(page.trace, choice(page)))
    return standard if reading.is_raw(page, site_reading) else [*_of_reading(page, site_reading), *standard]


def _of_reading(page: Page, site_reading: SiteReading) -> list[Figure]:
    title = reading.title(page, site_reading)
    found = [
        of_chart(
            "reading", title, panels.figure_of_reading(page, site_reading, page.dark), panels.reading_in_words(page, site_reading)
        )
    ]
    if site_reading.values.ndim == 1:
        return found
    if overlay.fits(page.trace, page.attention.site):
        whole = np.zeros(page.attention.mask.shape)
        whole[:, site_reading.keys] = site_reading.values
        return [*found, of_image(page.trace, choice(page), "reading-image", title, whole)]
    sides = joined.of_reading(page.trace, page.attention.site, site_reading.values, site_reading.keys, page.view.query)
    return [*found, Figure("reading-lines", title, lambda options: joined.lines(sides, options, title))]


def _archive_button(page: Page) -> None:
    """Draws the button; the archive is made when it is pressed."""
    place = ArchivedCell(page.attention.site, page.head, page.view.query)
    link = "" if page.info.recorded else address()
    st.download_button(
        _("Download everything (.zip)"),
        lambda: run_archive.archive(replace(page.trace, sums=_sums(page)), place, About(link, said(page.info.summary))),
        tables.file_name(page.trace, ending="zip"),
        "application/zip",
        icon=":material/inventory_2:",
        on_click="ignore",
        key="archive",
    )


def _sums(page: Page) -> dict[str, Mapping[str, Any]]:
    """The sums that an archive keeps; a recording has those that it was saved with."""
    found = dict(page.trace.sums)
    for feature in features():
        found |= feature.saved_sums(page) if feature.saved_sums is not None else {}
    return found
