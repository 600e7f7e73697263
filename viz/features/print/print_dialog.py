"""The dialog “Figure for print”: options, a preview, a caption, and the file as SVG, PDF or PNG."""

from functools import partial
from typing import get_args

import streamlit as st

from model.errors import HeadlightError
from model.trace.types import Trace
from viz.export import tables
from viz.features.print import writers
from viz.features.print.catalogue import Figure, caption
from viz.features.print.options import (
    LARGEST_FONT,
    NARROWEST,
    ONE_COLUMN,
    SMALLEST_FONT,
    TWO_COLUMNS,
    WIDEST,
    Colours,
    Maps,
    Options,
)
from viz.features.print.panel_figures import figures_for
from viz.features.print.shapes import Drawing
from viz.i18n.translate import _, error_message
from viz.labels import tokens
from viz.panels import Picture
from viz.session.state import address

PREVIEW_DOTS = 220
"""Pixels per inch of the preview: sharp at the size at which it is shown."""


def button(picture: Picture) -> None:
    """Draws the button beside a picture that opens the dialog; its figures are made when it is clicked."""
    help_ = _("Saves this picture for a paper, a poster or slides: as SVG, PDF or PNG, in millimeters and points.")
    if st.button(_("Figure …"), key=f"figure-{picture.key}", icon=":material/print:", type="tertiary", help=help_):
        open_dialog(figures_for(picture), picture.trace, address(), picture.first)


def open_dialog(figures: list[Figure], trace: Trace, link: str, first: str) -> None:
    """Opens the dialog.

    Args:
        figures: the pictures to choose from.
        trace: the run that they show.
        link: the address that shows the page again.
        first: name of the picture that is chosen first; empty: the first.
    """

    @st.dialog(_("Figure for print"), width="large")
    def dialog() -> None:
        try:
            _draw(figures, trace, link, first)
        except HeadlightError as error:
            st.warning(tokens.markdown(error_message(error)), icon=":material/info:")

    dialog()


def _draw(figures: list[Figure], trace: Trace, link: str, first: str) -> None:
    names = [figure.name for figure in figures]
    chosen = figures[0]
    if len(figures) > 1:
        titles = {figure.name: f"{figure.title} ({figure.name})" for figure in figures}
        start = names.index(first) if first in names else 0
        name = st.selectbox(_("Picture"), names, index=start, format_func=titles.__getitem__, key="figure:picture")
        chosen = figures[names.index(name)]
    controls, preview = st.columns([2, 3], gap="medium")
    with controls:
        options = _options()
    sheet = chosen.draw(options)
    with preview:
        size = _("{width:.0f} × {height:.0f} mm", width=sheet.width, height=sheet.height)
        st.image(writers.png(sheet, PREVIEW_DOTS), caption=size, width="stretch")
        for note in sheet.notes:
            st.caption(tokens.markdown(note))
    st.caption(_("Caption:"))
    st.code(caption(trace, chosen.title, link), language=None, wrap_lines=True)
    _downloads(sheet, trace, chosen.name)


def _options() -> Options:
    """Draws the controls."""
    widths = {ONE_COLUMN: _("One column"), TWO_COLUMNS: _("Two columns"), 0.0: _("Other")}
    width = st.segmented_control(
        _("Width"), list(widths), format_func=widths.__getitem__, default=ONE_COLUMN, required=True, key="figure:width"
    )
    if not width:
        width = st.number_input(_("Width in mm"), NARROWEST, WIDEST, 120.0, 1.0, format="%.0f", key="figure:millimeters")
    size = st.number_input(_("Font size in pt"), SMALLEST_FONT, LARGEST_FONT, 7.0, 0.5, format="%.1f", key="figure:font")
    colours: dict[Colours, str] = {"light": _("light"), "dark": _("dark"), "grayscale": _("grayscale")}
    scheme = st.segmented_control(
        _("Colors"), get_args(Colours), format_func=colours.__getitem__, default="light", required=True, key="figure:colors"
    )
    kinds: dict[Maps, str] = {"vector": _("vectors"), "image": _("lossless image")}
    maps = st.segmented_control(
        _("Map cells"), get_args(Maps), format_func=kinds.__getitem__, default="vector", required=True, key="figure:maps"
    )
    title = st.toggle(_("Title"), value=True, key="figure:title")
    names = st.toggle(_("Token labels"), value=True, key="figure:labels")
    return Options(width or ONE_COLUMN, size, title, scheme or "light", names, maps or "vector")


def _downloads(sheet: Drawing, trace: Trace, name: str) -> None:
    """Draws a button for each kind of file. A file is made when its button is clicked."""
    mimes = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
    for column, (ending, write) in zip(st.columns(len(writers.WRITERS)), writers.WRITERS.items(), strict=True):
        column.download_button(
            _("Download as {kind}", kind=ending.upper()),
            partial(write, sheet),
            tables.file_name(trace, name, ending=ending),
            mimes[ending],
            icon=":material/download:",
            on_click="ignore",
            key=f"figure-{ending}",
            width="stretch",
        )
