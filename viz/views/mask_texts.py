"""What masks hide and why, in sentences for the page Masks."""

from model.engine.api import ModelInfo
from model.trace.types import Attention
from viz.i18n.translate import _, _n
from viz.labels.tokens import MaskForm


def forms() -> dict[MaskForm, str]:
    """What the two ways to write a mask mean."""
    return {
        "boolean": _("Boolean mask: may the query (row) attend to the key (column)?"),
        "additive": _("Additive mask: what is added to the scores before the softmax"),
    }


def padding(attention: Attention, added: int, info: ModelInfo) -> str:
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


def causal(attention: Attention) -> str:
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


def one() -> str:
    """What is known about the mask of a recorded run."""
    return _("What the program allowed. A recording does not show which part of a mask is causal and which part hides padding.")


def both() -> str:
    """How the masks of an attention layer are combined."""
    return _(
        "A key is allowed only if every mask allows it. In additive form the masks are summed, and one −∞ is enough: "
        "exp(−∞) = 0, so the softmax gives that key a weight of exactly 0."
    )
