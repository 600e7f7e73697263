"""One sentence in plain words for each stage."""

from collections.abc import Mapping
from typing import Any

from model.trace.stages import Stage
from model.trace.types import Tokens, Trace
from viz.i18n.translate import _, join_sentences
from viz.labels import tokens
from viz.views.step.formulas import is_rotated

STRIPS = {"encoder": "source", "decoder": "target"}
"""The strip that a stack reads; a language model reads the source."""


def sentence(trace: Trace, stage: Stage) -> str:
    """Sentence on what a stage of this run computes."""
    if trace.of_program or (trace.recorded is not None and stage.site is not None):
        return _of_program(stage)
    if stage.site is not None:
        return _at_attention(trace, stage)
    stack: Mapping[str, Any] = (trace.model.get("spec") or {}).get(stage.stack) or {}
    described = {
        "tokens": _tokens(stack, trace.tokens.get(STRIPS[stage.stack]) or trace.tokens["source"]),
        "ids": _("Each token is replaced by its number in the vocabulary: the network sees only numbers."),
        "features": _features(stack),
        "embedding": _(
            "Each id selects a row of a learned table: the same token always gets the same vector, wherever it appears."
        ),
        "scaled": _("The vectors are multiplied by √d_model, so that the word is not drowned out by its position."),
        "positioned": _positions(stack),
        "hidden": _hidden(stack),
        "contracted": _("The hidden units are projected back to the width of the residual stream. This is what the sublayer adds."),
        "residual": _residual(stack),
        "normed": _normed(stack),
        "final": _("A final normalization after the last layer, because the pre-norm stream itself is never normalized."),
        "logits": _(
            "The final state of each position is compared with every token of the vocabulary: one score (logit) for each, "
            "of any size."
        ),
        "probabilities": _probabilities(trace),
        "chosen": _chosen(trace),
    }
    return described[stage.name]


def _tokens(stack: Mapping[str, Any], strip: Tokens) -> str:
    if stack.get("image"):
        return _(
            "The image is cut into patches, row by row. What the network puts before them, such as a class token, comes first."
        )
    if stack.get("sound"):
        return _("The sound is cut into positions of equal length, which are named by their seconds.")
    match strip.special[0], strip.special[-1] and len(strip) > 1:
        case True, True:
            return _("The text is split into tokens. A start token and an end token belong to it.")
        case True, False:
            return _("The text is split into tokens. A start token belongs to it.")
        case False, True:
            return _("The text is split into tokens. An end token belongs to it.")
    return _("The text is split into tokens. No start or end token belongs to it.")


def _features(stack: Mapping[str, Any]) -> str:
    if stack.get("image"):
        return _(
            "The network is given the numbers of each patch: its prepared pixels, one color after another. What it adds itself "
            "has no pixels, so its rows are 0 here."
        )
    return _("This network has no embedding: its input already consists of vectors.")


def _of_program(stage: Stage) -> str:
    """Sentence on a stage of a recorded program, of which only what was seen is known."""
    return {
        "tokens": _("The tokens that were given to the recorder; without them, the positions, counted from 1."),
        "queries": _("The query of each position in this head, as the program computed it."),
        "keys": _("The key of each position in this head, as the program computed it."),
        "values": _("The value of each position in this head, as the program computed it."),
        "scores": _("The scores, as the program computed them, before the mask."),
        "mask": _("Which keys the program let each query attend to."),
        "weights": _("The weights of this head: no entry is negative, and each row sums to 1."),
        "context": _("For each query, the values are added up, weighted by the attention."),
        "output": _("What the program computed from the heads of this attention layer."),
    }[stage.name]


def _at_attention(trace: Trace, stage: Stage) -> str:
    assert stage.site is not None
    stack: Mapping[str, Any] = (trace.model.get("spec") or {}).get(stage.stack) or {}
    crossing = stage.site.kind != "self"
    if (stack.get("attention") or {}).get("latent") and stage.name in ("latents", "keys", "values"):
        return _of_latents(stage.name)
    sentence = {
        "queries": _queries(stage, stack),
        "latents": _of_latents("latents"),
        "keys": _keys(stage, stack),
        "values": _("What each encoder position passes on when it is attended to.")
        if crossing
        else _("What each position passes on when it is attended to."),
        "scores": _scores(stack),
        "mask": _mask(trace, stage),
        "weights": _(
            "Each row becomes a probability distribution: no entry is negative, and each row sums to 1. A masked key gets "
            "exactly 0."
        ),
        "context": _("For each query, the values are added up, weighted by the attention."),
        "output": _("The outputs of all heads are concatenated and mixed by one matrix, back to the width of the residual stream."),
        "residual": _residual(stack),
        "normed": _normed(stack),
    }[stage.name]
    count = tokens.heads_of_a_key(trace, stage.site)
    if stage.name not in ("keys", "values") or count == 1:
        return sentence
    shared = _("Every {count} heads share theirs: heads 1 to {count} have the same ones, and so do the next {count}.", count=count)
    return join_sentences([sentence, shared])


