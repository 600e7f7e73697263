"""Masks: which keys each query may attend to, as bool tensors: True where it may.

There are two reasons to forbid a key. Padding is no text; it only makes the examples of a batch equally long. The future would give
the answer away: a decoder is trained to predict the next token, which is in its input, one position on. A Mask keeps both parts as
well as their combination, so that a page can show each as it ran.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int | None) -> Tensor:
    """Padding mask from ids: True for each key that is not padding.

    Args:
        ids: [batch, key]; or float features [batch, key, model], which need `pad_id` None.
        pad_id: the id of padding; None: there is no padding.

    Returns:
        [batch, 1, 1, key]: the same for every head and query.
    """
    # The two axes of size 1 stand for head and query: broadcasting repeats the row for all of them and copies nothing.
    if pad_id is None:
        return torch.ones(len(ids), 1, 1, ids.shape[1], dtype=torch.bool, device=ids.device)
    return (ids != pad_id)[:, None, None, :]  # [batch, key] -> [batch, 1, 1, key]


def valid_mask(valid: Tensor, size: int) -> Tensor:
    """Padding mask from lengths: True for the first `valid` keys of each example, whatever their ids are.

    Args:
        valid: [batch], the number of positions that are not padding.
        size: the number of keys, padding included.

    Returns:
        [batch, 1, 1, key].
    """
    # [key] < [batch, 1] -> [batch, key]: row b is True as long as the key's position is below valid[b].
    return (torch.arange(size, device=valid.device) < valid[:, None])[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Causal mask: True where the key is not in the query's future. The queries are the last `queries` of the `keys` positions.

    For 3 queries and 3 keys it is the lower triangle. For 1 query and 3 keys, as in a step of a cached decode, it is the last row
    of that triangle: the newest position may attend to all.

        1 0 0
        1 1 0
        1 1 1

    Returns:
        [1, 1, query, key]: the same for every example and head.

    Source: section 3.2.3, third point.
    """
    # Query i stands at position keys - queries + i, so the diagonal moves right by keys - queries.
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)[None, None]


@dataclass(frozen=True)
class Mask:
    """A mask with the two parts that it is combined from.

    Shapes:
        padding: bool, broadcastable to [batch, 1, query, key].
        causal: bool [1, 1, query, key]; None where a query may attend to later positions.
    """

    padding: Tensor
    causal: Tensor | None = None

    @cached_property
    def allowed(self) -> Tensor:
        """Both parts combined: a query may attend to a key if both allow it. Computed once, since every layer needs it."""
        # [batch, 1, 1, key] & [1, 1, query, key] -> [batch, 1, query, key]: broadcasting pairs each example with each query.
        return self.padding if self.causal is None else self.padding & self.causal

    @cached_property
    def _rows(self) -> dict[tuple[int, int], tuple[Tensor, Tensor | None, Tensor]]:
        return {}

    def rows(self, batch: int, queries: int) -> tuple[Tensor, Tensor | None, Tensor]:
        """`padding`, `causal` and `allowed` with a row for each query: [batch, 1, query, key], views.

        Every layer gets the same tensors, so that whoever keeps them for each of them copies them once.
        """
        if (batch, queries) not in self._rows:
            padding = self.padding.expand(batch, 1, queries, -1)
            causal = None if self.causal is None else self.causal.expand(batch, 1, queries, -1)
            allowed = padding if causal is None else self.allowed.expand(batch, 1, queries, -1)
            self._rows[batch, queries] = padding, causal, allowed
        return self._rows[batch, queries]


def additive(allowed: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """The same mask in additive form: 0 where allowed, and -inf where not: exp(-inf) = 0 takes the key out of the softmax."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill(~allowed, -torch.inf)


def causal_padding_mask(ids: Tensor, start: int, pad_id: int | None) -> Mask:
    """The mask of a causal decoder: neither padding nor later positions.

    Args:
        ids: [batch, key], all positions so far; or float features [batch, key, model].
        start: position of the first query; the keys and values of the positions before it are in the cache.
        pad_id: the id of padding; None: there is no padding.
    """
    # All positions so far are keys; those from `start` on are queries, as their rows alone are computed.
    return Mask(padding_mask(ids, pad_id), causal_mask(ids.shape[1] - start, ids.shape[1], ids.device))


def padding_only_mask(ids: Tensor, start: int, pad_id: int | None) -> Mask:
    """The mask of a decoder that is not causal: no padding. Arguments as for `causal_padding_mask`."""
    return Mask(padding_mask(ids, pad_id))


TargetMask: TypeAlias = Callable[[Tensor, int], Mask]
"""Makes the mask of a decoder's self-attention, given the ids of all positions so far and the position of the first query."""
