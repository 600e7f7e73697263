"""Parts of the residual stream on screen: their names, which of them are shown, and where a head's own row is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.features.circuit.sums import Part
from model.trace.types import Array, Site, Trace
from viz.i18n.translate import _, _n
from viz.labels import tokens
from viz.panels import needs_network
from viz.session.state import Page

BIASES = ("output-bias", "norm-bias", "projection-bias")
"""Kinds of parts that do not depend on the text; they are shown as one."""


@dataclass(frozen=True)
class Shown:
    """One part on screen, or several as one.

    Attributes:
        name: in full.
        short: for an axis.
        places: the parts that it stands for, by their index.
        head: the part, if a head wrote it.
    """

    name: str
    short: str
    places: tuple[int, ...]
    head: Part | None = None


def shown(parts: Sequence[Part], sizes: Array, most: int) -> list[Shown]:
    """The `most` largest parts, all biases as one, and the others as one, whose name says how many they are.

    Args:
        sizes: [part], by which they are compared.
    """
    biases = tuple(index for index, part in enumerate(parts) if part.kind in BIASES)
    groups = [
        Shown(name(part), short_name(part), (index,), part if part.kind == "head" else None)
        for index, part in enumerate(parts)
        if index not in biases
    ]
    groups += [Shown(_("all biases"), _("all biases"), biases)] if biases else []
    groups.sort(key=lambda group: -float(np.sum(sizes[list(group.places)])))
    if rest := [index for group in groups[most:] for index in group.places]:
        others = _n("{count} other", "{count} others", len(rest), count=len(rest))
        return [*groups[:most], Shown(others, others, tuple(rest))]
    return groups


def added(values: Array, groups: Sequence[Shown], axis: int) -> Array:
    """The sums of an array over the parts of each group, along one of its axes."""
    return np.stack([values.take(group.places, axis=axis).sum(axis=axis) for group in groups], axis=axis)


def name(part: Part) -> str:
    """The name of a part, counted from 1: "Cross-attention, layer 3, head 5"."""
    match part.kind:
        case "head":
            return tokens.site(Site.parse(part.place), part.head)
        case "embedding":
            return _("{stack}: embedding", stack=tokens.stack(part.place))
        case "position":
            return _("{stack}: position", stack=tokens.stack(part.place))
        case "embedded":
            return _("{stack}: embedding and position", stack=tokens.stack(part.place))
        case "features":
            return _("{stack}: input", stack=tokens.stack(part.place))
        case "feed-forward":
            return _feed_forward(part.place)
        case "edit":
            return _("{place}: edit", place=_place(part.place))
    return _("{place}: bias", place=_place(part.place))


def short_name(part: Part) -> str:
    """The name of a part for an axis, where its stack is known: "layer 3, head 5"."""
    if part.kind not in ("head", "feed-forward"):
        return {
            "embedding": _("embedding"),
            "position": _("position"),
            "embedded": _("embedding and position"),
            "features": _("input"),
            "edit": _("edit"),
        }.get(part.kind, _("bias"))
    _stack, pass_, layer, kind = part.place.split(".")
    fields = {"layer": int(layer) + 1, "head": part.head + 1}
    if int(pass_):
        return name(part)
    if part.kind == "feed-forward":
        return _("layer {layer}, feed-forward", **fields)
    if kind == "cross":
        return _("layer {layer}, cross, head {head}", **fields)
    return _("layer {layer}, head {head}", **fields)


def _feed_forward(place: str) -> str:
    stack, pass_, layer, _kind = place.split(".")
    fields = {"stack": tokens.stack(stack), "layer": int(layer) + 1, "pass_": int(pass_) + 1}
    if int(pass_):
        return _("{stack}, pass {pass_}, layer {layer}, feed-forward network", **fields)
    return _("{stack}, layer {layer}, feed-forward network", **fields)


def _place(place: str) -> str:
    """The name of a place: a stack, a layer, or a sublayer."""
    parts = place.split(".")
    if len(parts) == 3:
        return _("{stack}, layer {layer}", stack=tokens.stack(parts[0]), layer=int(parts[2]) + 1)
    if len(parts) == 4:
        return _feed_forward(place) if parts[3] == "feed_forward" else tokens.site(Site.parse(place))
    return _("Output") if place == "output" else tokens.stack(place)


def reason_against(page: Page) -> str:
    """Why no token of this run has a sum; empty: each has one."""
    if page.info.recorded and "writes" not in page.trace.sums:
        return needs_network()
    if not page.trace.steps:
        return _("This run generated nothing, so there is no logit to explain.")
    return ""


def link(page: Page) -> str:
    """A sentence that leads to the sum; empty where there is none."""
    return "" if reason_against(page) else _("What made it choose this word")


def about_the_run(page: Page, sound: bool) -> list[str]:
    """Sentences on the run that a sum is of: that it was made again, and that its numbers are none.

    Args:
        page: the page; nothing is made again for a recording, whose sums were saved with it.
        sound: whether all numbers of the sum are finite.
    """
    sentences = list[str]()
    weights: object = page.attention.weights
    if page.info.recorded:
        pass
    elif not isinstance(weights, np.ndarray):  # those of a long run are computed when they are shown
        sentences.append(
            _(
                "The run shown used a fused kernel, which stores no scores, so it was made again with all intermediate values. "
                "Where scores do not fit into memory, the recorded score is the product of the recorded query and key."
            )
        )
    elif not page.trace.stages:
        sentences.append(_("The run shown stores only its weights, so it was made again with all intermediate values."))
    if not sound:
        sentences.append(
            _(
                "This run contains NaN or infinite values, so its parts cannot be added up. Step through, inside the network, says "
                "where such values first appear."
            )
        )
    return sentences


def row_of(trace: Trace, part: Part, position: int) -> dict[str, Any]:
    """The fields of a view that show the row of a head that wrote a part at a position: its strongest cell is chosen."""
    attention = trace.at(part.place)
    row = min(position, attention.weights.shape[1] - 1)
    weights = np.asarray(attention.weights[part.head, row])
    return {"site": part.place, "head": part.head, "query": row, "key": int(np.nan_to_num(weights).argmax())}
