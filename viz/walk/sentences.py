"""One sentence in plain words for each stage."""

from collections.abc import Mapping
from typing import Any

from model.trace.stages import Stage
from model.trace.types import Trace
from viz.texts import _


def sentence(trace: Trace, stage: Stage) -> str:
    """Sentence on what a stage of this run computes."""
    if stage.site is not None:
        return _at_attention(trace, stage)
    stack: Mapping[str, Any] = (trace.model.get("spec") or {}).get(stage.stack) or {}
    described = {
        "tokens": _("The text is cut into tokens, and the tokens that begin and end it are added."),
        "ids": _("Each token becomes its number in the vocabulary: the network reads numbers alone."),
        "features": _("This network has no embedding: its input is rows of numbers already."),
        "embedding": _("Each id picks its row of a learned table: the same token gets the same vector, wherever it stands."),
        "scaled": _("The vectors are multiplied by the root of their width, so that a word is not drowned by its position."),
        "positioned": _positions(stack),
        "hidden": _("Each position by itself is spread over many hidden units; the activation silences part of them."),
        "contracted": _("The hidden units are summed up again to the width of the stream: what this sublayer adds."),
        "residual": _residual(stack),
        "normed": _normed(stack),
        "final": _("One more norm after the last layer, since a pre-norm stream itself was never brought to unit scale."),
        "logits": _("The last state of a position is compared with each token of the vocabulary: a number for each, of any size."),
        "probabilities": _probabilities(trace),
        "chosen": _chosen(trace),
    }
    return described[stage.name]


def _at_attention(trace: Trace, stage: Stage) -> str:
    assert stage.site is not None
    stack: Mapping[str, Any] = (trace.model.get("spec") or {}).get(stage.stack) or {}
    crossing = stage.site.kind != "self"
    return {
        "queries": _("What each position asks for: its vector, seen through this head's query matrix."),
        "keys": _("What each position of the encoder's output offers to be found by, seen through this head's key matrix.")
        if crossing
        else _("What each position offers to be found by: its vector, seen through this head's key matrix."),
        "values": _("What each position of the encoder's output hands over where it is looked at.")
        if crossing
        else _("What each position hands over where it is looked at."),
        "scores": _scores(stack),
        "mask": _mask(trace, stage),
        "weights": _("Each row becomes probabilities: nothing is below 0, and each row sums to 1. A masked key gets exactly 0."),
        "context": _("For each query the values are added up, each as much as its weight says."),
        "output": _("The results of all heads are laid side by side and mixed by one matrix, back to the width of the stream."),
        "residual": _residual(stack),
        "normed": _normed(stack),
    }[stage.name]


def _scores(stack: Mapping[str, Any]) -> str:
    if stack.get("positions") == "relative":
        return _("How well each query matches each key: their products summed, and a learned number added for their distance.")
    return _("How well each query matches each key: their products summed, and divided so as not to grow with the width.")


def _mask(trace: Trace, stage: Stage) -> str:
    attention = trace.at(stage.place)
    if attention.mask.all():
        return _("Here every query may look at every key: nothing is added.")
    if attention.mask_causal is not None:
        return _("Keys that come later than the query are forbidden: −∞ is added to their scores, and the softmax makes 0 of it.")
    return _("Padding is forbidden: −∞ is added to its scores, and the softmax makes 0 of it.")


def _positions(stack: Mapping[str, Any]) -> str:
    if stack.get("positions") == "none":
        return _("This network adds nothing that tells positions apart: what is added is zeros.")
    if stack.get("positions") == "learned":
        return _("A learned vector for each position is added: without it, attention could not tell the order of its keys.")
    return _("A wave pattern for each position is added: without it, attention could not tell the order of its keys.")


def _residual(stack: Mapping[str, Any]) -> str:
    if stack.get("norm_order") == "pre":
        return _("What the sublayer made is added to the stream as it was before the norm: the stream itself is never normed.")
    return _("What the sublayer made is added to what it read, so that nothing is lost that a sublayer does not touch.")


def _normed(stack: Mapping[str, Any]) -> str:
    if stack.get("norm_order") == "pre":
        return _("Pre-norm: each position's vector is brought to mean 0 and deviation 1 before the sublayer reads it.")
    return _("Post-norm: each position's sum is brought to mean 0 and deviation 1, then stretched and shifted by learned numbers.")


def _probabilities(trace: Trace) -> str:
    if ((trace.model.get("spec") or {}).get("output") or {}).get("softmax") == "batch":
        return _("This network takes its softmax over the batch: of one example alone each probability is 1.")
    return _("Logits become probabilities: of all tokens of the vocabulary together they sum to 1.")


def _chosen(trace: Trace) -> str:
    if trace.request.get("target") is not None:
        return _("The tokens were given, not chosen: here is the probability that the model gave to each.")
    return {
        "greedy": _("At each step the likeliest token is taken, and read in the next step."),
        "sample": _("At each step a token is drawn, likely ones more often, and read in the next step."),
        "beam": _("Of the beginnings that were followed, this one is shown: these are its tokens, with their own probabilities."),
    }.get(str((trace.request.get("decoding") or {}).get("method")), _("These tokens were taken."))
