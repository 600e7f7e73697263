"""Scene of the differences between two runs: an atlas whose color scale ends at the largest difference."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from model.trace.types import Array, Site, Trace
from viz.canvas.wire import overviews, parts, strings
from viz.canvas.wire.parts import max_magnitude, pool
from viz.canvas.wire.transport import PART_CACHE, Blob, pack, unpack
from viz.features.compare import texts
from viz.features.compare.run_difference import Change
from viz.figures.theme import SCHEMES
from viz.i18n.translate import decimal_sign, number
from viz.labels import alt_text, tokens


def scene(first: Trace, second: Trace, changes: Mapping[Site, Change], site: Site, head: int) -> bytes:
    """Atlas of w₂ - w₁. It has the parts of an atlas; `weights/SITE` and `codes` hold `encode`d differences.

    Args:
        first, second: the runs.
        changes: the changes, by site that can be compared.
        site, head: the selected head. There is no part `exact` if it cannot be compared or is too large to send whole.
    """
    key = "/".join((parts.run_key(first), parts.run_key(second), *map(str, changes)))
    overview = PART_CACHE.get_or_make(key, lambda: Blob(_overview(first, second, changes)))
    header = {
        "schemes": SCHEMES,
        "decimal": decimal_sign(),
        "silenced": sorted(f"{site}/{head}" for site, head in tokens.silenced(first) | tokens.silenced(second)),
        "texts": texts.changes(),
        "description": alt_text.all_changes({site_: change.by_row for site_, change in changes.items()}),
        "selection": {"site": str(site), "head": head, "query": -1},
    }
    change = changes.get(site)
    if change is None or head >= change.heads or change.mask.size > parts.WHOLE_CELLS:
        return parts.scene(header, {"overview": overview})
    signed = unpack(overview.data)[0]["signed"]
    exact = PART_CACHE.get_or_make(f"{key}/{site}/{head}", lambda: Blob(_exact(change, head, signed)))
    return parts.scene(header, {"overview": overview, "exact": exact})


def _exact(change: Change, head: int, signed: float) -> bytes:
    difference = change.difference(head)
    exact = {"exact": difference.astype(np.float32), "codes": encode(difference, signed)}
    return pack({}, {**exact, "mask": change.mask.astype(np.uint8)})


def _overview(first: Trace, second: Trace, changes: Mapping[Site, Change]) -> bytes:
    heads = sum(change.heads for change in changes.values())
    pooled = {site: [_pooled(change, head, heads) for head in range(change.heads)] for site, change in changes.items()}
    largest = max((float(np.abs(cells).max(initial=0.0)) for of_site in pooled.values() for cells in of_site), default=0.0) or 1.0
    blobs: dict[str, Array] = {}
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for site, change in changes.items():
        blocks = overviews.blocks(change.mask, heads)
        blobs[f"weights/{site}"] = encode(np.stack(pooled[site]), largest)
        blobs[f"mask/{site}"] = pool(change.mask, *blocks, np.logical_or).astype(np.uint8)
        group = groups.setdefault((site.stack, site.kind, *change.mask.shape), _group(first, second, change, blocks))
        names = [tokens.site(site, index) for index in range(change.heads)]
        row = {"site": str(site), "label": overviews.row_label(first, site), "mask": f"mask/{site}", "names": names}
        group["sites"].append(row)
    ends = [number(-largest, ".3g"), number(largest, "+.3g")]
    return pack({"groups": list(groups.values()), "signed": largest, "ends": ends}, blobs)


def _pooled(change: Change, head: int, heads: int) -> Array:
    return pool(np.nan_to_num(change.difference(head)), *overviews.blocks(change.mask, heads), max_magnitude)


def encode(differences: Array, largest: float) -> Array:
    """Differences as uint8, 128 ± round(127·sqrt(size / largest)), which keeps small ones distinct from 0. NaN becomes 0."""
    shares = np.clip(np.nan_to_num(differences) / largest, -1, 1)
    code: Array = (128 + np.rint(127 * np.sign(shares) * np.sqrt(np.abs(shares)))).astype(np.uint8)
    return code


def _group(first: Trace, second: Trace, change: Change, blocks: tuple[int, int]) -> dict[str, Any]:
    site, strips = change.first.site, (change.first.query_tokens, change.first.key_tokens)
    query, key = tokens.query_axis(first, site), tokens.key_axis(first, site)
    queries, keys = tokens.compared((first, change.first), (second, change.second), change.rows, change.keys)
    return {
        "title": tokens.kind(site.stack, site.kind),
        "blocks": blocks,
        "axes": strings.axes(query, key),
        "queries": queries,
        "keys": keys,
        "queryStrip": strips[0],
        "keyStrip": strips[1],
        "sites": [],
    }
