"""The button of Explore that saves everything of a run in one archive."""

import streamlit as st

from viz.export import run_archive, tables
from viz.export.run_archive import About, Place
from viz.i18n.translate import _, said
from viz.session.state import Page, address


def button(page: Page) -> None:
    """Draws the button; the archive is made when it is pressed."""
    place = Place(page.attention.site, page.head, page.view.query)
    about = About("" if page.info.recorded else address(), said(page.info.summary))
    st.download_button(
        _("Download everything (.zip)"),
        lambda: run_archive.archive(page.trace, place, about),
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
