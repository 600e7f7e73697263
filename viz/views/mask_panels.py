"""The panels of the page Masks, the masks of a site or the parts that features bring, and what masks hide and why."""

from typing import Literal

from model.engine.api import ModelInfo, Run
from model.trace.types import Array, Attention, Trace
from viz.canvas.scenes import matrix
from viz.canvas.wire import strings
from viz.feature import panels_of_parts
from viz.figures import masks
from viz.i18n.translate import _, _n, titled
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
        of_mask(trace, layer, allowed, (name, title), beside=len(order) > 1)
        for name, title, layer, allowed in drawn
        if allowed is not None
    ]


def of_mask(
    trace: Trace,
    attention: Attention,
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
    where = _("{what}: {value}", what=title, value=tokens.site(attention.site))
    words = alt_text.mask(trace, attention, allowed)
    axes = strings.axes(tokens.query_axis(trace, attention.site), tokens.key_axis(trace, attention.site))
    labels = tokens.queries(trace, attention), tokens.keys(trace, attention)
    strips, described = (attention.query_tokens, attention.key_tokens), matrix.Told(title, titled(title, words), axes)
    scene = Scene("Cells", matrix.mask(allowed, *labels, strings.cells("mask"), strips, form, described))
    on_paper = Plot(lambda dark: masks.mask(trace, attention, allowed, form, dark), words, f"mask-{name}", where)
    width: Literal["whole", "half"] = "half" if beside and max(allowed.shape) <= BESIDE else "whole"
    return Panel(name, where, scene, about=about, width=width, paper=lambda: (on_paper,))


def reads_padding(trace: Trace, attention: Attention) -> Attention:
    """The site whose padding mask is drawn: this one, or one that reads the source if this one does not."""
    reads = [layer for layer in trace.attention.values() if layer.key_tokens == "source"]
    return attention if attention.key_tokens == "source" or not reads else reads[-1]


def forms() -> dict[MaskForm, str]:
    """What the two ways to write a mask mean."""
    return {
        "boolean": _("Boolean mask: may the query (row) attend to the key (column)?"),
        "additive": _("Additive mask: what is added to the scores before the softmax"),
    }


def about_padding(attention: Attention, added: int, info: ModelInfo) -> str:
    """What the padding mask of an attention layer hides.

    Args:
        added: padding tokens after the source.
        info: the model.
    """
    if attention.site.stack == "decoder" and attention.site.kind == "self":
        if info.continues:
            return _("The padding mask hides padding from every query. This text has no padding, so every key is allowed.")
        return _(
            "The padding mask hides padding from every query. These keys are generated one by one, so there is no padding "
            "among them."
        )
    if info.reads == "image":
        return _("An image has no padding: each of its patches is read.")
    if info.reads == "sound":
        return _("A sound has no padding: the silence that fills it up is read, too.")
    if not added:
        return _(
            "To be processed together, sentences of different lengths are padded to the same length; this mask hides "
            "the padding from every query. Here nothing is padded, so every key is allowed."
        )
    if attention.site.stack == "encoder":
        return _n(
            "It hides the {added} padding token from every query. Its own row is computed too, but no token attends to it.",
            "It hides the {added} padding tokens from every query. Their own rows are computed too, but no token attends to them.",
            added,
            added=added,
        )
    return _n(
        "It hides the {added} padding token at the end from every query.",
        "It hides the {added} padding tokens at the end from every query.",
        added,
        added=added,
    )


def about_causal(attention: Attention) -> str:
    """What the causal mask of an attention layer hides, or why there is none."""
    if attention.mask_causal is not None:
        return _(
            "A token may attend to itself and to earlier tokens, never to later ones: when generating they do not "
            "exist yet, and in training they would give the answer away."
        )
    if attention.site.stack == "encoder":
        return _("Not used here: the whole source is known, so every token may attend to later tokens too.")
    if attention.site.kind == "self":
        return _("This run has no causal mask of its own here. The mask of this layer shows what a token may attend to.")
    return _(
        "Not used here: the whole source has been read before the first target token is generated, so nothing in it lies "
        "in the future."
    )


def about_one() -> str:
    """What is known about the mask of a recorded run."""
    return _("What the program allowed. A recording does not show which part of a mask is causal and which part hides padding.")


def about_both() -> str:
    """How the masks of an attention layer are combined."""
    return _(
        "A key is allowed only if every mask allows it. In additive form the masks are summed, and one −∞ is enough: "
        "exp(−∞) = 0, so the softmax gives that key a weight of exactly 0."
    )
