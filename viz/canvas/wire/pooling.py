"""Pooling of heatmaps with more cells than pixels: blocks of cells, and tile pyramids whose tiles are cut on request."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from model.trace.types import Array
from viz.canvas.wire.packing import encode, pack
from viz.canvas.wire.part_cache import content_hash

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
        combine: `np.maximum`, `np.add`, `np.logical_or` or `farthest`.
    """
    return _fold(_fold(cells, down, combine).T, across, combine).T


def _fold(cells: Array, size: int, combine: Callable[..., Any]) -> Array:
    """Combines every `size` rows: whole rows at once are ten times faster than numpy's reductions over two axes."""
    found = cells[::size].copy(order="K")  # keeps the memory order: a transposed copy would be read with large strides
    for offset in range(1, min(size, len(cells))):
        part = cells[offset::size]
        combine(found[: len(part)], part, out=found[: len(part)])
    return found


def farthest(one: Array, other: Array, out: Array) -> None:
    """Writes the number farther from 0 into `out`, which must be `one`."""
    np.copyto(out, other, where=np.abs(other) > np.abs(one))


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
        found = self._cells(kind, level)
        if found is None:
            return None
        tiles = {name: _tile(cells, row, column) for name, cells in found.items()}
        return pack({}, tiles) if all(tile.size for tile in tiles.values()) else None

    def _cells(self, kind: str, level: int) -> dict[str, Array] | None:
        if kind == "exact" and level == 0:
            return {"exact": self._exact, "mask": self._mask}
        if kind in ("max", "mean") and 1 <= level <= len(self._pooled):
            pooled = self._pooled[level - 1]
            return {"codes": pooled.max if kind == "max" else pooled.mean, "mask": pooled.mask}
        return None


def _is_whole(cells: Array) -> bool:
    """Whether the memory behind `cells` holds nothing else."""
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
