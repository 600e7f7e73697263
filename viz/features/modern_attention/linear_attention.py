"""Linear attention: what a head would attend to if its weights were products of features, and not a softmax of scores.

Source: Katharopoulos et al. 2020, "Transformers are RNNs", equations 7 to 12.
"""

import numpy as np

from model.trace.types import Array


def features(vectors: Array) -> Array:
    """elu(x) + 1 of each number, which is above 0: float64, of the shape of `vectors`."""
    x = vectors.astype(np.float64)
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def weights(q: Array, k: Array, allowed: Array) -> Array:
    """The map of linear attention for the queries and keys of one head.

    Args:
        q: [query, head_dim].
        k: [key, head_dim].
        allowed: [query, key], bool.

    Returns:
        [query, key], float64. A row that may attend to no key is NaN.
    """
    products = np.where(allowed, features(q) @ features(k).T, 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(products / products.sum(axis=1, keepdims=True))


def operations(tokens: int, heads: int, key_width: int, value_width: int) -> int:
    """Operations of the products of one layer over a text: each token adds φ(k) vᵀ to a sum, which its query then multiplies."""
    return 4 * tokens * heads * key_width * value_width
