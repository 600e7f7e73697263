"""Transport of scenes: their byte format, and the cache of the parts that browsers fetch by themselves (viz/canvas/routes.py).

A *scene* is what one drawing gets: a header and arrays, its *blobs*. The header says the *place* of each blob: its start, counted
from the first blob, its shape, and its type, `uint8` or `float32`. `unpack` in common.js reads this format. The scene of a header
{"kind": "demo"} with the blobs `mask` [[1, 0, 1]] of uint8 and `exact` [0.5] of float32, byte by byte:

    0    133 0 0 0    length of the header: uint32, little endian
    4    {"kind": "demo", "blobs": {"mask": {"at": 0, "shape": [1, 3], "type": "uint8"}, "exact": {"at": 4, …}}}    JSON, UTF-8
    137  0 0 0        zeros up to a multiple of four, so that a browser can view a blob as numbers without copying it
    140  1 0 1 0      the blob `mask`, and a zero up to a multiple of four
    144  0 0 0 63     the blob `exact`, four bytes for each number

A *part* is an array that grows with tokens × tokens (parts.py). It is made once, however often it is drawn, and cached by the hash
of its content. A small part is a blob of its scene. Of a larger one the scene has the hash, and the browser fetches it in *pieces*:
the whole of it, or the tiles that come into view. If a browser requests a part that was evicted, it triggers a script run, which
makes the part again.
"""

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Protocol, TypeVar, cast

import numpy as np

from model.sharing.caches import BUDGET, LruCache, SingleFlight
from model.trace.types import Array
from viz.i18n.translate import current as current_language

PATH = "/headlight"
"""Begins the URL path of the parts, and of most other routes of the app."""

MOST_KEYS = 2**14
"""Most keys remembered; the part of a forgotten key is made again."""

WHOLE = "whole"
"""Path of a Blob's only piece."""

_ALIGN = 4


def pack(header: Mapping[str, Any], blobs: Mapping[str, Array]) -> bytes:
    """Packs a header and named arrays of uint8 or float32 into a scene."""
    places, parts, at = {}, [], 0
    for name, array in blobs.items():
        part = np.ascontiguousarray(array).tobytes()
        places[name] = {"at": at, "shape": array.shape, "type": str(array.dtype)}
        parts += [part, bytes(-len(part) % _ALIGN)]
        at += len(part) + -len(part) % _ALIGN
    text = json.dumps({**header, "blobs": places}, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join((len(text).to_bytes(4, "little"), text, bytes(-len(text) % _ALIGN), *parts))


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Unpacks a scene into its header and arrays, as the browser does."""
    length = int.from_bytes(data[:4], "little")
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    start = 4 + length + -length % _ALIGN
    blobs = {
        name: np.frombuffer(data, entry["type"], math.prod(entry["shape"]), start + entry["at"]).reshape(entry["shape"])
        for name, entry in header["blobs"].items()
    }
    return header, blobs


def changed(scene: bytes, texts: Mapping[str, str], **fields: Any) -> bytes:
    """The scene with other texts and other fields of its header, such as without a button that leads nowhere."""
    header, blobs = unpack(scene)
    del header["blobs"]
    return pack(header | fields | {"texts": header["texts"] | texts}, blobs)


def encode(weights: Array) -> Array:
    """Probabilities as uint8, round(255·sqrt(weight)); (b / 255)² restores them to within 0.004. NaN becomes 0."""
    code: Array = np.rint(255 * np.sqrt(np.minimum(np.fmax(weights, 0), 1))).astype(np.uint8)
    return code


def address() -> str:
    """URL path under which the parts are served."""
    streamlit = sys.modules.get("streamlit")  # pages that no server serves are made where it is not even installed
    base = str(streamlit.get_option("server.baseUrlPath") or "").strip("/") if streamlit else ""
    return f"/{base}{PATH}" if base else PATH


def content_hash(*parts: bytes | memoryview) -> str:
    """BLAKE2 hash of these bytes, 32 hexadecimal digits."""
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


class Part(Protocol):
    """Part of a scene: a Blob or a Pyramid."""

    @property
    def name(self) -> str:
        """Hash of the content."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""

    def piece(self, path: str) -> bytes | None:
        """Bytes of one piece; None if there is no such piece."""


T = TypeVar("T", bound=Part)


@dataclass(frozen=True)
class Blob:
    """Part that is served as one piece."""

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
        """All bytes, at the path WHOLE."""
        return self.data if path == WHOLE else None


class PartCache:
    """LRU cache of parts under the budget of the process, keyed by content: equal parts are held once. Thread-safe.

    Args:
        limit: most bytes of all parts together, besides. The part used last stays, even if it is larger than the limit.
    """

    def __init__(self, limit: float = math.inf) -> None:
        self._parts: LruCache[str, Part] = LruCache(limit, attrgetter("nbytes"), budget=BUDGET, kind="parts")
        self._names: LruCache[str, str] = LruCache(math.inf, len, MOST_KEYS)
        self._flight: SingleFlight[str, Part] = SingleFlight()

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._parts.nbytes)

    def get_or_make(self, key: str, make: Callable[[], T]) -> T:
        """The cached part of `key`; if there is none, makes and caches it, once for all threads that ask meanwhile.

        Args:
            key: identifies the part without its content, by a run and a place in it; the language is added here, because parts
                may hold titles.
        """
        key = f"{current_language()}/{key}"

        def kept_or_made() -> Part:
            name = self._names.get(key) or ""
            if (part := self._parts.get(name)) is None:
                part = make()
                self._parts.keep(part.name, part)
                self._names.keep(key, part.name)
            return part

        return cast(T, self._flight.do(key, kept_or_made))  # a key always has the same type of part

    def piece(self, name: str, path: str) -> bytes | None:
        """Bytes of a piece of the part with the hash `name`; None if it is not cached."""
        blob = self._parts.get(name)
        return blob.piece(path) if blob is not None else None

    def clear(self) -> None:
        """Empties the cache."""
        self._parts.forget()
        self._names.forget()


PART_CACHE = PartCache()
"""The cache of this process, shared by all sessions."""
