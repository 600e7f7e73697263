"""The part of the page Masks about attention sinks: the first token's share over the layers, learned sinks, and both taken away."""

import numpy as np
import streamlit as st

from model.measures.of_run import weight_on
from model.requests.edits import Forbid, write_edits
from model.trace.types import Array, Attention
from viz.canvas.wire import strings
from viz.features.modern_attention import panels
from viz.i18n.translate import _
from viz.metrics import heads
from viz.panels import Panel
from viz.session.state import Page, update
from viz.widgets import drawn_panels
from viz.widgets.cards import expander_state, panel
from viz.widgets.offers import SINKS, offer

LONGEST = 512
"""Most tokens of a text whose shares are computed."""


def show(page: Page) -> None:
    """Draws the shares of the self-attention of the page's stack; none of cross-attention."""
    attention = page.attention
    if attention.site.kind != "self" or max(attention.mask.shape) > LONGEST:
        return
    layers = page.trace.of(attention.site.stack, "self")
    if len({layer.heads for layer in layers}) > 1:
        return
    title = _("Attention sinks: the first token’s share, and learned sinks")
    with st.expander(title, icon=":material/water_drop:", **expander_state("sinks", page.view.opened)) as part, panel("sinks"):
        if not part.open:
            return
        _first(page, layers)
        lacks = [heads.sink_shares(layer.weights, layer.mask) for layer in layers]
        if any(lack.any() for lack in lacks):
            _learned(page, layers, lacks)
        else:
            offer(page, "sinks", _("Show a recorded run with learned sinks"), SINKS, opened="sinks")


def _first(page: Page, layers: tuple[Attention, ...]) -> None:
    """Draws the first token's share of every head, and the button that closes it."""
    site = layers[0].site
    shares = np.array([weight_on(page.trace, layer, [0]) for layer in layers])
    st.markdown("**" + _("The first token’s share, layer by layer") + "**")
    st.caption(
        _(
            "Mean weight of each head on the first token, over rows with at least two allowed keys. Many heads put their weight "
            "there when no other token is relevant to them: the first token is then an attention sink."
        )
    )
    _draw(page, shares, "first")
    added = ((page.trace.model.get("spec") or {}).get("encoder") or {}).get("image") or {}
    if registers := range(1, len(added.get("added", ()))):
        _registers(page, layers, registers)
    elif added:
        st.caption(_("This model has no registers. No bundled or known model has them; folders of DINOv2 with registers do."))
    queries = tuple(range(1, len(layers[0].mask)))
    if page.info.recorded or page.trace.recorded is not None or page.view.request().edits or not queries:
        return
    closed = Forbid(stack="encoder" if site.stack == "encoder" else "decoder", kind="self", query=queries, key=(0,))
    st.button(
        _("Run this sentence with the first token masked for all others"),
        icon=":material/science:",
        key="sink-closed",
        on_click=update,
        kwargs={"edits": write_edits((closed,))},
    )


def _registers(page: Page, layers: tuple[Attention, ...], registers: range) -> None:
    """Draws the share of the tokens that a vision transformer puts beside the patches, for heads to rest on."""
    st.markdown("**" + _("The registers’ share, layer by layer") + "**")
    st.caption(
        _(
            "Registers are learned tokens without a patch ({count} here). Heads for which no patch is relevant can put their "
            "weight on them; without registers, some patches of empty ground get it (Darcet et al. 2023). The first token, "
            "above, is a class token.",
            count=len(registers),
        )
    )
    shares = np.array([weight_on(page.trace, layer, registers) for layer in layers])
    _draw(page, shares, "registers")


def _learned(page: Page, layers: tuple[Attention, ...], lacks: list[Array]) -> None:
    """Draws the share of the learned sinks, and the selected head with its sink as a column of its own."""
    st.markdown("**" + _("Learned sinks") + "**")
    st.caption(
        _(
            "Each head of this model has a learned number that enters the softmax like one more score, but without a value "
            "vector. It takes a share of each row, so the weights sum to less than 1. Below: its mean share."
        )
    )
    _draw(page, np.array([lack.mean(axis=1) for lack in lacks]), "sink")
    number = next((index for index, layer in enumerate(layers) if layer.site == page.attention.site), 0)
    attention, lack = layers[number], lacks[number][page.head]
    weights = attention.head(page.head)
    if st.toggle(_("Without the sink: each row divided by its sum, as the softmax would have it"), key="sink-without"):
        weights, lack = heads.without_sink(weights), np.zeros_like(lack)
    drawn_panels.draw(page, panels.with_sink(page, attention, weights, lack), "sink-map")


def _draw(page: Page, shares: Array, name: str) -> None:
    """Draws numbers [layer, head]."""
    axes = strings.axes(_("head"), _("layer"))
    st.caption(axes)
    drawn_panels.draw_content(page, Panel(name, "", panels.of_heads(shares), axes), f"sink-{name}")
