"""Attention of the transformers library, recorded: its own eager function computes, and what it computed is handed to the run.

The library asks for its attention function by name and gives it the module, queries, keys, values and mask. Which run is going on
in this thread cannot be passed through the library, so a context variable holds it.
"""

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from traceback import walk_tb
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from model.errors import HeadlightError, RunFailed, UnsupportedModel, phrase
from model.requests.external import ForeignAttention
from model.trace.types import Site
from model.transformer.attention import Run
from model.transformer.masks import causal_mask
from model.transformer.networks import is_out_of_memory

MOST_WORDS = 20
"""Most words of what the library says."""


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Makes an error of the library one of a run. That of a device without memory stays as it is: a smaller batch may fit.

    What our own code raises, which the library calls as its attention and by hooks, stays as it is, too.

    Raises:
        RunFailed: there was an error.
    """
    try:
        yield
    except HeadlightError:
        raise
    except Exception as error:
        if is_out_of_memory(error) or _is_ours(error):
            raise
        raise RunFailed(error=f"{type(error).__name__}: {' '.join(str(error).split()[:MOST_WORDS])}") from error


def _is_ours(error: Exception) -> bool:
    """Whether code of this program raised an error."""
    frames = [frame for frame, _line in walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")).startswith("model.")


@dataclass(frozen=True)
class Watch:
    """One call of a network of the library.

    Attributes:
        run: recorder, interventions, and the first position that is computed; those before are in the cache.
        sites: the attention modules with their sites, one for each time that a module runs.
        batch: examples at once.
        padding: [batch, 1, 1, key] of bool by the kind of a site: the keys that are no padding. Empty where the library makes
            masks of more than padding and causality.
        seen: the sites that have run.
        turns: how often each module has run, by the name of its first value.
        masks: what the mask of the library allows, and the parts of it, by the tensor that the library made: layers share it.
    """

    run: Run
    sites: Mapping[nn.Module, tuple[Site, ...]]
    batch: int
    padding: Mapping[str, Tensor]
    seen: set[Site] = field(default_factory=set)
    turns: Counter[str] = field(default_factory=Counter)
    masks: dict[tuple[str, str, int], tuple[Tensor | None, dict[str, Tensor], Tensor]] = field(default_factory=dict)

    def __call__(self, call: Callable[[], Any]) -> Any:
        """The result of `call`, watched.

        Raises:
            RunFailed: the library raised an error.
            UnsupportedModel: the library did not return the attention of a site, whose map would be missing without a message.
        """
        token = _WATCH.set(self)
        try:
            with in_one_sentence():
                result = call()
        finally:
            _WATCH.reset(token)
        # a map that is missing would look like one that was not asked for
        if missing := [str(site) for sites in self.sites.values() for site in sites if site not in self.seen]:
            raise UnsupportedModel(
                path="transformers",
                reason=phrase("the library returned no attention weights for {names}", names=", ".join(missing[:3])),
            )
        return result

    def turn(self, names: tuple[str, ...]) -> str:
        """The name of a value of a module that runs now: it has one for each time that it runs."""
        if len(names) == 1:
            return names[0]
        self.turns[names[0]] += 1
        return names[self.turns[names[0]] - 1]

    def site(self, module: nn.Module) -> Site:
        """The site that a module computes now.

        Raises:
            UnsupportedModel: it runs once more than it has sites.
        """
        next_site = next((site for site in self.sites[module] if site not in self.seen), None)
        if next_site is None:
            raise UnsupportedModel(
                path="transformers", reason=phrase("{name} runs more often than before", name=type(module).__name__)
            )
        self.seen.add(next_site)
        return next_site

    def masked(self, site: Site, added: Tensor | None, query: Tensor, keys: int) -> tuple[Tensor, dict[str, Tensor]]:
        """[batch, head or 1, query, key] of bool: what a mask of the library allows; and the masks that it was combined from.

        Args:
            added: [batch, head or 1, query, key], added to the scores; None: nothing is hidden.
        """
        # layers of a stack share the library's mask, a tensor as large as a map: it is read once
        key = (site.stack, site.kind, 0 if added is None else id(added))
        if key not in self.masks:
            batch, _heads, queries, _width = query.shape
            allowed = query.new_ones(1, dtype=torch.bool) if added is None else added > torch.finfo(added.dtype).min / 2
            heads = 1 if added is None else added.shape[1]
            parts = {name: part.expand(batch, 1, queries, keys) for name, part in self.parts(site, queries, keys).items()}
            self.masks[key] = added, parts, allowed.expand(batch, heads, queries, keys)
        _held, parts, rows = self.masks[key]
        return rows, parts

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


@dataclass(frozen=True, eq=False)
class Call:
    """One call of the attention interface in a network whose places are looked for.

    Attributes:
        module: the attention.
        attention: its heads.
        batch, queries, keys: sizes.
        scale: of the scores.
        context: [batch, query, head, head_dim].
        product: whether the weights are the softmax of scaled products of queries and keys, where a mask only closes cells.
        weighs: whether the context is the values, weighed by the weights.
    """

    module: nn.Module
    attention: ForeignAttention
    batch: int
    queries: int
    keys: int
    scale: float
    context: Tensor
    product: bool
    weighs: bool


_NOTE: ContextVar[Callable[[Call], None] | None] = ContextVar("note", default=None)


@contextmanager
def finding(note: Callable[[Call], None]) -> Iterator[None]:
    """Within it each call of the attention interface in this thread is handed to `note`."""
    token = _NOTE.set(note)
    try:
        yield
    finally:
        _NOTE.reset(token)


def attend(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """The library's eager attention of `module`'s architecture, recorded; of a long input, torch's fused kernel.

    Args:
        query: [batch, head, query, head_dim].
        key, value: [batch, key head, key, head_dim], those of earlier steps included.
        attention_mask: [batch, 1, query, key], added to the scores; None: nothing is hidden.

    Returns:
        context [batch, query, head, head_dim], and weights [batch, head, query, key], which the fused kernel does not return.
    """
    kind: Any = type(module)
    return attended(module, _eager(kind), query, key, value, attention_mask, **options)


def attended(
    module: Any,
    eager: Callable[..., tuple[Tensor, Tensor]],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    written_out: bool = False,
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """As `attend`, where `eager` is the library's own function.

    Args:
        written_out: whether the library has computed it already, so that a fused kernel would only add to that.
    """
    # without a watch this is the library's own function; a note is taken where places are looked for
    watch = watched()
    if watch is None:
        context, weights = eager(module, query, key, value, attention_mask, **options)
        if (note := _NOTE.get()) is not None:
            note(_describe_call(module, query, key, value, attention_mask, options, context, weights))
        return context, weights
    site = Seen(watch, watch.site(module))
    query = site.see("q", query)
    groups = query.shape[1] // key.shape[1]
    # several heads share a key and a value: where one head's are changed, each head gets its own, as in networks of our own
    if groups > 1 and site.changes("k", "v"):
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
        module, groups = _Ungrouped(module), 1
    key, value = (site.projected(name, tensor, groups) for name, tensor in (("k", key), ("v", value)))
    attention_mask = site.mask(attention_mask, query, key.shape[2])
    # a long input: all maps would take too much memory, so weights are computed when one is shown
    if watch.run.fused and not written_out:
        context = scaled_dot_product_attention(
            query, key, value, attention_mask, scale=options.get("scaling"), enable_gqa=groups > 1
        )
        return site.see("context", context).transpose(1, 2).contiguous(), None
    context, computed = eager(module, query, key, value, attention_mask, **options)
    weights = computed if watch.run.fused else site.see("weights", computed)
    # an intervention changed the weights: the context must follow from them, not from the scores
    if weights is not computed:  # [batch, head, query, key], weigh the values as the library does
        context = (weights @ value.repeat_interleave(groups, dim=1)).transpose(1, 2)
    return site.see("context", context.transpose(1, 2)).transpose(1, 2).contiguous(), weights


class _Ungrouped:
    """An attention whose heads have keys and values of their own, for the library's eager functions.

    They read a few settings of the module, such as its dropout, and repeat keys and values `num_key_value_groups` times. The module
    itself is shared by all runs, so it is not changed.
    """

    num_key_value_groups = 1

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        """Any other setting of the module."""
        return getattr(self._module, name)


@cache
def _eager(kind: Any) -> Callable[..., tuple[Tensor, Tensor]]:
    """The eager attention of an architecture, which is in the file of its class, or of a class that this one is made of."""
    # a class may inherit its attention from one in another file of the library
    files = (sys.modules[ancestor.__module__] for ancestor in kind.__mro__)
    function: Callable[..., tuple[Tensor, Tensor]] = next(
        file.eager_attention_forward for file in files if hasattr(file, "eager_attention_forward")
    )
    return function


_MORE = ("softcap", "position_bias", "s_aux")
"""Options of the interface by which scores are more than scaled products."""


def _describe_call(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    options: Mapping[str, Any],
    context: Tensor,
    weights: Tensor,
) -> Call:
    groups, close = query.shape[1] // key.shape[1], 1e-5 if query.dtype == torch.float32 else 1e-2
    query, key, value = (tensor.float() for tensor in (query, key, value))
    key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scale = options.get("scaling")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    scores = query @ key.transpose(-1, -2) * scale + (0 if mask is None else mask)
    # a mask that only closes cells; one with other numbers, such as ALiBi's, makes scores more than products
    plain = mask is None or bool(((mask == 0) | (mask <= torch.finfo(mask.dtype).min / 2)).all())
    product = plain and not any(options.get(name) is not None for name in _MORE) and _close(scores.softmax(-1), weights, close)
    weighs = _close((weights.float() @ value).transpose(1, 2), context, close)
    rotated = int(module.qk_rope_head_dim) if (latent := latent_width(module)) else 0  # type: ignore[arg-type]  # untyped library
    attention = ForeignAttention(query.shape[1], query.shape[1] // groups, query.shape[-1], latent=latent, rotated=rotated)
    return Call(module, attention, len(query), query.shape[2], key.shape[2], scale, context, product, weighs)


def latent_width(module: nn.Module) -> int:
    """Width of the latents from which an attention makes the keys and values of all its heads (DeepSeek-V2, 2024); 0: it has none.

    Those of the library that keep latents have a method that makes keys and values of them.
    """
    width = getattr(module, "kv_lora_rank", 0) if hasattr(module, "expand_kv") and hasattr(module, "kv_b_proj") else 0
    return int(width)


def _close(tensor: Tensor, other: Tensor, most: float) -> bool:
    return tensor.shape == other.shape and torch.allclose(tensor.float(), other.float(), atol=most, rtol=10 * most)


@dataclass(frozen=True)
class Seen:
    """One site of a watched call: hands its tensors to the run, and takes what the run goes on with."""

    watch: Watch
    site: Site

    def see(self, name: str, value: Tensor) -> Tensor:
        """`value`, or what an intervention makes of it."""
        return self.watch.run.see(f"attention/{self.site}/{name}", value)

    def changes(self, *names: str) -> bool:
        """Whether the run changes one of these values here."""
        return any(f"attention/{self.site}/{name}" in self.watch.run.interventions for name in names)

    def projected(self, name: str, tensor: Tensor, groups: int) -> Tensor:
        """Keys or values, [batch, key head, key, head_dim]: recorded are those of this step, which the run joins with earlier ones.

        The library's cache holds what it projected itself, so an intervention is given all positions in each step, from 0 on.

        Args:
            groups: how many heads share a key head. Where several do, nothing is changed here.
        """
        run, path = self.watch.run, f"attention/{self.site}/{name}"
        # the cache holds keys and values of earlier steps as they were, so all are changed again in each step
        if path in run.interventions:
            tensor = run.interventions[path](tensor, 0)
        if self.site.kind == "self" or run.start == 0:
            fresh = tensor[:, :, run.start :] if self.site.kind == "self" else tensor
            run.record(path, fresh.repeat_interleave(groups, dim=1))
        return tensor

    def mask(self, added: Tensor | None, query: Tensor, keys: int) -> Tensor | None:
        """The mask added to the scores: `added`, [batch, 1, query, key] or nothing, unless an intervention changes the mask.

        A cell that an intervention leaves open keeps what the library adds to its score, such as a number for its distance.
        """
        rows, parts = self.watch.masked(self.site, added, query, keys)
        for name, part in parts.items():
            self.see(name, part)
        seen = self.see("mask", rows)
        if seen is rows:
            return added
        # as the library closes a cell: the smallest number is added to its score
        closed = torch.finfo(query.dtype).min
        added_to_open = query.new_zeros(()) if added is None else added.masked_fill(~rows, 0.0)
        return torch.where(seen, added_to_open, closed)
