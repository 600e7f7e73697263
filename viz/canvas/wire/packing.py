"""Byte format of scenes. Needs only numpy and JSON.

A scene is a uint32 (little endian) with the length of the header, the header (JSON, UTF-8), zeros up to a multiple of four, then
the blobs, each padded to a multiple of four. `header["blobs"][name]` has the start of a blob (`at`, counted from the first blob),
its `shape` and its `type` (`uint8` or `float32`). `unpack` in common.js reads this format.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from model.trace.types import Array

_ALIGN = 4


def pack(header: Mapping[str, Any], blobs: Mapping[str, Array]) -> bytes:
    """Packs a header and named arrays of uint8 or float32 into a scene."""
    places, parts, at = {}, [], 0
    for name, array in blobs.items():
        part = _padded(np.ascontiguousarray(array).tobytes())
        places[name] = {"at": at, "shape": array.shape, "type": str(array.dtype)}
        parts.append(part)
        at += len(part)
    text = json.dumps({**header, "blobs": places}, ensure_ascii=False).encode("utf-8", "replace")
    return b"".join((_padded(len(text).to_bytes(4, "little") + text), *parts))


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """Unpacks a scene into its header and arrays, as the browser does."""
    length = int.from_bytes(data[:4], "little")
    header: dict[str, Any] = json.loads(data[4 : 4 + length])
    start = 4 + length + -length % _ALIGN
    blobs = {
        name: np.frombuffer(data, place["type"], math.prod(place["shape"]), start + place["at"]).reshape(place["shape"])
        for name, place in header["blobs"].items()
    }
    return header, blobs


def _padded(part: bytes) -> bytes:
    return part + bytes(-len(part) % _ALIGN)


def encode(weights: Array) -> Array:
    """Probabilities as uint8, round(255·sqrt(weight)); (b / 255)² restores them to within 0.004. NaN becomes 0."""
    code: Array = np.rint(255 * np.sqrt(np.minimum(np.fmax(weights, 0), 1))).astype(np.uint8)
    return code
