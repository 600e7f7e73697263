"""Attention of the transformers library, recorded: its own eager function computes, and what it computed is handed to the run.

The library asks for its attention function by name and gives it the module, queries, keys, values and mask. Which run is going on
in this thread cannot be told through the library, so it stands in a context variable.
"""

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import DamagedFile
from model.trace.types import Site
from model.transformer.attention import Run
from model.transformer.masks import causal_mask


@dataclass(frozen=True)
class Watch:
    """One call of a network of the library.

    Attributes:
        run: what it is recorded for.
        sites: the attention modules by their sites.
        batch: examples at once.
        start: the first position that is computed; those before are in the cache.
        padding: [batch, 1, 1, key] of bool by the kind of a site: the keys that are no padding. Empty where the library makes
            masks of more than padding and causality.
        seen: the sites that have run.
    """

    run: Run
    sites: Mapping[nn.Module, Site]
    batch: int
    start: int
    padding: Mapping[str, Tensor]
    seen: set[Site] = field(default_factory=set)

    def __call__(self, call: Callable[[], Any]) -> Any:
        """What `call` returns, watched.

        Raises:
            DamagedFile: the library did not hand out the attention of a site: its map would be missing without a word.
        """
        token = _WATCH.set(self)
        try:
            result = call()
        finally:
            _WATCH.reset(token)
        if missing := [str(site) for site in self.sites.values() if site not in self.seen]:
            raise DamagedFile(path="the network", detail=f"the library handed out no attention of {', '.join(missing[:3])}")
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
    context, weights = eager(module, query, key, value, attention_mask, **options)
    watch = watched()
    if watch is None:
        return context, weights
    site = watch.sites[module]
    watch.seen.add(site)
    changed = watch.run.intervene(site, "context", context.transpose(1, 2))
    _record(watch, site, (query, key, value), attention_mask, weights, changed)
    return changed.transpose(1, 2), weights


def _record(
    watch: Watch, site: Site, projected: tuple[Tensor, Tensor, Tensor], mask: Tensor | None, weights: Tensor, context: Tensor
) -> None:
    """Hands over what ran. Of keys and values those of this step: the run joins them with earlier ones."""
    query, *pair = projected
    record, (heads, queries, keys) = watch.run.record, weights.shape[1:]
    record(f"attention/{site}/weights", weights)
    allowed = weights.new_ones(1, dtype=torch.bool) if mask is None else mask == 0
    for name, part in {"mask": allowed, **watch.parts(site, queries, keys)}.items():
        record(f"attention/{site}/{name}", part.expand(len(weights), 1, queries, keys))
    record(f"attention/{site}/q", query)
    for name, tensor in zip(("k", "v"), pair, strict=True):
        if site.kind == "self" or watch.start == 0:
            fresh = tensor[:, :, watch.start :] if site.kind == "self" else tensor
            record(f"attention/{site}/{name}", fresh.repeat_interleave(heads // tensor.shape[1], dim=1))
    record(f"attention/{site}/context", context)
