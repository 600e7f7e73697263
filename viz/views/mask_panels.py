"""The panels of the page Masks: the masks of a site, or the parts that features bring."""

from typing import Literal

from model.engine.api import Run
from model.trace.types import Array, Attention, Trace
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.feature import panels_of_parts
from viz.figures import masks
from viz.i18n.translate import _, titled
from viz.labels import alt_text, tokens
from viz.labels.tokens import MaskForm
from viz.panels import Panel, Plot, Scene
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
    return [
        of_mask(trace, own, allowed, (name, title), beside=len(order) > 1)
        for name, title, own, allowed in drawn
        if allowed is not None
    ]


def of_mask(
    trace: Trace,
    own: Attention,
    allowed: Array,
    named: tuple[str, str],
    form: MaskForm = "additive",
    about: str = "",
    beside: bool = False,
) -> Panel:
    """A mask of a site, or a part of it.

    Args:
        allowed: [query, key].
        named: name and title.
        form: how its cells are written.
        about: explains it.
        beside: whether it may stand beside another one.
    """
    name, title = named
    where = _("{what}: {value}", what=title, value=tokens.site(own.site))
    words = alt_text.mask(trace, own, allowed)
    axes = strings.axes(tokens.query_axis(trace, own.site), tokens.key_axis(trace, own.site))
    labels = tokens.queries(trace, own), tokens.keys(trace, own)
    strips, described = (own.query_tokens, own.key_tokens), matrix.Told(title, titled(title, words), axes)
    scene = Scene("Cells", matrix.mask(allowed, *labels, strings.cells("mask"), strips, form, described))
    on_paper = Plot(lambda dark: masks.mask(trace, own, allowed, form, dark), words, f"mask-{name}", where)
    width: Literal["whole", "half"] = "half" if beside and max(allowed.shape) <= BESIDE else "whole"
    return Panel(name, where, scene, about=about, width=width, paper=lambda: (on_paper,))


def reads_padding(trace: Trace, attention: Attention) -> Attention:
    """The site whose padding mask is drawn: this one, or one that reads the source if this one does not."""
    reads = [own for own in trace.attention.values() if own.key_tokens == "source"]
    return attention if attention.key_tokens == "source" or not reads else reads[-1]
