"""Interventions: what a request changes while the network runs."""

from collections.abc import Sequence

from torch import Tensor

from model.engine.base import Silence
from model.errors import UnknownHead, UnknownSite
from model.spec import ModelSpec
from model.trace import Site
from model.transformer.attention import Intervene, change_nothing


def sites(spec: ModelSpec) -> dict[Site, int]:
    """Every attention site of a network, in the order in which they run, with its number of heads."""
    found: dict[Site, int] = {}
    if spec.encoder is not None:
        for pass_ in range(spec.encoder.passes):
            for layer in range(spec.encoder.layers):
                found[Site("encoder", pass_, layer, "self")] = spec.encoder.attention.heads
    for pass_ in range(spec.decoder.passes):
        for layer in range(spec.decoder.layers):
            found[Site("decoder", pass_, layer, "self")] = spec.decoder.attention.heads
            if spec.encoder is not None:
                found[Site("decoder", pass_, layer, "cross")] = spec.decoder.attention.heads
    return found


def silencer(spec: ModelSpec, silences: Sequence[Silence]) -> Intervene:
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
            raise UnknownHead(asked=silence.head, site=site, heads=there[site])
        heads.setdefault(site, []).append(silence.head)

    def intervene(site: Site, name: str, value: Tensor) -> Tensor:
        if name != "context" or site not in heads:
            return value
        silenced = value.clone()
        silenced[:, heads[site]] = 0.0  # [batch, head, query, head_dim]
        return silenced

    return intervene if heads else change_nothing
