"""The arithmetic of one cell: from the query and the key that were recorded to what the weight moved, in float64.

Nothing is taken over from what the run computed beyond q, k and v: the chain is worked out anew and then compared with the weights,
scores and context that ran. A difference above the tolerance of the run's number type means that the picture cannot be trusted.
"""

from dataclasses import dataclass

import numpy as np

from model.errors import BadSetting, UnknownTensor
from model.trace import Array, Attention, Trace

TOLERANCE = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}
"""Largest difference to float64 that the rounding of a number type explains, for weights between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """How one weight came about, and what it did. All arrays float64.

    Attributes:
        site, head, query, key: which cell; counted from 0.
        q, k, v: [head_dim], recorded.
        products: [head_dim], q · k element by element; `dot` is their sum.
        scale: what `dot` is multiplied with; `score` is the product.
        allowed: [key], the row's mask.
        scores: [key], the whole row after scaling, -inf where masked.
        exponentials: [key], exp(score - largest score of the row); `total` is their sum.
        weights: [key], exponentials / total; `weight` is the cell's.
        ran: the weight that the run recorded.
        contribution: [head_dim], weight · v.
        context: [head_dim], the row's sum of contributions, recomputed.
        share: the part of `context` that lies in this contribution, contribution · context / |context|²; the shares of a row add
            up to 1.
        moved: [key], for each key the length of its contribution after the output projection: what it adds to the residual stream.
        largest_difference: between what was recomputed and what ran, over the row's weights and scores (relative to their size).
        tolerance: what the run's number type explains.
    """

    site: str
    head: int
    query: int
    key: int
    q: Array
    k: Array
    v: Array
    products: Array
    dot: float
    scale: float
    score: float
    allowed: Array
    scores: Array
    exponentials: Array
    total: float
    weights: Array
    weight: float
    ran: float
    contribution: Array
    context: Array
    share: float
    moved: Array
    largest_difference: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the recomputed chain is what ran, up to rounding. NaN anywhere: no."""
        return self.largest_difference <= self.tolerance


def explain(
    trace: Trace, site: str, head: int, query: int, key: int, scale: float, output: Array, empty_rows: str = "uniform"
) -> Explanation:
    """The arithmetic of one cell of a trace that keeps q, k, v, scores and context.

    Args:
        site: text form of a Site.
        head, query, key: counted from 0.
        scale: what the site multiplies the products with.
        output: [model, head · head_dim], the weight of its output projection.
        empty_rows: what a row without any allowed key becomes: `uniform` or `zeros`.

    Raises:
        UnknownSite, UnknownHead: the run has no such site or head.
        BadSetting: it has no such query or key.
        UnknownTensor: the run did not record what is needed.
    """
    attention = trace.at(site)
    ran = attention.head(head)
    for name, index, count in (("query", query, ran.shape[0]), ("key", key, ran.shape[1])):
        if not 0 <= index < count:
            raise BadSetting(name=name, found=index, allowed=f"from 0 to {count - 1} at {site}")
    q, keys, values = (_recorded(attention, name)[head] for name in ("q", "k", "v"))  # [query, head_dim], [key, head_dim] twice
    allowed = attention.mask[query]
    products = q[query] * keys  # [key, head_dim]
    dots = products.sum(axis=-1)  # [key]
    scores = np.where(allowed, dots * scale, -np.inf)
    exponentials, weights = _softmax(scores, empty_rows)
    contributions = weights[:, None] * values  # [key, head_dim]
    context = contributions.sum(axis=0)
    width = len(context)
    projection = output[:, head * width : (head + 1) * width].astype(np.float64)  # [model, head_dim]
    length = float(context @ context)
    return Explanation(
        site=str(attention.site),
        head=head,
        query=query,
        key=key,
        q=q[query],
        k=keys[key],
        v=values[key],
        products=products[key],
        dot=float(dots[key]),
        scale=scale,
        score=float(dots[key] * scale),
        allowed=allowed,
        scores=scores,
        exponentials=exponentials,
        total=float(exponentials.sum()),
        weights=weights,
        weight=float(weights[key]),
        ran=float(ran[query, key]),
        contribution=contributions[key],
        context=context,
        share=float(contributions[key] @ context) / length if length else float("nan"),
        moved=np.linalg.norm(contributions @ projection.T, axis=-1),
        largest_difference=_largest_difference(attention, head, query, scores, weights),
        tolerance=TOLERANCE[str(trace.model["dtype"])],
    )


def _recorded(attention: Attention, name: str) -> Array:
    tensor: Array | None = getattr(attention, name)
    if tensor is None:
        raise UnknownTensor(asked=f"{attention.site}/{name}", there="a run that kept no queries, keys and values")
    return tensor.astype(np.float64)


def _softmax(scores: Array, empty_rows: str) -> tuple[Array, Array]:
    """Exponentials and weights of one row of scores, -inf where masked."""
    if not np.isfinite(scores).any() and not np.isnan(scores).any():
        alike = np.full(len(scores), float(empty_rows == "uniform"))
        return alike, alike / len(scores)
    exponentials = np.exp(scores - scores.max())
    return exponentials, exponentials / exponentials.sum()


def _largest_difference(attention: Attention, head: int, query: int, scores: Array, weights: Array) -> float:
    """Between what was recomputed and what ran. Scores are compared where a key was allowed, relative to their size."""
    differences = [np.abs(weights - attention.weights[head, query]).max()]
    if attention.scores is not None:
        ran, allowed = attention.scores[head, query].astype(np.float64), np.isfinite(scores)
        differences.append((np.abs(scores - ran)[allowed] / np.maximum(1, np.abs(scores[allowed]))).max(initial=0.0))
    return float(np.max(differences))
