"""Parts of scenes: arrays that grow with tokens × tokens. Made once per run; small ones are sent in the scene, others fetched."""

import json
from collections.abc import Mapping
from math import isqrt
from typing import Any

import numpy as np

from model.trace.types import Array, Attention, Site, Trace
from viz import descriptions, experiment, labels
from viz.canvas.wire import part_cache, strings
from viz.canvas.wire.packing import encode, pack
from viz.canvas.wire.part_cache import PART_CACHE, Blob
from viz.canvas.wire.pooling import Pyramid, allowed, pool

INLINE = 2**16
"""Most bytes of a part inside its scene. Streamlit hashes the scene in each script run, so this is small."""

WHOLE_CELLS = 512**2
"""Most cells of a head that is sent whole; a larger one is sent as tiles."""

_CELL_BYTES = 5
"""Bytes per cell of a head that is sent whole: a float32 and a mask byte."""

OPENING, FINEST, COARSEST = 2_800_000, 128, 16
"""Most bytes of an overview together with its selected head; most and least cells along a side of a head in it. So 12 × 12 × 128 is
not pooled, and 12 × 12 × 512 has two cells per pixel of a tile on a screen of 1440 × 900."""


def scene(header: Mapping[str, Any], parts: Mapping[str, Blob | Pyramid]) -> bytes:
    """Packs a scene with parts. `header["parts"][name]` has a part's hash (`name`) and its other facts. Small parts are blobs of
    the scene, the others are served at `header["partsAddress"]/HASH/PIECE`.
    """
    places = {name: {"name": part.name, **(part.facts if isinstance(part, Pyramid) else {})} for name, part in parts.items()}
    small = {name: part.data for name, part in parts.items() if isinstance(part, Blob) and part.nbytes <= INLINE}
    blobs = {name: np.frombuffer(data, np.uint8) for name, data in small.items()}
    return pack({**header, "partsAddress": part_cache.address(), "parts": places, "lost": strings.lost()}, blobs)


def run_key(trace: Trace) -> str:
    """Hash that identifies a run without reading its weights: model, device and time, request, tokens, shapes."""
    texts = {name: strip.texts for name, strip in trace.tokens.items()}
    shapes = {str(site): attention.weights.shape for site, attention in trace.attention.items()}
    return part_cache.content_hash(json.dumps([dict(trace.model), dict(trace.request), texts, shapes], default=str).encode())


def exact(trace: Trace, site: Site, head: int) -> Blob | Pyramid:
    """One head exactly: blobs `exact` float32 and `mask` uint8, both [query, key]; a large head as a pyramid of tiles.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    attention = trace.at(site)
    return PART_CACHE.get_or_make(f"{run_key(trace)}/{site}/{head}", lambda: _exact(attention, head))


def _exact(attention: Attention, head: int) -> Blob | Pyramid:
    if attention.mask.size > WHOLE_CELLS:
        return Pyramid(attention.head(head), attention.mask)
    return Blob(pack({}, {"exact": attention.head(head).astype(np.float32), "mask": attention.mask.astype(np.uint8)}))


def read(trace: Trace, site: Site, head: int, name: str, values: Array) -> Blob | Pyramid:
    """A reading of a site in the form of `exact`: `values` [query, key], NaN as 0.

    Args:
        name: identifies the reading among those of this head.
    """

    def make() -> Blob:
        exact = np.nan_to_num(values).astype(np.float32)
        return Blob(pack({}, {"exact": exact, "mask": trace.at(site).mask.astype(np.uint8)}))

    return PART_CACHE.get_or_make(f"{run_key(trace)}/{site}/{head}/{name}", make)


def heads(trace: Trace, site: Site) -> Blob:
    """All heads of a site exactly: blobs `exact` float32 [head, query, key] and `mask` uint8 [query, key]."""

    def make() -> Blob:
        attention = trace.at(site)
        return Blob(pack({}, {"exact": attention.weights[:].astype(np.float32), "mask": attention.mask.astype(np.uint8)}))

    return PART_CACHE.get_or_make(f"{run_key(trace)}/{site}", make)


def overview(trace: Trace) -> Blob:
    """All heads of all sites, grouped by kind and pooled to the size of tiles. Blobs: `weights/SITE` uint8 [head, query, key] and
    `mask/N` uint8 [query, key] (sites with equal masks share one). Each entry is the largest of a block of `group["blocks"]` cells.
    """
    return PART_CACHE.get_or_make(run_key(trace), lambda: Blob(_overview(trace)))


def _overview(trace: Trace) -> bytes:
    blobs: dict[str, Array] = {}
    masks: dict[tuple[bytes, tuple[int, ...]], str] = {}
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    heads = sum(attention.heads for attention in trace.attention.values())
    for site, attention in trace.attention.items():
        down, across = blocks(attention.mask, heads)
        blobs[f"weights/{site}"] = _codes(attention, down, across)
        mask = pool(attention.mask, down, across, np.logical_or).astype(np.uint8)
        name = masks.setdefault((mask.tobytes(), mask.shape), f"mask/{len(masks)}")
        blobs[name] = mask
        if (site.stack, site.kind) not in groups:
            groups[site.stack, site.kind] = _group(trace, attention, (down, across))
        groups[site.stack, site.kind]["sites"].append(
            {
                "site": str(site),
                "label": row_label(trace, site),
                "mask": name,
                "names": experiment.head_names(trace, attention),
            }
        )
    header = {"groups": list(groups.values()), "ends": ["0", "1"], "description": descriptions.overview(trace)}
    return pack(header, blobs)


def _codes(attention: Attention, down: int, across: int) -> Array:
    """All heads of a site, pooled: codes [head, query, key]."""
    if down == across == 1 and attention.mask.size <= WHOLE_CELLS:
        return encode(allowed(attention.weights[:], attention.mask))
    pooled = (pool(allowed(attention.head(head), attention.mask), down, across) for head in range(attention.heads))
    return encode(np.stack(list(pooled)))


def blocks(mask: Array, heads: int) -> tuple[int, int]:
    """Queries and keys per block in an overview of so many heads."""
    selected = _CELL_BYTES * mask.size if mask.size <= WHOLE_CELLS else 0
    side = max(COARSEST, min(FINEST, isqrt((OPENING - selected) // max(1, heads))))
    return -(-mask.shape[0] // side), -(-mask.shape[1] // side)


def _group(trace: Trace, attention: Attention, blocks: tuple[int, int]) -> dict[str, Any]:
    site = attention.site
    return {"title": labels.kind(site.stack, site.kind), "blocks": blocks, **axes(trace, attention), "sites": []}


def axes(trace: Trace, attention: Attention) -> dict[str, Any]:
    """Labels and titles of the axes at a site."""
    query, key = labels.query_axis(trace, attention.site), labels.key_axis(trace, attention.site)
    return {
        "queryAxis": query,
        "keyAxis": key,
        "axes": strings.axes(query, key),
        "queries": labels.queries(trace, attention),
        "keys": labels.keys(trace, attention),
        "queryStrip": attention.query_tokens,
        "keyStrip": attention.key_tokens,
    }


def row_label(trace: Trace, site: Site) -> str:
    """Short name of an atlas row."""
    passes = 1 + max(s.pass_ for s in trace.attention if s.stack == site.stack)
    return strings.layer(site.layer, site.pass_ if passes > 1 else None)
