"""Attention to draw: random heads, some sharp and some flat, the same in every environment. numpy alone."""

import numpy as np
import numpy.typing as npt


def weights(layers: int, heads: int, tokens: int, valid: int | None = None) -> npt.NDArray[np.float32]:
    """[layer · head, query, key] float32; rows sum to 1.

    Args:
        valid: keys from this one on are padding, which nobody looks at; None: there is none.
    """
    rng = np.random.default_rng(0)
    made = np.empty((layers * heads, tokens, tokens), np.float32)
    for one in made:
        scores = rng.standard_normal((tokens, tokens), np.float32) * rng.uniform(0.5, 5)
        scores[:, valid:] = -np.inf if valid else scores[:, valid:]
        np.exp(scores - scores.max(axis=-1, keepdims=True), out=one)
        one /= one.sum(axis=-1, keepdims=True)
    return made
