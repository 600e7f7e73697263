"""Similarity of heads: the Jensen-Shannon divergence of their rows, the mean over the rows that have a choice in both."""

from dataclasses import dataclass

import numpy as np

from model.measures.rows import choosing, divergence
from model.trace.types import Array, Attention, Site, Trace


@dataclass(frozen=True)
class Likeness:
    """Distance of one head from the selected one.

    Attributes:
        site, head: which one; the head counted from 0.
        divergence: in bits, from 0 to 1.
    """

    site: Site
    head: int
    divergence: float


def most_alike(trace: Trace, attention: Attention, head: int, count: int = 5) -> tuple[Likeness, ...]:
    """The heads most similar to the selected one, the most similar first; ties by position.

    Heads can be compared if their rows and columns belong to the same tokens: at sites with the same strips and shape.

    Args:
        trace: the run.
        attention: the selected head's site.
        head: counted from 0.
        count: most heads to return.

    Raises:
        UnknownHead: the site has no such head.
    """
    weights, counted = attention.head(head), choosing(attention)[head]
    heads = [
        Likeness(other.site, index, divergence)
        for other in trace.attention.values()
        if _comparable(attention, other)
        for index, divergence in enumerate(_divergences(weights, other, counted))
        if (other.site, index) != (attention.site, head) and np.isfinite(divergence)
    ]
    return tuple(sorted(heads, key=lambda similar: similar.divergence)[:count])


def _comparable(first: Attention, second: Attention) -> bool:
    strips = (first.query_tokens, first.key_tokens) == (second.query_tokens, second.key_tokens)
    return strips and first.weights.shape[1:] == second.weights.shape[1:]


def _divergences(weights: Array, other: Attention, counted: Array) -> list[float]:
    """The divergence of [query, key] from each head of a site, NaN where there is no row to compare."""
    choose = np.logical_and(choosing(other), counted)  # [head, query]
    both = [(weights[rows], theirs[rows]) for theirs, rows in zip(other.weights, choose, strict=True)]
    return [float(divergence(p, q).mean()) if len(p) else float("nan") for p, q in both]
