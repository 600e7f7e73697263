"""Masks: who may look at whom. A mask is a value that can be shown: a bool tensor, True where a query may look at a key.

A mask keeps the parts that it was combined from, so that a page can show padding, causality and both, as they ran.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor:
    """True for each key that is no padding.

    Args:
        ids: [batch, key].

    Returns:
        [batch, 1, 1, key]: the same for every head and query.
    """
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

    @property
    def allowed(self) -> Tensor:
        """All parts combined: a key may be looked at if every part allows it."""
        return self.padding if self.causal is None else self.padding & self.causal


def additive(allowed: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask in the form that is added to scores: 0 where allowed, -inf where not."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(~allowed, -torch.inf)
