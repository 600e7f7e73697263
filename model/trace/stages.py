"""The stages of a run, in the order in which they ran.

The order depends on the network: a pre-norm layer norms before its attention, a post-norm layer after the sum, and a stack that is
applied twice is walked twice. docs/stages.md explains each stage, `model.trace.source_lines` finds its code.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from types import MappingProxyType
from typing import Any

import numpy as np

from model.errors import UnknownStage, Words
from model.requests.network import ROTARY
from model.trace.types import Array, Site, Trace


@dataclass(frozen=True)
class Stage:
    """One stage of one run.

    Attributes:
        place: where in the network: a stack (`encoder`, in a recording `program`), a Site (`decoder.0.2.cross`), a feed-forward
            sublayer
            (`decoder.0.2.feed_forward`), or `output`.
        name: what happens there: one of NAMES.
    """

    place: str
    name: str

    def __str__(self) -> str:
        """The name under which a trace holds it: `place/name`."""
        return f"{self.place}/{self.name}"

    @property
    def site(self) -> Site | None:
        """The attention site that the stage belongs to; None: it belongs to no attention sublayer."""
        whole = self.place in ("encoder", "decoder", "program", "output")
        return None if whole or self.place.endswith("feed_forward") else Site.parse(self.place)

    @property
    def stack(self) -> str:
        """The stack that the stage is in; the output counts as the decoder's."""
        return "decoder" if self.place == "output" else self.place.partition(".")[0]

    @property
    def in_head(self) -> bool:
        """Whether each head has its own tensor at this stage."""
        return self.name in OF_HEADS


ATTENTION = ("queries", "keys", "values", "scores", "mask", "weights", "context", "output")
"""Stages of an attention sublayer, in the order in which they are computed."""

OF_HEADS = ("queries", "keys", "values", "scores", "weights", "context")
"""Those of which each head has a tensor of its own."""

OF_CELLS = ("scores", "mask", "weights")
"""Stages whose tensors are [query, key]: one number for each cell of an attention map."""
OUTPUT = ("logits", "probabilities", "chosen")
"""Stages after the last layer."""

AXES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "features": ("position", "model"),
        "embedding": ("position", "model"),
        "scaled": ("position", "model"),
        "positioned": ("position", "model"),
        "normed": ("position", "model"),
        "queries": ("query", "head_dim"),
        "latents": ("key", "latent"),
        "keys": ("key", "head_dim"),
        "values": ("key", "head_dim"),
        "scores": ("query", "key"),
        "mask": ("query", "key"),
        "weights": ("query", "key"),
        "context": ("query", "head_dim"),
        "output": ("query", "model"),
        "residual": ("position", "model"),
        "hidden": ("position", "hidden"),
        "contracted": ("position", "model"),
        "final": ("position", "model"),
        "logits": ("position", "vocab"),
    }
)
"""The axes of each stage's tensor (of one head, where each head has its own). Stages that are not listed have no tensor."""

NAMES = ("tokens", "ids", *AXES, "probabilities", "chosen")
"""All stages; those beside AXES have no tensor: they are read from the steps of the run."""


def walk(trace: Trace) -> tuple[Stage, ...]:
    """All stages of a run, first to last, including those that ran and were not recorded."""
    return tuple(_through(trace))


def _through(trace: Trace) -> Iterator[Stage]:
    described = trace.model.get("spec") or {}
    for stack in ("encoder", "decoder", "program"):
        sites = [site for site in trace.attention if site.stack == stack]
        if sites or isinstance(described.get(stack), Mapping):  # of a library's network, `program` is its name
            yield from _through_stack(trace, stack, sites, described.get(stack) or {})
    if trace.logits is not None:
        yield from (Stage("output", name) for name in OUTPUT)


def _through_stack(trace: Trace, stack: str, sites: list[Site], spec: Mapping[str, Any]) -> Iterator[Stage]:
    yield Stage(stack, "tokens")
    if trace.tokens[strip(trace, Stage(stack, "tokens"))].ids:
        yield Stage(stack, "ids")
    yield from (Stage(stack, name) for name in _inputs(spec))
    for (pass_, layer), of_layer in groupby(sites, key=lambda site: (site.pass_, site.layer)):
        for site in of_layer:
            yield from _sublayer(str(site), _inside(trace, site, spec), spec)
        if spec.get("hidden") and spec["wiring"] != "attention":
            yield from _sublayer(f"{stack}.{pass_}.{layer}.feed_forward", ("hidden", "contracted"), spec)
    if spec.get("final_norm"):
        yield Stage(stack, "final")


