"""Projected: keys and values that copies of one run share, computed once for all calls of the network."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import cachetools
from torch import Tensor

from model.trace.types import Site
from model.transformer.cache import NoCache

Pair: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values, each [1, head, key, head_dim]."""

Held: TypeAlias = cachetools.LRUCache[tuple[Site, bytes], Pair]
"""Keys and values by their site, and what is silenced in front of the stream that they are made of."""


def held(most_bytes: int) -> Held:
    """An empty store of keys and values."""
    return cachetools.LRUCache(most_bytes, lambda pair: sum(each.nbytes for each in pair))


class Projected(NoCache):
    """The keys and values of one call, from a store where they are shared.

    Args:
        store: of all calls.
        streams: what is silenced in front of the streams that are shared in this call, by the kind of the sites that read them.
    """

    def __init__(self, store: Held, streams: Mapping[str, bytes]) -> None:
        self._store, self._streams = store, streams

    def keys_and_values(self, site: Site, compute: Callable[[], Pair]) -> Pair:
        """Keys and values of a site, computed where they are not known yet."""
        stream = self._streams.get(site.kind)
        if stream is None:
            return compute()
        found = self._store.get((site, stream))
        if found is None:
            found = compute()
            if self._store.getsizeof(found) <= self._store.maxsize:
                self._store[site, stream] = found
        return found
