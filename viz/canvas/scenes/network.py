"""Scene of the map of a network: boxes as in the paper's figure 1, each with the stages of the run."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from model.trace.stages import Stage
from model.trace.types import Site, Trace
from viz.canvas.scenes import motion
from viz.canvas.scenes.motion import Followed
from viz.canvas.wire import parts, strings
from viz.canvas.wire.transport import pack
from viz.figures.theme import SCHEMES
from viz.i18n.translate import _, decimal_sign
from viz.labels import tokens


@dataclass(frozen=True)
class Box:
    """A box of the map.

    Attributes:
        title: its text.
        stages: text forms and titles of its stages, in order.
        reads_encoder: whether an arrow leads here from the encoder's output.
    """

    title: str
    stages: tuple[tuple[str, str], ...]
    reads_encoder: bool


@dataclass(frozen=True)
class Part:
    """A layer, or the part before or after the layers: its title, empty outside of layers, and its boxes."""

    title: str
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Column:
    """A stack: its title, and its parts in the order in which they run."""

    title: str
    parts: tuple[Part, ...]


def scene(
    trace: Trace, stages: tuple[Stage, ...], titles: dict[str, str], stage: Stage, follow: Followed | None = None, film: str = ""
) -> bytes:
    """The map of a run with the current stage.

    Args:
        trace: the run.
        stages: all its stages, in order.
        titles: titles of the stages, by name.
        stage: the current one of `stages`.
        follow: whom the moving picture beside the map follows; None: there is only the map.
        film: the name of the file, without its ending, as which the moving picture is saved.
    """
    header: dict[str, Any] = {
        "schemes": SCHEMES,
        "decimal": decimal_sign(),
        "texts": strings.network(),
        "columns": list(map(asdict, columns(trace, stages, titles))),
        "order": list(map(str, stages)),
        "stage": str(stage),
    }
    if follow is None:
        return pack(header, {})
    header["texts"] |= motion.texts()
    header |= {"motion": motion.header(trace, stages, follow), "titles": titles, "film": film}
    return parts.scene(header, {"motion": motion.part(trace, stages, follow)})


def columns(trace: Trace, stages: tuple[Stage, ...], titles: Mapping[str, str]) -> list[Column]:
    """The stacks of a network, each with its input, its layers and its output.

    Args:
        trace: the run.
        stages: all its stages, in order.
        titles: titles of the stages, by name; a stage without one has none on the map.
    """
    stacks = dict.fromkeys(stage.stack for stage in stages)
    return [_column(trace, stack, [stage for stage in stages if stage.stack == stack], titles) for stack in stacks]


def _column(trace: Trace, stack: str, stages: list[Stage], titles: Mapping[str, str]) -> Column:
    grouped = groupby(stages, key=_layer)
    parts = (Part(_layer_title(layer, trace), tuple(_boxes(trace, list(of_layer), titles))) for layer, of_layer in grouped)
    return Column(tokens.stack(stack), tuple(parts))


def _layer(stage: Stage) -> tuple[str, int, int] | str:
    """The layer of a stage; outside of layers, whether the stage comes before or after them."""
    if "." in stage.place:
        stack, pass_, layer, _kind = stage.place.split(".")
        return stack, int(pass_), int(layer)
    return "after" if stage.place == "output" or stage.name == "final" else "before"


def _layer_title(layer: tuple[str, int, int] | str, trace: Trace) -> str:
    if isinstance(layer, str):
        return ""
    stack, pass_, index = layer
    passes = 1 + max(site.pass_ for site in trace.attention if site.stack == stack)
    return (
        _("Layer {layer}", layer=index + 1) if passes == 1 else _("Pass {pass_}, layer {layer}", pass_=pass_ + 1, layer=index + 1)
    )


def _boxes(trace: Trace, stages: list[Stage], titles: Mapping[str, str]) -> Iterator[Box]:
    for (_sublayer, kind), of_kind in groupby(stages, key=lambda stage: (stage.place, _kind(stage))):
        inside = list(of_kind)
        site = inside[0].site
        title = _box_title(trace, kind, site, [stage.name for stage in inside])
        yield Box(title, tuple((str(stage), titles.get(stage.name, "")) for stage in inside), _reads_encoder(trace, kind, site))


def _kind(stage: Stage) -> str:
    """Kind of a stage: stages of one kind share a box."""
    if stage.name in ("residual", "normed", "final"):
        return "around"
    if stage.site is not None:
        return "attention"
    groups = {"ids": "tokens", "scaled": "embedding", "contracted": "hidden"}
    return groups.get(stage.name, stage.name)


def _box_title(trace: Trace, kind: str, site: Site | None, names: list[str]) -> str:
    if kind == "attention" and site is not None:
        return _attention_title(trace, site)
    if kind == "around":
        return _("Add & norm") if len(names) == 2 else _("Add") if names == ["residual"] else _("Norm")
    return {
        "tokens": _("Tokens"),
        "features": _("Features"),
        "embedding": _("Embedding"),
        "positioned": _("+ positions"),
        "hidden": _("Feed forward"),
        "logits": _("Linear"),
        "probabilities": _("Softmax"),
        "chosen": _("Chosen token"),
    }[kind]


def _attention_title(trace: Trace, site: Site) -> str:
    if site.kind == "cross":
        return _("Cross-attention")
    if site.kind == "memory":
        return _("Memory attention")
    if site.kind == "unknown":
        return _("Attention")
    return _("Self-attention") if trace.at(site).mask_causal is None else _("Masked self-attention")


def _reads_encoder(trace: Trace, kind: str, site: Site | None) -> bool:
    return (
        kind == "attention"
        and site is not None
        and site.kind in ("cross", "memory")
        and any(s.stack == "encoder" for s in trace.attention)
    )
