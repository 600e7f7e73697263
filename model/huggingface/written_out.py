"""Attention that a module of the library writes out, as BLIP's and TrOCR's do, instead of calling its attention interface.

Two products with a softmax between them are that call: what comes of them is handed to our function as the interface would hand it.
"""

import threading
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from model.huggingface.attention import attended


class _RunningModes(threading.local):
    """The modes of the modules that run now in this thread, the innermost last."""

    def __init__(self) -> None:
        self.modes = list["_Attention"]()


_RUNNING = _RunningModes()


def register(modules: Iterable[nn.Module]) -> list[RemovableHandle]:
    """Hands the attention that these modules write out to our function; what it returns takes that back."""
    handles = list[RemovableHandle]()
    for module in modules:
        handles.append(module.register_forward_pre_hook(_enter, with_kwargs=True))
        handles.append(module.register_forward_hook(_leave, always_call=True))
    return handles


def _enter(module: nn.Module, given: Any, named: Any) -> None:
    states = given[0] if given else named["hidden_states"]
    _RUNNING.modes.append(_Attention(module, len(states)))
    _RUNNING.modes[-1].__enter__()  # type: ignore[no-untyped-call]  # untyped torch


def _leave(module: nn.Module, given: Any, made: Any) -> None:
    _RUNNING.modes.pop().__exit__(None, None, None)  # type: ignore[no-untyped-call]  # untyped torch


class _Attention(TorchFunctionMode):
    """Sees the functions of torch that a module calls, until it has weighed its values.

    Args:
        module: the attention.
        batch: examples at once; a module may keep the heads of all of them on one axis.
    """

    def __init__(self, module: nn.Module, batch: int) -> None:
        super().__init__()
        self.module, self.batch = module, batch
        self.query: Tensor | None = None
        self.key: Tensor | None = None
        self.scores: Tensor | None = None
        self.scale = 1.0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The result of a function, or of our attention in the place of the second product."""
        made, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        # product, perhaps a scale and a mask, softmax, product: in this order they are an attention
        if name in ("matmul", "__matmul__", "bmm"):
            if self.scores is not None:
                return self._weighed(args[0], args[1], made)
            self.query, self.key, self.scale = args[0], args[1].transpose(-1, -2), 1.0
        elif name in ("mul", "div") and isinstance(args[1], float | int):
            self.scale = self.scale * args[1] if name == "mul" else self.scale / args[1]
        elif name == "softmax" and self.query is not None:
            self.scores = args[0]
        return made

    def _weighed(self, weights: Tensor, value: Tensor, made: Tensor) -> Tensor:
        """The context of our attention, arranged as `made`, the product of weights and values.

        What no intervention has changed is not computed again.
        """

        def heads(tensor: Tensor | None) -> Tensor:  # [batch, head, position, ...]
            assert tensor is not None
            return tensor.reshape(self.batch, -1, *tensor.shape[-2:])

        # a closed cell has the smallest score in all heads alike, so one head tells the mask
        closed = heads(self.scores)[:, :1] <= torch.finfo(weights.dtype).min / 2
        mask = weights.new_zeros(()).masked_fill(closed, torch.finfo(weights.dtype).min) if bool(closed.any()) else None
        given = heads(self.query), heads(self.key), heads(value), mask
        self.query = self.scores = None

        def eager(module: nn.Module, *now: Any, scaling: float) -> tuple[Tensor, Tensor]:
            # nothing was changed: what the library computed is the answer
            if all(tensor is other for tensor, other in zip(now, given, strict=True)):
                return heads(made).transpose(1, 2), heads(weights)
            query, key, value, mask = now
            computed = (query @ key.transpose(-1, -2) * scaling + (0 if mask is None else mask)).softmax(-1)
            return (computed @ value).transpose(1, 2), computed

        context, _weights = attended(self.module, eager, *given, written_out=True, scaling=self.scale)
        return context.transpose(1, 2).reshape(made.shape)
