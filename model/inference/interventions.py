"""Interventions: what a request changes while the network runs."""

from collections.abc import Sequence
from itertools import product

from torch import Tensor

from model.errors import UnknownHead, UnknownSite
from model.spec.external import AnySpec
from model.spec.request import Silence
from model.trace.types import Kind, Site
from model.transformer.attention import Intervene, change_nothing


def sites(spec: AnySpec) -> dict[Site, int]:
    """Every attention site of a network, in the order in which they run, with its number of heads."""
    found: dict[Site, int] = {}
    for name, stack in spec.stacks.items():
        first: Kind = "memory" if stack.wiring == "memory" and name == "decoder" else "self"
        kinds: tuple[Kind, ...] = (first, "cross") if name == "decoder" and spec.encoder is not None else (first,)
        places = product(range(stack.passes), range(stack.layers), kinds)
        found |= {Site(name, pass_, layer, kind): stack.attention.heads for pass_, layer, kind in places}
    return found


def silencer(spec: AnySpec, silences: Sequence[Silence]) -> Intervene:
    """The `Run.intervene` that replaces the context vectors of the silenced heads by zeros.

    Raises:
        UnknownSite, UnknownHead: the network has no such site or head.
    """
    heads: dict[Site, list[int]] = {}
    there = sites(spec)
    for silence in silences:
        site = Site.parse(silence.site)
        if site not in there:
            raise UnknownSite(asked=silence.site, there=", ".join(map(str, there)))
        if not 0 <= silence.head < there[site]:
            raise UnknownHead(asked=silence.head, site=site, last=there[site] - 1)
        heads.setdefault(site, []).append(silence.head)

    def intervene(site: Site, name: str, value: Tensor) -> Tensor:
        if name != "context" or site not in heads:
            return value
        silenced = value.clone()
        silenced[:, heads[site]] = 0.0  # [batch, head, query, head_dim]
        return silenced

    return intervene if heads else change_nothing
