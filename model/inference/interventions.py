"""Interventions: the sites at which a run can be changed, and the values whose change needs the weights written out."""

from collections.abc import Iterable
from itertools import product

from model.spec.external import AnySpec
from model.trace.types import Kind, Site


def sites(spec: AnySpec) -> dict[Site, int]:
    """Every attention site of a network, in the order in which they run, with its number of heads."""
    found: dict[Site, int] = {}
    for name, stack in spec.stacks.items():
        first: Kind = "memory" if stack.wiring == "memory" and name == "decoder" else "self"
        kinds: tuple[Kind, ...] = (first, "cross") if name == "decoder" and spec.encoder is not None else (first,)
        places = product(range(stack.passes), range(stack.layers), kinds)
        found |= {Site(name, pass_, layer, kind): stack.attention.heads for pass_, layer, kind in places}
    return found


def needs_weights(interventions: Iterable[str]) -> bool:
    """Whether an intervention needs the weights, which the fused kernel does not compute; then long inputs do not use it."""
    return any(name.rpartition("/")[2] in _WRITTEN_OUT for name in interventions)


_WRITTEN_OUT = ("scores", "mask", "mask_padding", "mask_causal", "weights")
"""The fused kernel never writes scores and weights, and maps made of q and k afterwards know one mask for all heads."""
