"""KVCache: the keys and values of the positions that a decode has already read.

The row of a causal decoder does not change when the decode goes on, so each step computes one row: its query against the keys of
all positions so far. The keys and values of earlier positions are taken from here instead of being computed again.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from model.trace.types import Site


class Cache(Protocol):
    """Where an attention sublayer gets its keys and values from."""

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values, each [batch, head, key, head_dim], for all positions so far.

        Args:
            site: whose they are. A layer applied twice is two sites: its second pass sees other inputs.
            compute: makes those of the positions at hand.
        """

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """A stream [batch, position, model] that stays the same during a decode, worked out in its first step."""


class NoCache:
    """Computes everything at hand and remembers nothing."""

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values of the positions at hand, each [batch, head, key, head_dim]."""
        return compute()

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """The stream [batch, position, model], worked out."""
        return compute()


NO_CACHE = NoCache()


class KVCache:
    """The cache of one decode: made when it starts, dropped when it ends, shared with nobody."""

    def __init__(self) -> None:
        self._held: dict[Site, tuple[Tensor, Tensor]] = {}
        self._streams: dict[Site, Tensor] = {}

    def copy(self) -> "KVCache":
        """A cache that holds the same tensors and goes its own way from here."""
        copied = KVCache()
        copied.adopt(self)
        return copied

    def adopt(self, other: "KVCache") -> None:
        """Holds what `other` holds."""
        self._held, self._streams = dict(other._held), dict(other._streams)

    def keys_and_values(self, site: Site, compute: Callable[[], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """Keys and values of all positions so far, each [batch, head, key, head_dim].

        Self-attention grows by the positions at hand. The encoder's output stays the same during a decode, so cross-attention
        computes its keys and values in the first step only.
        """
        held = self._held.get(site)
        if held is None:
            self._held[site] = compute()
        elif site.kind == "self":
            k, v = compute()
            self._held[site] = torch.cat([held[0], k], dim=2), torch.cat([held[1], v], dim=2)
        return self._held[site]

    def once(self, site: Site, compute: Callable[[], Tensor]) -> Tensor:
        """The stream [batch, position, model] of the first step."""
        if site not in self._streams:
            self._streams[site] = compute()
        return self._streams[site]

    def select(self, rows: Tensor) -> None:
        """Keeps the batch rows `rows`, in that order: beam search continues its best hypotheses and drops the others."""
        self._held = {site: (k[rows], v[rows]) for site, (k, v) in self._held.items()}
        self._streams = {site: stream[rows] for site, stream in self._streams.items()}
