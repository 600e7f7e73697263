"""The shelf: parts of scenes under a hash of what they hold, for as long as there is room. A route of the app serves them.

A script run puts a part here once, however often it draws it. What has been put away to make room is asked for again by the
browser, and the next script run puts it back.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Protocol, TypeVar

import streamlit as st
from cachetools import LRUCache
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/headlight"
LIMIT = 256 * 2**20
MOST_KEYS = 2**14
"""Keys whose part is known; of one that is forgotten, the part is made again."""

WHOLE = "whole"
"""The piece that a Blob is served as."""

_HEADERS = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Encoding": "identity",  # else Streamlit compresses it anew for each request, which takes longer than sending it
}


def address() -> str:
    """Where browsers find the shelf."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}{PATH}" if base else PATH


def content_hash(*parts: bytes | memoryview) -> str:
    """32 hexadecimal digits that stand for these bytes."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Kept(Protocol):
    """What the shelf can hold."""

    @property
    def name(self) -> str:
        """Hash of the content."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""

    def piece(self, path: str) -> bytes | None:
        """The bytes of one piece; None: there is no such piece."""


T = TypeVar("T", bound=Kept)


@dataclass(frozen=True)
class Blob:
    """Bytes that are served whole."""

    data: bytes

    @cached_property
    def name(self) -> str:
        """Hash of the content."""
        return content_hash(self.data)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return len(self.data)

    def piece(self, path: str) -> bytes | None:
        """All of it."""
        return self.data if path == WHOLE else None


class Shelf:
    """LRU cache of parts, bounded in bytes and keyed by content: equal parts are held once. Safe to be used from many threads.

    Args:
        limit: bytes of all parts together. The part used last stays, even where it alone is larger.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._parts: LRUCache[str, Kept] = LRUCache(limit, getsizeof=lambda part: min(part.nbytes, limit))
        self._names: LRUCache[str, str] = LRUCache(MOST_KEYS)
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes held; of a part larger than the limit, the limit."""
        return int(self._parts.currsize)

    def keep(self, key: str, make: Callable[[], T]) -> T:
        """The part that was made under `key`, if it is still here; else what `make` makes.

        Args:
            key: tells what is meant without its content: a run and a place in it.
        """
        with self._lock:
            found = self._parts.get(self._names.get(key, ""))
        if found is not None:
            return found  # type: ignore[return-value]  # one key, one kind
        made = make()
        with self._lock:
            self._parts[made.name] = made
            self._names[key] = made.name
        return made

    def piece(self, name: str, path: str) -> bytes | None:
        """The bytes of a piece of what has the hash `name`; None: it is not here."""
        with self._lock:
            found = self._parts.get(name)
        return found.piece(path) if found is not None else None

    def clear(self) -> None:
        """Puts everything away."""
        with self._lock:
            self._parts.clear()
            self._names.clear()


SHELF = Shelf()
"""The shelf of this process, for all sessions."""


def _serve(request: Request) -> Response:
    """One piece. What a hash names never changes, so a browser that has it is told so whether or not it is still here."""
    name, path = request.path_params["name"], request.path_params["path"]
    tag = f'"{name}/{path}"'
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    body = SHELF.piece(name, path)
    if body is None:
        return Response(status_code=404, headers={"Cache-Control": "no-store"})
    return Response(body, headers=headers, media_type="application/octet-stream")


ROUTE = Route(f"{address()}/{{name}}/{{path:path}}", _serve)
"""For `st.App(routes=…)`. It computes in a thread of its own, not on the event loop."""
