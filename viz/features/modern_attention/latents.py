"""Latent attention: what is kept of each token, beside the keys and values that all heads make of it."""

from collections.abc import Sequence

import numpy as np
import streamlit as st

from model.engine.api import Run
from model.errors import HeadlightError
from model.trace.types import Trace
from viz.features.modern_attention import latent_numbers as latents
from viz.features.modern_attention.latent_numbers import Latents
from viz.figures import stages as figures
from viz.i18n.translate import _, error_message, number
from viz.labels import alt_text, tokens
from viz.session.state import Page
from viz.widgets.cards import chart, expander_state, panel, say


def has_latents(page: Page) -> bool:
    """Whether the attention that the page shows makes keys and values from latents."""
    site, stack = page.attention.site, (page.trace.model.get("spec") or {}).get(page.attention.site.stack)
    described = ((stack or {}).get("attention") or {}).get("latent")
    return site.kind == "self" and bool(described or f"{site}/latents" in page.trace.stages)


def draw(page: Page) -> None:
    """Draws the latents of the chosen layer and what is made of them, while this part is open."""
    if not has_latents(page):
        return
    title, state = _("Latents: what is kept, and the keys and values made from it"), expander_state("latents", page.view.opened)
    with st.expander(title, icon=":material/compress:", **state) as part, panel("latents"):
        if part.open:
            _drawn(page)


def recorded(page: Page) -> tuple[Trace, Latents | None]:
    """The run with the latents of the chosen layer; None: they were not recorded.

    Raises:
        HeadlightError: the run is not possible.
    """
    trace = page.trace if page.info.recorded else page.engine.ask(Run(page.view.request(keep=("qkv", "stages"))))
    return trace, latents.of_site(trace, page.attention.site)


def about(latents: Latents) -> str:
    """What is kept, and what is made of it, in numbers."""
    heads, width = latents.made.shape[1:]
    whole = heads * (width + latents.rotated)
    fields = {"width": latents.kept.shape[1], "rotated": latents.rotated, "count": heads, "whole": whole}
    return _(
        "{width} numbers of each token are kept in this layer. The last {rotated} of them are rotated by the position and belong "
        "to the keys of all heads. The keys and values of all {count} heads would be {whole}, more by a factor of {times}.",
        times=number(whole / latents.kept.shape[1], ".1f"),
        **fields,
    )


def titles(page: Page) -> tuple[str, str]:
    """The titles of both pictures."""
    where = tokens.site(page.attention.site)
    return _("{layer}: what is kept", layer=where), _("{layer}: keys and values of all heads, made from it", layer=where)


def _drawn(page: Page) -> None:
    try:
        trace, latents = recorded(page)
    except HeadlightError as error:
        say(error_message(error))
        return
    if latents is None:
        say(_("No numbers for this stage: this run did not record them."))
        return
    st.caption(about(latents))
    rows = tokens.keys(trace, trace.at(page.attention.site), longest=None)
    down, made = tokens.key_axis(trace, page.attention.site), latents.made.reshape(len(latents.made), -1)
    first, second = titles(page)
    for key, title, table, across in (
        ("kept", first, latents.kept, _("numbers that are kept")),
        ("made", second, made, _("key and value of head 1, then of the other heads")),
    ):
        st.markdown(f"**{tokens.markdown(title)}**")
        figure = figures.vectors(table, rows, down, across, page.dark, _edges(latents, key))
        chart(figure, (trace, title), key=f"latents-{key}", alt=alt_text.vectors(rows, table))


def _edges(latents: Latents, key: str) -> Sequence[float]:
    """Where lines divide the columns: before the rotated ones, and before each head but the first."""
    if key == "kept":
        return [latents.kept.shape[1] - latents.rotated + 0.5] if latents.rotated else []
    _tokens, heads, width = latents.made.shape
    return list(np.arange(1, heads) * width + 0.5)
