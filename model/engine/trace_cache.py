"""Trace cache: an LRU cache of traces, bounded in bytes."""

from collections.abc import Hashable
from typing import TypeVar

from model.engine.lru_cache import LruCache
from model.trace.types import Trace

Key = TypeVar("Key", bound=Hashable)


class TraceCache(LruCache[Key, Trace]):
    """Traces by key: a request, or a request with the version of the files that its network was loaded from.

    Args:
        most_bytes: of their arrays. The newest trace stays, however large: its page asks again. 0: nothing is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__(most_bytes, lambda trace: trace.nbytes)
