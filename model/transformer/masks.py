"""Masks: who may look at whom. A mask is a value that can be shown: a bool tensor, True where a query may look at a key.

A mask keeps the parts that it was combined from, so that a page can show padding, causality and both, as they ran.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int | None) -> Tensor:
    """True for each key that is no padding.

    Args:
        ids: [batch, key]; or float features with one more axis, where nothing is padding.
        pad_id: the id of padding; None: nothing is.

    Returns:
        [batch, 1, 1, key]: the same for every head and query.
    """
    if pad_id is None:
        return torch.ones(len(ids), 1, 1, ids.shape[1], dtype=torch.bool, device=ids.device)
    return (ids != pad_id)[:, None, None, :]


def valid_mask(valid: Tensor, size: int) -> Tensor:
    """True for the first `valid` keys of each example, whatever their ids are.

    Args:
        valid: [batch], how many positions count.
        size: how many keys there are.

    Returns:
        [batch, 1, 1, key].
    """
    return (torch.arange(size, device=valid.device) < valid[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """True where the key is not in the query's future. The queries are the last ones of the `keys` positions.

    Returns:
        [1, 1, query, key]: the same for every example and head.

    Source: section 3.2.3, third point.
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


@dataclass(frozen=True)
class Mask:
    """A mask and its parts.

    Shapes:
        padding: bool, broadcastable to [batch, 1, query, key].
        causal: bool [1, 1, query, key], or None where the future may be seen.
    """

    padding: Tensor
    causal: Tensor | None = None

    @cached_property
    def allowed(self) -> Tensor:
        """All parts combined: a key may be looked at if every part allows it. Every layer of a stack asks for it."""
        return self.padding if self.causal is None else self.padding & self.causal


def additive(allowed: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask in the form that is added to scores: 0 where allowed, -inf where not."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(~allowed, -torch.inf)


def causal_padding_mask(ids: Tensor, start: int, pad_id: int | None) -> Mask:
    """The mask of a causal stack: no future, no padding.

    Args:
        ids: [batch, key], all positions so far; or float features with one more axis.
        start: the first of them that asks; those before are in the cache.
        pad_id: the id of padding; None: nothing is.
    """
    return Mask(padding_mask(ids, pad_id), causal_mask(ids.shape[1] - start, ids.shape[1], ids.device))


def padding_only_mask(ids: Tensor, start: int, pad_id: int | None) -> Mask:
    """The mask of a stack that may look at its future: no padding. Arguments as for `causal_padding_mask`."""
    return Mask(padding_mask(ids, pad_id))


TargetMask: TypeAlias = Callable[[Tensor, int], Mask]
"""Makes a decoder's mask from all positions so far and the first of them that asks."""
