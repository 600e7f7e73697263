"""Interventions: the changes that a request makes while the network runs, as functions of one recorded value."""

from collections.abc import Iterable, Sequence
from itertools import product

from torch import Tensor

from model.errors import CannotChange, UnknownHead, UnknownSite
from model.spec.edits import Edit, Silence
from model.spec.external import AnySpec
from model.trace.types import Kind, Site
from model.transformer.attention import Intervention


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


def interventions_of(spec: AnySpec, edits: Sequence[Edit]) -> dict[str, Intervention]:
    """The changes of a request by the name of the value, such as attention/decoder.0.0.cross/context: `Run.interventions`.

    Raises:
        UnknownSite, UnknownHead: the network has no such site or head.
    """
    heads: dict[Site, list[int]] = {}
    there = sites(spec)
    for edit in edits:
        if not isinstance(edit, Silence) or edit.by != "zeros":
            raise CannotChange(name=str(edit), reason="this version silences heads by zeros and nothing else")
        if edit.site and Site.parse(edit.site) not in there:
            raise UnknownSite(asked=edit.site, there=", ".join(map(str, there)))
        for site in there:
            if edit.at_site(str(site)):
                if edit.head and max(edit.head) >= there[site]:
                    raise UnknownHead(asked=max(edit.head), site=site, last=there[site] - 1)
                heads.setdefault(site, []).extend(edit.head or range(there[site]))
    return {f"attention/{site}/context": silencer(own) for site, own in heads.items()}


def silencer(heads: Sequence[int]) -> Intervention:
    """Head ablation: replaces the context vectors [batch, head, query, head_dim] of some heads by zeros."""

    def silence(context: Tensor, start: int) -> Tensor:
        silenced = context.clone()
        silenced[:, heads] = 0.0  # [batch, head, query, head_dim]
        return silenced

    return silence
