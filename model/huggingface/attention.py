"""Attention of the transformers library, recorded: its own eager function computes, and what it computed is handed to the run.

The library asks for its attention function by name and gives it the module, queries, keys, values and mask. Which run is going on
in this thread cannot be passed through the library, so a context variable holds it.
"""

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import UnsupportedModel, phrase
from model.trace.types import Site
from model.transformer.attention import Run
from model.transformer.masks import additive, causal_mask


@dataclass(frozen=True)
class Watch:
    """One call of a network of the library.

    Attributes:
        run: recorder, interventions, and the first position that is computed; those before are in the cache.
        sites: the attention modules by their sites.
        batch: examples at once.
        padding: [batch, 1, 1, key] of bool by the kind of a site: the keys that are no padding. Empty where the library makes
            masks of more than padding and causality.
        seen: the sites that have run.
    """

    run: Run
    sites: Mapping[nn.Module, Site]
    batch: int
    padding: Mapping[str, Tensor]
    seen: set[Site] = field(default_factory=set)

    def __call__(self, call: Callable[[], Any]) -> Any:
        """The result of `call`, watched.

        Raises:
            UnsupportedModel: the library did not return the attention of a site, whose map would be missing without a message.
        """
        token = _WATCH.set(self)
        try:
            result = call()
        finally:
            _WATCH.reset(token)
        if missing := [str(site) for site in self.sites.values() if site not in self.seen]:
            raise UnsupportedModel(
                path="transformers",
                reason=phrase("the library returned no attention weights for {names}", names=", ".join(missing[:3])),
            )
        return result

    def parts(self, site: Site, queries: int, keys: int) -> dict[str, Tensor]:
        """The masks that the mask of a site was combined from, by name."""
        if not self.padding:
            return {}
        padding = {"mask_padding": self.padding[site.kind]}
        causal = site.stack == "decoder" and site.kind == "self"
        return padding | ({"mask_causal": causal_mask(queries, keys, padding["mask_padding"].device)} if causal else {})


_WATCH: ContextVar[Watch | None] = ContextVar("watch", default=None)


def watched() -> Watch | None:
    """The watch of the call that goes on in this thread."""
    return _WATCH.get()


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor]:
    """The library's eager attention of `module`'s architecture, recorded.

    Args:
        query: [batch, head, query, head_dim].
        key, value: [batch, key head, key, head_dim], those of earlier steps included.
        attention_mask: [batch, 1, query, key], added to the scores; None: nothing is hidden.

    Returns:
        context [batch, query, head, head_dim], and weights [batch, head, query, key].
    """
    eager = sys.modules[type(module).__module__].eager_attention_forward
    watch = watched()
    if watch is None:
        context, weights = eager(module, query, key, value, attention_mask, **options)
        return context, weights
    site = Seen(watch, watch.sites[module])
    watch.seen.add(site.site)
    query = site.see("q", query)
    groups = query.shape[1] // key.shape[1]
    key, value = (site.projected(name, tensor, groups) for name, tensor in (("k", key), ("v", value)))
    attention_mask = site.mask(attention_mask, query, key.shape[2])
    context, computed = eager(module, query, key, value, attention_mask, **options)
    weights = site.see("weights", computed)
    if weights is not computed:  # [batch, head, query, key], weigh the values as the library does
        context = (weights @ value.repeat_interleave(groups, dim=1)).transpose(1, 2)
    return site.see("context", context.transpose(1, 2)).transpose(1, 2), weights


@dataclass(frozen=True)
class Seen:
    """One site of a watched call: hands its tensors to the run, and takes what the run goes on with."""

    watch: Watch
    site: Site

    def see(self, name: str, value: Tensor) -> Tensor:
        """`value`, or what an intervention makes of it."""
        return self.watch.run.see(f"attention/{self.site}/{name}", value)

    def projected(self, name: str, tensor: Tensor, groups: int) -> Tensor:
        """Keys or values, [batch, key head, key, head_dim]: recorded are those of this step, which the run joins with earlier ones.

        The library's cache holds what it projected itself, so an intervention is given all positions in each step, from 0 on.

        Args:
            groups: how many heads share a key head. Where several do, nothing can be changed: see `ForeignNetwork.refuse`.
        """
        run, path = self.watch.run, f"attention/{self.site}/{name}"
        if path in run.interventions:
            tensor = run.interventions[path](tensor, 0)
        if self.site.kind == "self" or run.start == 0:
            fresh = tensor[:, :, run.start :] if self.site.kind == "self" else tensor
            run.record(path, fresh.repeat_interleave(groups, dim=1))
        return tensor

    def mask(self, added: Tensor | None, query: Tensor, keys: int) -> Tensor | None:
        """The mask added to the scores: `added`, [batch, 1, query, key] or nothing, unless an intervention changes the mask."""
        batch, _heads, queries, _width = query.shape
        allowed = query.new_ones(1, dtype=torch.bool) if added is None else added == 0
        for name, part in self.watch.parts(self.site, queries, keys).items():
            self.see(name, part.expand(batch, 1, queries, keys))
        rows = allowed.expand(batch, 1, queries, keys)
        seen = self.see("mask", rows)
        return added if seen is rows else additive(seen, query.dtype).clamp(min=torch.finfo(query.dtype).min)
