"""Rotary positions: what the turning of queries and keys does to a score. docs/readings.md, *Positions*.

A rotation [pair, 3] holds for each pair of columns the first, the second, and the radians by which one position turns it
(`Tensors`, `rotation/SITE`). Source: Su et al. 2021, "RoFormer", equations 15 and 16.
"""

import numpy as np

from model.trace.types import Array


def turned(vectors: Array, rotation: Array, positions: float | Array) -> Array:
    """Queries or keys, turned on by a number of positions; a negative one turns them back. Columns outside of the pairs stay.

    Args:
        vectors: [..., head_dim].
        rotation: [pair, 3].
        positions: [...], or one number for all.

    Returns:
        [..., head_dim], float64.
    """
    first, second = rotation[:, 0].astype(int), rotation[:, 1].astype(int)
    angle = np.asarray(positions, np.float64)[..., None] * rotation[:, 2]
    whole = np.broadcast_shapes(vectors.shape[:-1], angle.shape[:-1])
    result = np.array(np.broadcast_to(vectors, (*whole, vectors.shape[-1])), np.float64)
    a, b = result[..., first], result[..., second]
    result[..., first] = a * np.cos(angle) - b * np.sin(angle)
    result[..., second] = a * np.sin(angle) + b * np.cos(angle)
    return result


def scores_by_distance(query: Array, key: Array, rotation: Array, scale: float, apart: int, distances: Array) -> Array:
    """The scores that the same query and key would have at other distances.

    Args:
        query, key: [head_dim], as they were compared: turned by their own positions.
        rotation: [pair, 3].
        scale: factor of the dot products.
        apart: how many positions the key stands before the query.
        distances: [distance], positions that the key is moved to, before the query.

    Returns:
        [distance], float64.
    """
    return np.asarray(scale * turned(key, rotation, apart - distances) @ query.astype(np.float64))


def position_vectors(rotation: Array, count: int) -> Array:
    """The cosine and the sine of each pair's angle: [position, 2 · pair].

    The cosine similarity of two rows is the mean, over the pairs, of the cosine of the angle between the two positions.
    """
    angle = np.arange(count)[:, None] * rotation[:, 2]
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
