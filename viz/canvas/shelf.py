"""The shelf: parts of scenes under a hash of what they hold, for as long as there is room. A route of the app serves them.

A script run puts a part here once, however often it draws it. What has been put away to make room is asked for again by the
browser, and the next script run puts it back.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Protocol, TypeVar

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/headlight"
LIMIT = 256 * 2**20
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
    """Holds parts up to `limit` bytes; those that were used longest ago go first. Safe to be used from many threads."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._keys: dict[str, str] = {}
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self._kept.values())

    def keep(self, key: str, make: Callable[[], T]) -> T:
        """What stands here under `key`, else what `make` makes, which stands here from now on.

        Args:
            key: tells what is meant without its content: a run and a place in it.
        """
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return found  # type: ignore[return-value]  # one key, one kind
        made = make()
        with self._lock:
            self._kept[key] = made
            self._keys[made.name] = key
            self._make_room()
        return made

    def piece(self, name: str, path: str) -> bytes | None:
        """The bytes of a piece of what has the hash `name`; None: it is not here."""
        with self._lock:
            found = self._kept.get(key := self._keys.get(name, ""))
            if found is None:
                return None
            self._kept.move_to_end(key)
        return found.piece(path)

    def clear(self) -> None:
        """Puts everything away."""
        with self._lock:
            self._kept.clear()
            self._keys.clear()

    def _make_room(self) -> None:
        """Puts away what was used longest ago; the newest stays, even where it is larger than the limit."""
        held = self.nbytes
        while held > self._limit and len(self._kept) > 1:
            key, old = self._kept.popitem(last=False)
            held -= old.nbytes
            if self._keys.get(old.name) == key:
                del self._keys[old.name]


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
