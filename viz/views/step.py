"""Step through: the decode, token by token. Every step was computed when the sentence ran; the browser reveals one by one."""

import streamlit as st

from model.trace import Site
from viz import canvas, labels
from viz.page import Page, bind, update
from viz.texts import _


def show(page: Page) -> None:
    """Draws the page."""
    sites = [str(site) for site in page.trace.attention]
    where, head = st.columns([3, 1])
    where.selectbox(
        _("Attention to watch"), sites, format_func=lambda text: labels.site(Site.parse(text)), **bind("site", head=0, query=-1)
    )
    head.selectbox(_("Head"), range(page.attention.heads), format_func=lambda index: str(index + 1), **bind("head"))
    changes = canvas.player(page.trace, page.attention.site, page.head, page.view.step, key="player").changes()
    if "head" in changes or "site" in changes:
        page.change(**changes)
    if changes:
        update(**changes)
    if not page.trace.steps:
        st.info(_("Nothing was written in this run, so there is nothing to step through."), icon=":material/info:")
