"""The first picture: one head as lines between words, or over an image; a sentence on what is seen, and the way to all heads."""

import streamlit as st

from model.engine.api import Models
from viz.canvas.scenes import first_picture, overlay
from viz.i18n.translate import _, _n
from viz.labels import tokens
from viz.session import visits
from viz.session.state import Page, update
from viz.url.links import language_model
from viz.url.view_state import ANOTHER_MODEL
from viz.views.explore import reading, tour


def show(page: Page) -> None:
    """Draws the first picture of a new visitor; everything else comes after a click."""
    with st.container(key="first-picture", gap="small"):
        st.html(f"<h1>{_title(page)}</h1><p>{_sentence(page)}</p>")
        tour.picture(page, first_picture.clearest_head(page.attention), "first-lines")
        heads = sum(one.heads for one in page.trace.attention.values())
        with st.container(horizontal=True, horizontal_alignment="center"):
            if reading.fits(page):  # its map is a step of the tour
                tours = _("Show me in five steps")
                st.button(tours, key="tour-first", icon=":material/directions_walk:", on_click=tour.begin)
            words = _n("Show all of it: {count} head", "Show all {count} heads", heads, count=heads)
            if st.button(words, key="all-heads-first", icon=":material/grid_view:"):
                visits.leave_first_picture()
                st.rerun()  # the whole page: its settings open
            if (other := language_model(page.engine.ask(Models()).models)) is not None:
                words, title = _("Language model"), tokens.markdown(other.title)
                st.button(words, key="other-first", icon=":material/forum:", help=title, on_click=_open, args=(other.name,))


def _open(model: str) -> None:
    """Shows the whole page with another model."""
    visits.leave_first_picture()
    update(**ANOTHER_MODEL | {"model": model})


def _title(page: Page) -> str:
    if overlay.fits(page.trace, page.attention.site):
        writes = page.attention.site.kind == "cross"
        return _("Where a network looks while it writes about an image") if writes else _("Where a network looks in an image")
    if page.attention.site.kind == "cross":
        return _("Where a network looks while it translates")
    return _("Where a network looks while it reads")


def _sentence(page: Page) -> str:
    if overlay.fits(page.trace, page.attention.site) and page.attention.site.kind == "cross":
        return _(
            "Orange is where one head looked when a token was generated. Point at another token above the image to see its row."
        )
    if overlay.fits(page.trace, page.attention.site):
        return _("Orange is where one head looked: the stronger, the more. Click a patch to see where the head looked from there.")
    if page.attention.site.kind == "cross":
        return _(
            "Each line leads from a word that the network wrote to a word of your sentence that it attended to: the wider, "
            "the more."
        )
    return _("Each line leads from a word to a word that the network attended to for it: the wider, the more.")
