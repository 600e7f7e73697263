"""The parts below the steps of a decode: latents, the cache, and costs over length."""

import streamlit as st

from viz.features.modern_attention import cache, latents, length
from viz.i18n.translate import _
from viz.session.state import Page
from viz.widgets.cards import expander_state
from viz.widgets.offers import CACHED, offer

OF_CACHE = ("cache", "ways", "operations")
OF_LENGTH = ("length", "bytes", "linear")
"""The names in a link's `open` of what each of two parts holds; a lecture shows one of them."""


def draw(page: Page) -> None:
    """Draws all of them."""
    latents.draw(page)
    _costs(page)


def _costs(page: Page) -> None:
    """Draws what a decoder keeps and computes, each part only while it is open; for others it offers a model with a cache."""
    if page.info.recorded or not page.trace.steps or not page.trace.of("decoder", "self"):
        offer(page, "cache", _("Open a model that keeps a cache of keys and values"), CACHED, opened="cache")
        return
    for parts, icon, title, draw in (
        (OF_CACHE, "memory", _("The cache: what is kept for each token, and what that saves"), cache.draw),
        (OF_LENGTH, "straighten", _("Cost over length, from 1,000 to 1,000,000 tokens"), length.draw),
    ):
        state = expander_state(parts[0], page.view.opened, parts)
        with st.expander(title, icon=f":material/{icon}:", **state) as part:
            if part.open and (sizes := cache.sizes_of(page)) is not None:
                draw(page, sizes)
