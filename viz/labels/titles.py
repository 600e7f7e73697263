"""Titles of stages, and of the axes of their pictures."""

from model.trace import stages
from model.trace.stages import AXES, Stage
from model.trace.types import Trace
from viz.i18n.translate import N_, _, language_of, translated
from viz.labels import tokens


def titles() -> dict[str, str]:
    """The title of each stage, by name."""
    return {
        "tokens": _("Tokens"),
        "ids": _("Ids"),
        "features": _("Features"),
        "embedding": _("Embedding"),
        "scaled": _("Embedding, scaled"),
        "positioned": _("With positions added"),
        "normed": _("LayerNorm"),
        "queries": _("Queries"),
        "latents": _("Latents"),
        "keys": _("Keys"),
        "values": _("Values"),
        "scores": _("Scores"),
        "mask": _("Mask"),
        "weights": _("Softmax: the weights"),
        "context": _("Weighted values"),
        "output": _("Heads concatenated"),
        "residual": _("Residual connection"),
        "hidden": _("Hidden activations"),
        "contracted": _("Projected back"),
        "final": _("Final LayerNorm"),
        "logits": _("Logits"),
        "probabilities": _("Softmax over the vocabulary"),
        "chosen": _("The chosen token"),
    }


def place(trace: Trace, stage: Stage, head: int) -> str:
    """The location of a stage in words, counted from 1."""
    if stage.place == "output":
        return _("Output")
    if stage.site is not None:
        return tokens.site(stage.site, head if stage.in_head else None)
    if "." not in stage.place:
        return tokens.stack(stage.place)
    stack, pass_, layer, _kind = stage.place.split(".")
    fields = {"stack": tokens.stack(stack), "pass_": int(pass_) + 1, "layer": int(layer) + 1}
    if any(site.stack == stack and site.pass_ for site in trace.attention):
        return _("{stack}, feed-forward network, pass {pass_}, layer {layer}", **fields)
    return _("{stack}, feed-forward network, layer {layer}", **fields)


def down(trace: Trace, stage: Stage) -> str:
    """The title of the axis with the tokens of a stage's rows: "key: encoder (German)"."""
    if stage.site is not None:
        return tokens.key_axis(trace, stage.site) if AXES[stage.name][0] == "key" else tokens.query_axis(trace, stage.site)
    name = stages.strip(trace, stage)
    stream = tokens.stream_of(stage.stack == "decoder", language_of(trace, name))
    return _("position: {stream}", stream=stream)


def across(name: str) -> str:
    """The title of the horizontal axis of a stage's picture."""
    return {
        "head_dim": _("dimension of the head (head_dim)"),
        "model": _("dimension of the residual stream (model)"),
        "latent": _("dimension of the latent"),
        "hidden": _("hidden unit"),
        "vocab": _("token of the vocabulary"),
    }[name]


def axis(name: str) -> str:
    """The name of an axis of a stage's tensor; that of a size of the network as the code has it."""
    names = {"position": N_("position"), "query": N_("query"), "key": N_("key"), "hidden": N_("hidden"), "vocab": N_("vocabulary")}
    return translated(names.get(name, name))


def rows(trace: Trace, strip: str, count: int, longest: int | None = tokens.LONGEST) -> list[str]:
    """The labels of the first `count` tokens of a strip; numbers beyond its end."""
    texts = tokens.strip(trace.tokens[strip], longest)[:count]
    return texts + [str(number + 1) for number in range(len(texts), count)]
