"""FlashAttention: the same softmax and the same context, block by block, without ever holding all weights.

Source: Dao et al. 2022, "FlashAttention: Fast and Memory-Efficient Exact Attention with IO-Awareness", algorithm 1, in the order of
Dao 2023, "FlashAttention-2", algorithm 1: queries in the outer loop, keys in the inner one. The running softmax is that of Milakov
and Gimelshein 2018.
"""

from dataclasses import dataclass

import numpy as np

from model.trace.types import Array


@dataclass(frozen=True)
class Tile:
    """One step: a block of queries has met a block of keys.

    Attributes:
        queries, keys: their places.
        before: [query], the largest score of each row so far, before this tile; -inf where no key was allowed yet.
        largest: [query], the largest score so far, this tile included.
        factor: [query], exp(before - largest): by it the sums of the earlier tiles are made smaller.
        total: [query], the sum of exp(score - largest) so far.
    """

    queries: range
    keys: range
    before: Array
    largest: Array
    factor: Array
    total: Array


@dataclass(frozen=True)
class Tiled:
    """A whole head, computed in tiles.

    Attributes:
        tiles: the steps in their order; tiles without any allowed key are skipped.
        skipped: number of tiles that were skipped.
        context: [query, head_dim], float64. A row that may attend to no key is NaN.
    """

    tiles: tuple[Tile, ...]
    skipped: int
    context: Array


def attend(scores: Array, allowed: Array, values: Array, size: int) -> Tiled:
    """The context of one head, computed in square tiles.

    Args:
        scores: [query, key], after scaling, before the mask; those that are not allowed may be NaN.
        allowed: [query, key], bool.
        values: [key, head_dim].
        size: queries and keys of a tile.
    """
    masked = np.where(allowed, scores.astype(np.float64), -np.inf)
    tiles, skipped = [], 0
    context = np.full((len(scores), values.shape[1]), np.nan)
    for first in range(0, len(scores), size):
        queries = range(first, min(first + size, len(scores)))
        largest, total = np.full(len(queries), -np.inf), np.zeros(len(queries))
        summed = np.zeros((len(queries), values.shape[1]))
        for start in range(0, scores.shape[1], size):
            keys = range(start, min(start + size, scores.shape[1]))
            block = masked[queries.start : queries.stop, keys.start : keys.stop]
            if not np.isfinite(block).any():
                skipped += 1
                continue
            before, largest = largest, np.maximum(largest, block.max(axis=1))
            safe = np.where(np.isfinite(largest), largest, 0.0)  # a row without any allowed key so far: all its exponentials are 0
            factor = np.exp(before - safe)
            exponentials = np.exp(block - safe[:, None])
            total = factor * total + exponentials.sum(axis=1)
            summed = factor[:, None] * summed + exponentials @ values[keys.start : keys.stop].astype(np.float64)
            tiles.append(Tile(queries, keys, before, largest, factor, total))
        with np.errstate(invalid="ignore"):
            context[queries.start : queries.stop] = summed / total[:, None]
    return Tiled(tuple(tiles), skipped, context)


def numbers_moved(queries: int, keys: int, head_dim: int, size: int, tiles: int) -> tuple[int, int]:
    """Numbers that one head reads from and writes to the large memory: written out, and in tiles.

    Written out: q and k are read, the scores written, read, the weights written, read with v, and the context written. In tiles: q
    is read and the context written once, and each tile reads its keys and values.

    Args:
        queries, keys, head_dim: the size of the head.
        size: queries and keys of a tile.
        tiles: number of tiles that were computed.
    """
    written_out = 2 * (queries + keys) * head_dim + 4 * queries * keys
    return written_out, 2 * queries * head_dim + 2 * tiles * min(size, keys) * head_dim
