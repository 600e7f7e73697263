"""Random attention to draw: some heads are sharp, some flat; the same in every environment. Needs only numpy."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

HEAD_DIM = 32
SCALE = HEAD_DIM**-0.5


def queries_and_keys(layers: int, heads: int, tokens: int) -> tuple[Array, Array]:
    """Queries and keys, [layer · head, token, head_dim] float32. Each head's scores have a standard deviation between 0.5 and 5."""
    rng = np.random.default_rng(0)
    shape = (layers * heads, tokens, HEAD_DIM)
    q, k = rng.standard_normal(shape, np.float32), rng.standard_normal(shape, np.float32)
    return q * rng.uniform(0.5, 5, (layers * heads, 1, 1)).astype(np.float32), k


def weights(layers: int, heads: int, tokens: int, valid: int | None = None) -> Array:
    """The weights of `queries_and_keys`, [layer · head, query, key] float32; rows sum to 1.

    Args:
        valid: keys from this one on are padding, with weight 0; None: there is no padding.
    """
    made = np.empty((layers * heads, tokens, tokens), np.float32)
    for one, query, key in zip(made, *queries_and_keys(layers, heads, tokens), strict=True):
        scores = query @ key.T * np.float32(SCALE)
        scores[:, valid or tokens :] = -np.inf
        np.exp(scores - scores.max(axis=-1, keepdims=True), out=one)
        one /= one.sum(axis=-1, keepdims=True)
    return made