def _queries(stage: Stage, stack: Mapping[str, Any]) -> str:
    if is_rotated(stage, stack):
        return _(
            "What each position is looking for: its vector multiplied by this head’s query matrix, then rotated: pairs of columns "
            "are turned by angles that grow with the position (RoPE)."
        )
    return _("What each position is looking for: its vector multiplied by this head’s query matrix.")


def _keys(stage: Stage, stack: Mapping[str, Any]) -> str:
    if is_rotated(stage, stack):
        return _(
            "What each position can be found by: its vector multiplied by this head’s key matrix, then rotated by its position "
            "like the queries. A score then depends on the distance between query and key."
        )
    if stage.site is not None and stage.site.kind != "self":
        return _("What each encoder position can be found by: its vector multiplied by this head’s key matrix.")
    return _("What each position can be found by: its vector multiplied by this head’s key matrix.")


def _of_latents(name: str) -> str:
    return {
        "latents": _(
            "What is kept of each position: its vector multiplied by a matrix that makes it shorter, then normalized. The keys and "
            "values of all heads are made from this latent."
        ),
        "keys": _(
            "What each position can be found by: its latent multiplied by this head’s key matrix. The last columns are made of the "
            "vector itself and rotated by the position; they are the same in all heads."
        ),
        "values": _("What each position passes on when it is attended to: its latent multiplied by this head’s value matrix."),
    }[name]


def _scores(stack: Mapping[str, Any]) -> str:
    if stack.get("positions") == "relative":
        return _("How well each query matches each key: their dot product, plus a learned number for their distance.")
    return _(
        "How well each query matches each key: their dot product, divided by √head_dim so that it does not grow with the "
        "size of the head."
    )


def _mask(trace: Trace, stage: Stage) -> str:
    attention = trace.at(stage.place)
    if attention.mask.all():
        return _("Here every query may attend to every key: nothing is added.")
    if attention.mask_causal is not None:
        return _("Keys later than the query are masked: −∞ is added to their scores, and the softmax turns that into 0.")
    return _("Padding is masked: −∞ is added to its scores, and the softmax turns that into 0.")


def _positions(stack: Mapping[str, Any]) -> str:
    if stack.get("positions") == "none":
        return _("This network adds no positional information: it adds zeros.")
    if str(stack.get("positions")).startswith("learned"):
        return _("A learned vector for each position is added. Without it, attention could not tell in which order its keys come.")
    return _("A sine-wave pattern for each position is added. Without it, attention could not tell in which order its keys come.")


def _hidden(stack: Mapping[str, Any]) -> str:
    if stack.get("gated"):
        return _(
            "Each position, on its own, is expanded to many hidden units by two maps: one goes through the activation, and the "
            "other, the gate, is multiplied with it."
        )
    return _("Each position, on its own, is expanded to many hidden units; the activation switches some of them off.")


def _residual(stack: Mapping[str, Any]) -> str:
    if stack.get("norm_order") == "pre":
        return _(
            "The sublayer’s output is added to the stream as it was before the normalization: the residual stream "
            "itself is never normalized."
        )
    return _("The sublayer’s output is added to its input, so information that a sublayer ignores is not lost.")


def _normed(stack: Mapping[str, Any]) -> str:
    if stack.get("norm") == "rms":
        return _(
            "RMSNorm: each position’s vector is divided by its root mean square and multiplied by learned "
            "parameters. Its mean is not subtracted."
        )
    if stack.get("norm_order") == "pre":
        return _("Pre-norm: each position’s vector is normalized to mean 0 and standard deviation 1 before the sublayer reads it.")
    return _(
        "Post-norm: each position’s sum is normalized to mean 0 and standard deviation 1, then scaled and shifted by "
        "learned parameters."
    )


def _probabilities(trace: Trace) -> str:
    if ((trace.model.get("spec") or {}).get("output") or {}).get("softmax") == "batch":
        return _("This network applies its softmax across the batch: with a single example, every probability is 1.")
    return _("Logits become probabilities: over the whole vocabulary they sum to 1.")


def _chosen(trace: Trace) -> str:
    if trace.request.get("target") is not None:
        return _("The tokens were given, not generated. This is the probability that the model gave to each.")
    return {
        "greedy": _("At each step the most likely token is chosen and fed back as the next input."),
        "sample": _("At each step a token is drawn at random, likely ones more often, and fed back as the next input."),
        "beam": _("Beam search kept several hypotheses; this one is shown, with the probability of each of its tokens."),
    }.get(str((trace.request.get("decoding") or {}).get("method")), _("These tokens were chosen."))
