"""How much of a head's attention is on the previous token, or continues a repetition: Olsson et al. 2022, "In-context Learning and
Induction Heads"."""

import numpy as np

from model.trace.types import Array


def previous_token_score(weights: Array) -> float:
    """Mean over rows i ≥ 1 of w[i, i − 1], for one head of self-attention: [query, key]; NaN without such a row.

    A head of uniform causal weights scores the mean of 1 / (i + 1).
    """
    rows = np.arange(1, min(weights.shape))
    return float(weights[rows, rows - 1].mean()) if len(rows) else float("nan")


def induction_score(weights: Array, ids: tuple[int, ...]) -> float:
    """Mean of w[i, j + 1] over rows i whose token occurred before, last at j: the weight on what followed it there.

    Args:
        weights: [query, key] of one head of self-attention.
        ids: the tokens that the rows read.

    Returns:
        NaN if no token occurs twice.
    """
    last: dict[int, int] = {}
    found = list[float]()
    for row, id_ in enumerate(ids[: len(weights)]):
        if id_ in last:
            found.append(float(weights[row, last[id_] + 1]))
        last[id_] = row
    return float(np.mean(found)) if found else float("nan")
