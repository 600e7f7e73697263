"""Buttons that open, on the same page, a model or a recorded run that has what the shown one lacks."""

import streamlit as st

from model.engine.api import Describe
from model.errors import HeadlightError
from viz.session.state import Page, update
from viz.url.view_state import another_model

ROTARY = SHARING = CACHED = TILED = "captions-lm"
"""A bundled model with rotary positions and a cache, whose heads share keys and values, and whose scores a run records."""

LATENTS, SINKS = "latents.trace.safetensors", "sinks.trace.safetensors"
"""Recorded runs that come with the lectures: of latent attention, and of learned sinks beside a window in layer 1."""


def offer(page: Page, key: str, label: str, model: str, **fields: object) -> None:
    """Draws a button that opens a model or a recorded run, if it is there.

    Args:
        key: of the button.
        label: what it opens.
        model: its name.
        fields: further fields of the state.
    """
    try:
        page.engine.ask(Describe(model))
    except HeadlightError:
        return
    fields = another_model() | {"model": model} | fields
    st.button(label, key=f"offer-{key}", icon=":material/arrow_forward:", on_click=update, kwargs=fields)
