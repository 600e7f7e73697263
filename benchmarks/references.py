"""References for attention weights: what hooks and flags of a library give, independent of `headlight.py`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

Reference: TypeAlias = Sequence[Tensor]
"""The weights of each site in the order in which they ran, each [batch, head, query, key], or [batch, query, key] for one head."""


def hooked(model: nn.Module, call: Callable[[], object], wanted: Callable[[str, nn.Module], bool]) -> Reference:
    """What the modules return that `wanted` names: an nn.Softmax, or the dropout behind a softmax."""
    found: list[Tensor] = []
    modules = [module for name, module in model.named_modules() if wanted(name, module)]
    hooks = [module.register_forward_hook(lambda _module, _inputs, out: found.append(out.detach())) for module in modules]
    call()
    for hook in hooks:
        hook.remove()
    return found


def flagged(model: nn.Module, call: Callable[[], object]) -> Reference:
    """The weights that nn.MultiheadAttention returns when it is asked for them, on the inputs of the call.

    A hook on each layer also takes nn.TransformerEncoderLayer off its fast path.
    """
    found: list[Tensor] = []

    def ask(module: nn.MultiheadAttention, inputs: Any, options: dict[str, Any], _out: object) -> None:
        with torch.enable_grad():
            asked = options | {"need_weights": True, "average_attn_weights": False}
            weights = nn.MultiheadAttention.forward(module, *inputs, **asked)[1]
            assert weights is not None
            found.append(weights.detach())

    layers = [module for module in model.modules() if isinstance(module, nn.TransformerEncoderLayer)]
    attentions = [module for module in model.modules() if isinstance(module, nn.MultiheadAttention)]
    hooks = [layer.register_forward_hook(lambda _module, _inputs, out: out) for layer in layers]
    hooks += [module.register_forward_hook(ask, with_kwargs=True) for module in attentions]
    call()
    for hook in hooks:
        hook.remove()
    return found


@contextmanager
def softmax_replaced(found: list[Tensor]) -> Iterator[None]:
    """Every result of `torch.nn.functional.softmax`."""
    plain = nn.functional.softmax

    def softmax(*args: Any, **options: Any) -> Tensor:
        found.append(plain(*args, **options))
        return found[-1]

    nn.functional.softmax = softmax
    try:
        yield
    finally:
        nn.functional.softmax = plain


def softmaxes(call: Callable[[], object]) -> Reference:
    """What `torch.nn.functional.softmax` returns during the call."""
    found: list[Tensor] = []
    with softmax_replaced(found):
        call()
    return found


def kept(function: Callable[..., Tensor], found: list[Tensor]) -> Callable[..., Tensor]:
    """The function, which also appends what it returns to `found`."""

    def keeping(*args: Any) -> Tensor:
        found.append(function(*args))
        return found[-1]

    return keeping
