"""Edits of networks of the transformers library by a test's own attention function and hooks, for comparison with ours.

Nothing here uses Headlight's own functions: attention is changed by a second function in the library's attention interface, and
streams by plain hooks on the members of the library's list of layers.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

NAME = "own_hooks"
_NOW: list["Changing"] = []


@dataclass
class Changing:
    """What is changed in the `number`-th attention of a call of the network, counted from 0.

    Attributes:
        query: replaces queries [batch, head, query, head_dim].
        mask: replaces what is added to the scores [batch, 1, query, key].
        weights: replaces weights [batch, head, query, key].
        context: replaces the context [batch, query, head, head_dim].
        kept: the context of this attention, as it was computed.
    """

    number: int
    query: Callable[[Tensor], Tensor] | None = None
    mask: Callable[[Tensor], Tensor] | None = None
    weights: Callable[[Tensor], Tensor] | None = None
    context: Callable[[Tensor], Tensor] | None = None
    kept: list[Tensor] = field(default_factory=list)
    calls: int = -1

    def __call__(self, module: nn.Module, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **options: Any) -> Any:
        """The eager attention of the module's file, changed if it is the one."""
        self.calls += 1
        file: Any = next(sys.modules[kind.__module__] for kind in type(module).__mro__ if _has(kind))
        if self.calls != self.number:
            return file.eager_attention_forward(module, q, k, v, mask, **options)
        q = self.query(q) if self.query else q
        if self.mask:
            mask = self.mask(
                q.new_zeros(1, 1, q.shape[2], k.shape[2]) if mask is None else mask.expand(-1, -1, q.shape[2], -1).clone()
            )
        context, weights = file.eager_attention_forward(module, q, k, v, mask, **options)
        if self.weights:
            each = torch.stack([v[:, head * v.shape[1] // q.shape[1]] for head in range(q.shape[1])], dim=1)
            context = torch.einsum("bhqk,bhkd->bqhd", self.weights(weights.clone()), each)
        context = self.context(context.clone()) if self.context else context
        self.kept.append(context)
        return context.contiguous(), weights


def _has(kind: type) -> bool:
    return hasattr(sys.modules[kind.__module__], "eager_attention_forward")


def _attend(module: nn.Module, *given: Any, **options: Any) -> Any:
    return _NOW[-1](module, *given, **options)


@contextmanager
def changed(network: Any, changing: Changing) -> Iterator[None]:
    """Within it one attention of the network is changed."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, _attend)
    AttentionMaskInterface.register(NAME, eager_mask)
    _NOW.append(changing)
    network.set_attn_implementation(NAME)
    try:
        yield
    finally:
        network.set_attn_implementation("eager")
        _NOW.pop()


def call(network: Any, source: tuple[int, ...], target: tuple[int, ...] | None = None) -> Tensor:
    """Logits, or an encoder's last states, of a network: [position, vocab or model]."""
    given: dict[str, Any] = {"input_ids": torch.tensor([source]), "use_cache": False}
    given |= {"decoder_input_ids": torch.tensor([target])} if target else {}
    if not hasattr(network.config, "use_cache") and target is None:
        given.pop("use_cache")
    with torch.inference_mode():
        out = network(**given)
    found: Tensor = out[0][0]
    return found


def layers(network: nn.Module, decoder: bool) -> list[nn.Module]:
    """The layers of a stack: the members of its first list of modules that hold attention. One shared layer is one member."""

    def attends(module: nn.Module) -> bool:
        return any("att" in name.lower() for name, _part in module.named_modules())

    lists = [(name, module) for name, module in network.named_modules() if isinstance(module, nn.ModuleList) and attends(module)]
    own = [module for name, module in lists if ("decoder" in name.split(".")) == decoder or not decoder]
    return list(own[0].children())


HEAD, KEY = 1, 2


def attention_edits(number: int, site: str) -> Mapping[str, Changing]:
    """Edits of one site as text, and the same as what is changed in the `number`-th attention of a call."""

    def silenced(context: Tensor) -> Tensor:
        context[:, :, HEAD] = 0
        return context

    def row(values: list[float]) -> Callable[[Tensor], Tensor]:
        def put(weights: Tensor) -> Tensor:
            weights[:, HEAD, 3] = 0
            weights[:, HEAD, 3, : len(values)] = torch.tensor(values)
            return weights

        return put

    def copied(weights: Tensor) -> Tensor:
        weights[:, HEAD] = weights[:, 0]
        return weights

    def closed(mask: Tensor) -> Tensor:
        mask[..., 3, KEY] = torch.finfo(mask.dtype).min
        return mask

    return {
        f"silence site={site} head={HEAD}": Changing(number, context=silenced),
        f"set-row site={site} head={HEAD} query=3 to=one-hot key={KEY}": Changing(number, weights=row([0.0, 0.0, 1.0])),
        f"set-row site={site} head={HEAD} query=3 to=numbers numbers=1,2,1": Changing(number, weights=row([0.25, 0.5, 0.25])),
        f"set-row site={site} head={HEAD} to=head other=0": Changing(number, weights=copied),
        f"forbid site={site} query=3 key={KEY}": Changing(number, mask=closed),
        f"sharpen site={site} factor=3": Changing(number, query=lambda query: query * 3),
    }


def its_input(module: nn.Module, given: Any, named: Any, made: Any) -> Any:
    """A hook: a layer's input instead of its output."""
    first = given[0] if given else named["hidden_states"]
    return (first, *made[1:]) if isinstance(made, tuple) else first


def ends(run: Callable[[], Tensor], last: nn.Module | None) -> Tensor:
    """What `run` returns; or, of an encoder, the output of its last layer."""
    if last is None:
        return run()
    kept = list[Tensor]()

    def keep(module: nn.Module, given: Any, made: Any) -> None:
        kept.append((made[0] if isinstance(made, tuple) else made)[0])

    handle = last.register_forward_hook(keep)
    run()
    handle.remove()
    return kept[-1]
