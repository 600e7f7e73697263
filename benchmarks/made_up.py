"""Attention to draw: heads with random queries and keys, some sharp and some flat, the same in every environment. numpy alone."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

HEAD_DIM = 32
SCALE = HEAD_DIM**-0.5


def queries_and_keys(layers: int, heads: int, tokens: int) -> tuple[Array, Array]:
    """Two arrays [layer · head, token, head_dim] float32. Scores spread by 0.5 to 5, another number for each head."""
    rng = np.random.default_rng(0)
    shape = (layers * heads, tokens, HEAD_DIM)
    q, k = rng.standard_normal(shape, np.float32), rng.standard_normal(shape, np.float32)
    return q * rng.uniform(0.5, 5, (layers * heads, 1, 1)).astype(np.float32), k


def weights(layers: int, heads: int, tokens: int, valid: int | None = None) -> Array:
    """[layer · head, query, key] float32, of `queries_and_keys`; rows sum to 1.

    Args:
        valid: keys from this one on are padding, which nobody looks at; None: there is none.
    """
    made = np.empty((layers * heads, tokens, tokens), np.float32)
    for one, query, key in zip(made, *queries_and_keys(layers, heads, tokens), strict=True):
        scores = query @ key.T * np.float32(SCALE)
        scores[:, valid or tokens :] = -np.inf
        np.exp(scores - scores.max(axis=-1, keepdims=True), out=one)
        one /= one.sum(axis=-1, keepdims=True)
    return made
