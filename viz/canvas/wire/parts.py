"""Parts of scenes: arrays that grow with tokens × tokens. Made once per run; small ones are sent in the scene, others fetched.

Of heatmaps with more cells than pixels, blocks of cells are pooled, and tiles of a pyramid are cut on request.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from model.sharing.caches import once_for_each
from model.trace.types import Array, Attention, Site, Trace
from viz.canvas.wire import strings
from viz.canvas.wire.transport import PART_CACHE, Blob, address, content_hash, encode, pack
from viz.i18n.translate import _
from viz.labels import tokens
from viz.metrics.aggregation import without_first

INLINE = 2**16
"""Most bytes of a part inside its scene. Streamlit hashes the scene in each script run, so this is small."""

WHOLE_CELLS = 512**2
"""Most cells of a head that is sent whole; a larger one is sent as tiles."""

CELL_BYTES = 5
"""Bytes per cell of a head that is sent whole: a float32 and a mask byte."""

TILE = 256
"""Cells along a side of a tile."""

_PIECES = 4


def allowed(weights: Array, mask: Array) -> Array:
    """Weights [query, key] in float32, 0 where masked; not a copy if nothing is masked."""
    if mask.all():
        return weights.astype(np.float32, copy=False)
    return np.where(mask, weights, np.float32(0)).astype(np.float32, copy=False)


def pool(cells: Array, down: int, across: int, combine: Callable[..., Any] = np.maximum) -> Array:
    """Pools [query, key] into blocks of `down` × `across` cells; the last blocks may be smaller.

    Args:
        combine: `np.maximum`, `np.add`, `np.logical_or` or `max_magnitude`.
    """
    return _fold(_fold(cells, down, combine).T, across, combine).T


def _fold(cells: Array, size: int, combine: Callable[..., Any]) -> Array:
    """Combines every `size` rows: whole rows at once are ten times faster than numpy's reductions over two axes."""
    pooled = cells[::size].copy(order="K")  # keeps the memory order: a transposed copy would be read with large strides
    for offset in range(1, min(size, len(cells))):
        part = cells[offset::size]
        combine(pooled[: len(part)], part, out=pooled[: len(part)])
    return pooled


def max_magnitude(first: Array, second: Array, out: Array) -> None:
    """Writes the number farther from 0 into `out`, which must be `first`."""
    np.copyto(out, second, where=np.abs(second) > np.abs(first))


@dataclass(frozen=True, eq=False)
class Level:
    """One level of a pyramid. Arrays are [query, key] of uint8.

    Attributes:
        max, mean: codes of the largest and the mean weight of a block's allowed cells.
        mask: whether a block has an allowed cell.
    """

    max: Array
    mean: Array
    mask: Array


class Pyramid:
    """One head as tiles of TILE × TILE cells: level 0 exact, level n pooled over 2ⁿ × 2ⁿ cells. Pieces are scenes at the paths
    `exact/0/ROW/COLUMN`, `max/LEVEL/ROW/COLUMN` and `mean/LEVEL/ROW/COLUMN`.

    Args:
        weights: [query, key]; a view of a larger array is copied, so that the pyramid does not keep the whole run in memory.
        mask: [query, key] of bool.
    """

    def __init__(self, weights: Array, mask: Array) -> None:
        self._exact = np.array(weights, np.float32, order="C", copy=None if _is_whole(weights) else True)
        self._mask = np.array(mask, np.uint8, order="C")
        self._pooled = tuple(_levels(allowed(weights, mask), mask))

    @cached_property
    def name(self) -> str:
        """Hash of the content."""
        return content_hash(self._exact.data, self._mask.data, repr(self._exact.shape).encode())

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        pooled = sum(level.max.nbytes + level.mean.nbytes + level.mask.nbytes for level in self._pooled)
        return self._exact.nbytes + self._mask.nbytes + pooled

    @property
    def facts(self) -> dict[str, int]:
        """Sizes that a browser needs to request tiles."""
        rows, columns = self._exact.shape
        return {"rows": rows, "columns": columns, "side": TILE, "levels": 1 + len(self._pooled)}

    def piece(self, path: str) -> bytes | None:
        """Scene of one tile: `exact` float32 or `codes` uint8, and `mask`, all [query, key]."""
        kind, *numbers = path.split("/")
        if len(numbers) != _PIECES - 1 or not all(part.isascii() and part.isdigit() and len(part) < 6 for part in numbers):
            return None
        level, row, column = map(int, numbers)
        level_cells = self._cells(kind, level)
        if level_cells is None:
            return None
        tiles = {name: _tile(cells, row, column) for name, cells in level_cells.items()}
        return pack({}, tiles) if all(tile.size for tile in tiles.values()) else None

    def _cells(self, kind: str, level: int) -> dict[str, Array] | None:
        if kind == "exact" and level == 0:
            return {"exact": self._exact, "mask": self._mask}
        if kind in ("max", "mean") and 1 <= level <= len(self._pooled):
            pooled = self._pooled[level - 1]
            return {"codes": pooled.max if kind == "max" else pooled.mean, "mask": pooled.mask}
        return None