def _inside(trace: Trace, site: Site, spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The stages of an attention: keys and values may be made of latents."""
    latent = (spec.get("attention") or {}).get("latent") or f"{site}/latents" in trace.stages
    return ("queries", "latents", *ATTENTION[1:]) if latent and site.kind == "self" else ATTENTION


def _inputs(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The stages before the first layer; none are known where the trace has no spec."""
    if not spec:
        return ()
    if not spec["vocab"]:
        return ("features",)
    added = () if spec["positions"] in (*ROTARY, "relative", "unknown") else ("positioned",)
    if "embed_scale" not in spec:  # another program's: the stream that reaches the first layer is all that is known
        return added
    return ("embedding", "scaled", *added) if spec["embed_scale"] == "sqrt" else ("embedding", *added)


def _sublayer(sublayer: str, names: tuple[str, ...], spec: Mapping[str, Any]) -> Iterator[Stage]:
    """The stages of a sublayer and of its residual connection, in this network's order of sum and norm."""
    # A stack of attention alone has neither residual connections nor norms around it.
    around = spec.get("wiring", "attention") != "attention"
    order = {"pre": ("normed", *names, "residual"), "post": (*names, "residual", "normed")}
    yield from (Stage(sublayer, name) for name in (order[spec["norm_order"]] if around else names))


def find(trace: Trace, text: str) -> Stage:
    """The stage with the text form `text`, such as `decoder.0.2.cross/weights`.

    Raises:
        UnknownStage: the run has no such stage.
    """
    by_name = {str(stage): stage for stage in walk(trace)}
    if text not in by_name:
        where = text.partition("/")[0]
        # The sentence lists what is at the same place; where that place is unknown too, all places.
        near = [name for name in by_name if name.startswith(f"{where}/")] or list(dict.fromkeys(str(s.place) for s in walk(trace)))
        raise UnknownStage(asked=text, there=", ".join(near))
    return by_name[text]


def path(stage: Stage) -> str:
    """The name of a stage's tensor in a trace file; empty: the stage has no tensor."""
    if stage.name not in AXES:
        return ""
    if stage.site is not None and stage.name in ATTENTION:
        name = {"queries": "q", "keys": "k", "values": "v"}.get(stage.name, stage.name)
        return f"attention/{stage.place}/{name}"
    match stage.name:
        case "features" | "positioned":
            return f"embedded/{stage.place}"
        case "contracted":
            return f"stages/{stage.place}/output"
        case "logits":
            return "logits"
    return f"stages/{stage}"


def recorded(trace: Trace, stage: Stage) -> Array | None:
    """A stage's recorded tensor, all heads of it; None: the stage has none, or it was not recorded."""
    match path(stage).split("/"):
        case ["attention", site, name]:
            array: Array | None = getattr(trace.at(site), name)
            return array
        case ["embedded", stack]:
            return trace.embedded.get(stack)
        case ["logits"]:
            return trace.logits
        case ["stages", *_]:
            return trace.stages.get(path(stage).removeprefix("stages/"))
    return None


def tensor(trace: Trace, stage: Stage, head: int) -> Array | None:
    """A stage's recorded tensor with the axes of AXES; None: the stage has none, or it was not recorded.

    Args:
        head: the head, counted from 0, at stages where each head has its own tensor.

    Raises:
        UnknownHead: the site has no such head.
    """
    if not stage.in_head:
        return recorded(trace, stage)
    trace.at(stage.place).head(head)
    whole = recorded(trace, stage)
    return None if whole is None else whole[head]


def why_missing(trace: Trace, stage: Stage) -> Words:
    """Why the run did not record a stage's tensor; empty: the trace does not say."""
    name = path(stage)
    return next((why for key, why in trace.missing.items() if fnmatchcase(name, key) or name.startswith(f"{key}/")), "")


def strip(trace: Trace, stage: Stage) -> str:
    """The name of the token strip along the first axis of a stage's tensor."""
    target = "target" if "target" in trace.tokens else "source"
    if stage.place in ("encoder", "decoder", "output"):
        return "source" if stage.place == "encoder" else target
    if stage.place == "program":
        return next(attention for site, attention in trace.attention.items() if site.stack == "program").query_tokens
    # A feed-forward sublayer has no attention of its own: its rows are those of the last attention of its layer.
    prefix = stage.place.rpartition(".")[0]
    of_layer = [attention for site, attention in trace.attention.items() if str(site).startswith(f"{prefix}.")]
    attention = of_layer[-1] if stage.site is None else trace.at(stage.site)
    return attention.key_tokens if AXES[stage.name][0] == "key" else attention.query_tokens


def unsound(trace: Trace, stage: Stage) -> Array | None:
    """Where a stage's numbers are not finite: bool, of the shape of `recorded`; None: all are finite.

    A score that was never computed, since its key lay in the future, is NaN and does not count.
    """
    array = recorded(trace, stage)
    if array is None or np.isfinite(array).all():
        return None
    wrong = ~np.isfinite(array)
    if stage.name == "scores":
        wrong &= trace.at(stage.place).mask
    return wrong if wrong.any() else None


def first_unsound(trace: Trace) -> Stage | None:
    """The first stage with a number that is not finite; None: there is none."""
    return next((stage for stage in walk(trace) if unsound(trace, stage) is not None), None)
