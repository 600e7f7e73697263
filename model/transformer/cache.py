"""KV cache: keeps the keys and values of the positions that a decode has already read.

A position of a causal decoder attends to earlier positions only, so nothing that is written later changes its keys and values. Each
step of a decode therefore computes one row: the query of the newest token, against the keys of all positions so far. The keys and
values of earlier positions come from the cache: a step computes the projections of one token instead of all of them.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from model.trace.types import Site


class Cache(Protocol):
    """Source of an attention sublayer's keys and values: computed now, or cached from earlier steps."""

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values, each [batch, head, key, head_dim], for all positions so far.

        Args:
            site: the attention sublayer's application. A layer applied twice is two sites: its second pass has other inputs.
            compute: computes keys and values of the new positions.
        """

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """A stream [batch, position, model] that stays the same during a decode: computed in the first step, then kept."""


class NoCache:
    """Computes everything each time and keeps nothing: for training, and for networks that are called once."""

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values of the positions of this call, each [batch, head, key, head_dim]."""
        return compute()

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """The stream [batch, position, model], computed."""
        return compute()


NO_CACHE = NoCache()
"""The cache of a run that has none; it holds nothing, so all runs share it."""


class KVCache:
    """The cache of one decode: made when the decode starts, dropped when it ends, never shared.

    Attributes:
        joined: of the last batch whose first run this is, by site: the keys and values of each run, and all of them in one.
    """

    def __init__(self) -> None:
        self.joined: dict[Site, tuple[tuple[tuple[Tensor, Tensor], ...], tuple[Tensor, Tensor]]] = {}
        self._held: dict[Site, tuple[Tensor, Tensor]] = {}  # k and v, each [batch, head, key, head_dim]; queries are used once
        self._streams: dict[Site, Tensor] = {}

    def copy(self) -> "KVCache":
        """A second cache that begins with the same tensors; steps of one do not change the other."""
        copied = KVCache()
        copied.adopt(self)
        return copied

    def adopt(self, other: "KVCache") -> None:
        """Replaces this cache's contents by those of `other`."""
        self._held, self._streams, self.joined = dict(other._held), dict(other._streams), dict(other.joined)

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions so far, each [batch, head, key, head_dim].

        Self-attention appends those of the new positions. The encoder's output stays the same during a decode, so cross-attention
        computes its keys and values in the first step only.
        """
        held = self._held.get(site)
        if held is None:  # the first step: a prompt of several positions, or all of the encoder's output
            self._held[site] = compute()
        elif site.kind == "self":
            k, v = compute()  # [batch, head, new keys, head_dim]: in a step of a decode, one new key
            self._held[site] = torch.cat([held[0], k], dim=2), torch.cat([held[1], v], dim=2)  # joined along the key axis
        return self._held[site]

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """The stream [batch, position, model] of the first step."""
        if site not in self._streams:
            self._streams[site] = compute()
        return self._streams[site]

    def forget(self, count: int) -> None:
        """Drops the newest `count` positions: tokens that were read on trial and not chosen (model/inference/decoding.py)."""
        # Cross-attention's keys are those of the source, of which nothing was on trial.
        kept = {site: (k[:, :, :-count], v[:, :, :-count]) for site, (k, v) in self._held.items() if site.kind == "self"}
        self._held |= kept

    def select(self, rows: Tensor) -> None:
        """Keeps the batch rows `rows`, in that order: beam search continues its best hypotheses and drops the others.

        A row may occur twice: two of the best hypotheses may continue the same one.
        """
        # A row of the batch is a hypothesis; its keys and values go with it.
        self._held = {site: (k[rows], v[rows]) for site, (k, v) in self._held.items()}
        self._streams = {site: stream[rows] for site, stream in self._streams.items()}
