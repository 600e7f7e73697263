"""The panels of the page Masks: the masks of a site, or the parts that features bring."""

from model.engine.api import Run
from model.trace.types import Array, Attention, Trace
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.feature import panels_of_parts
from viz.i18n.translate import _
from viz.labels import tokens
from viz.panels import Panel, Scene
from viz.session.state import Page
from viz.url.view_state import ViewState

BESIDE = 14
"""Most tokens per side of a mask that stands beside another one: the cells of a longer one would have no room for 0 and −∞."""


def opens_on(trace: Trace) -> Attention:
    """The site that the page opens on: the last decoder self-attention, which has a causal mask, or else the last site."""
    return (trace.of("decoder", "self") or tuple(trace.attention.values()))[-1]


def panels(page: Page, link: ViewState) -> list[Panel]:
    """The parts that the link opens; else the masks of the site, or the one that its `picture` names."""
    if opened := panels_of_parts("masks", page):
        return opened
    pads = link.pad_to > len(page.trace.tokens["source"])
    trace = page.engine.ask(Run(page.view.request(pad_to=link.pad_to))) if pads else page.trace
    attention = trace.at(page.attention.site)
    padded = reads_padding(trace, attention)
    named = {
        "causal": (_("Causal mask"), attention, attention.mask_causal),
        "padding": (_("Padding mask"), padded, padded.mask_padding),
        "combined": (_("Both combined: the mask of this layer"), attention, attention.mask),
    }
    order = [link.picture] if link.picture in named else ["padding", "causal", "combined"] if link.pad_to else list(named)
    drawn = [(name, *named[name]) for name in order]
    return [_mask(trace, own, allowed, name, title, len(order) > 1) for name, title, own, allowed in drawn if allowed is not None]


def _mask(trace: Trace, own: Attention, allowed: Array, name: str, title: str, beside: bool) -> Panel:
    rows, keys = tokens.queries(trace, own), tokens.keys(trace, own)
    scene = matrix.mask(allowed, rows, keys, strings.cells("mask"))
    half = beside and max(allowed.shape) <= BESIDE
    return Panel(name, f"{title} · {tokens.site(own.site)}", Scene("Cells", scene), width="half" if half else "whole")


def reads_padding(trace: Trace, attention: Attention) -> Attention:
    """The site whose padding mask is drawn: this one, or one that reads the source if this one does not."""
    reads = [own for own in trace.attention.values() if own.key_tokens == "source"]
    return attention if attention.key_tokens == "source" or not reads else reads[-1]