def _is_whole(cells: Array) -> bool:
    """Whether the memory of `cells` holds nothing else."""
    return cells.base is None or (
        isinstance(cells.base, np.ndarray) and cells.base.base is None and cells.base.nbytes == cells.nbytes
    )


def _tile(cells: Array, row: int, column: int) -> Array:
    return cells[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]


def _levels(weights: Array, mask: Array) -> Iterator[Level]:
    """Levels from 1 up to the one that fits into one tile. A mean is over allowed cells, so their counts are pooled, too."""
    largest, total, count = weights, weights, mask.astype(np.uint8)
    while max(largest.shape) > TILE:
        largest = pool(largest, 2, 2)
        total, count = pool(total, 2, 2, np.add), pool(count, 2, 2, np.add).astype(np.float32)  # 4 fit into a byte
        yield Level(encode(largest), encode(total / np.maximum(count, 1)), (count > 0).astype(np.uint8))


def scene(header: Mapping[str, Any], parts: Mapping[str, Blob | Pyramid]) -> bytes:
    """Packs a scene with parts. `header["parts"][name]` has a part's hash (`name`) and its other facts. Small parts are blobs of
    the scene, the others are served at `header["partsAddress"]/HASH/PIECE`.
    """
    places = {name: {"name": part.name, **(part.facts if isinstance(part, Pyramid) else {})} for name, part in parts.items()}
    small = {name: part.data for name, part in parts.items() if isinstance(part, Blob) and part.nbytes <= INLINE}
    blobs = {name: np.frombuffer(data, np.uint8) for name, data in small.items()}
    gone = _("The server no longer has the numbers of this picture, so a part of it is missing.")
    lost = {"sentence": gone, "button": _("Reload")}
    return pack({**header, "partsAddress": address(), "parts": places, "lost": lost}, blobs)


@once_for_each  # each drawing of a run asks for it several times
def run_key(trace: Trace) -> str:
    """Hash that identifies a run without reading its weights: model, device and time, request, tokens, shapes."""
    texts = {name: strip.texts for name, strip in trace.tokens.items()}
    shapes = {str(site): attention.weights.shape for site, attention in trace.attention.items()}
    return content_hash(json.dumps([dict(trace.model), dict(trace.request), texts, shapes], default=str).encode())


def exact(trace: Trace, site: Site, head: int, rest: bool = False) -> Blob | Pyramid:
    """One head exactly: blobs `exact` float32 and `mask` uint8, both [query, key]; a large head as a pyramid of tiles.

    Args:
        rest: whether it is the reading without the first token: the rest of each row, brought to the sum 1. The first column is
            masked; the weights that were left out are the blob `left` [query], in a pyramid that column.

    Raises:
        UnknownSite, UnknownHead: the trace has no such site or head.
    """
    attention = trace.at(site)
    key = f"{run_key(trace)}/{site}/{head}" + ("/rest" if rest else "")
    return PART_CACHE.get_or_make(key, lambda: _exact(attention, head, rest))


def _exact(attention: Attention, head: int, rest: bool) -> Blob | Pyramid:
    weights, mask, left = attention.head(head), attention.mask, attention.head(head)[:, 0]
    if rest:
        mask = mask & (np.arange(mask.shape[1]) > 0)
        weights = without_first(allowed(weights, attention.mask)).astype(np.float32)
    if mask.size <= WHOLE_CELLS:
        blobs: dict[str, Array] = {"exact": weights.astype(np.float32), "mask": mask.astype(np.uint8)}
        return Blob(pack({}, blobs | ({"left": left.astype(np.float32)} if rest else {})))
    if rest:
        weights[:, 0] = left
    return Pyramid(weights, mask)


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


def axes(trace: Trace, attention: Attention) -> dict[str, Any]:
    """Labels and titles of the axes at a site."""
    query, key = tokens.query_axis(trace, attention.site), tokens.key_axis(trace, attention.site)
    return {
        "queryAxis": query,
        "keyAxis": key,
        "axes": strings.axes(query, key),
        "queries": tokens.queries(trace, attention),
        "keys": tokens.keys(trace, attention),
        "queryStrip": attention.query_tokens,
        "keyStrip": attention.key_tokens,
    }
