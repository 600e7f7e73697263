"""How alike the maps of heads are, and how much the map of each head changes from text to text.

Source of the first: Clark et al. 2019, "What Does BERT Look At?", section 6: the Jensen-Shannon divergence of two heads' rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from model.measures.maps import Map, map_of
from model.measures.rows import divergences, entropies
from model.trace.types import Array, Trace

FARTHEST = 16
"""Offsets from the row are counted in tokens up to this one; what is farther counts there."""

MOST_HEADS = 320
"""Heads of one kind that are compared with each other: the work grows with the square."""


MOST_TURNED = 100
"""Heads whose branches are turned so that neighbors are as alike as can be: of more, it takes seconds."""


@dataclass(frozen=True, eq=False)
class Compared:
    """Sums over texts. Axes: head (of all sites), offset (from -FARTHEST to FARTHEST).

    Attributes:
        pairs: [head, head], how many texts compare two heads.
        divergence: [head, head], their Jensen-Shannon divergence in bits, a mean over rows.
        texts: [head], how many texts have a row with a choice.
        profile: [head, offset], the weight at each offset, a mean over rows.
        entropy: [head], the entropy of each text's profile in nats.
    """

    pairs: Array
    divergence: Array
    texts: Array
    profile: Array
    entropy: Array

    def __add__(self, other: "Compared") -> "Compared":
        """The sums over the texts of both."""
        return Compared(*(getattr(self, counter.name) + getattr(other, counter.name) for counter in fields(self)))

    def arrays(self) -> dict[str, Array]:
        """The arrays by name."""
        return {counter.name: np.asarray(getattr(self, counter.name)) for counter in fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> "Compared":
        """The sums in arrays by name."""
        return cls(*(arrays[counter.name] for counter in fields(cls)))

    @property
    def mean_divergence(self) -> Array:
        """[head, head], the mean over texts in bits, from 0 (the same rows) to 1; NaN for heads that are not compared."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.where(self.pairs > 0, self.divergence / self.pairs, np.nan))

    @property
    def variation(self) -> Array:
        """[head], how much the profile varies between texts, in nats: the entropy of the mean profile minus the mean entropy.

        This is the Jensen-Shannon divergence of all texts (Lin 1991, section 4): 0 where every text has the same profile.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.profile / self.texts[:, None]
            return np.asarray(np.maximum(entropies(mean) - self.entropy / self.texts, 0.0))


def compared(trace: Trace) -> Compared:
    """The heads of one run compared, over all rows that have a choice: the sums of one text."""
    sites = list(trace.attention.values())
    heads = sum(attention.heads for attention in sites)
    pairs, divergence = np.zeros((heads, heads), np.int64), np.zeros((heads, heads))
    texts, profile = np.zeros(heads, np.int64), np.zeros((heads, 2 * FARTHEST + 1))
    first, groups = 0, dict[tuple[object, ...], list[tuple[int, Array]]]()
    for attention in sites:
        site = map_of(attention, trace)
        rows = np.flatnonzero(site.choice)
        if len(rows):
            weights = np.asarray(attention.weights[:, rows], np.float64)
            texts[first : first + attention.heads] = 1
            profile[first : first + attention.heads] = _profile(weights, site, rows)
            # Two maps are compared row by row, so they must have the same rows and columns, of the same tokens.
            kind = (attention.query_tokens, attention.key_tokens, attention.site.kind, tuple(rows), weights.shape[2])
            groups.setdefault(kind, []).extend((first + head, weights[head]) for head in range(attention.heads))
        first += attention.heads
    for group in groups.values():
        if len(group) <= MOST_HEADS:
            places = np.ix_(*2 * [[head for head, _weights in group]])
            pairs[places], divergence[places] = 1, divergences(np.stack([weights for _head, weights in group]))
    return Compared(pairs, divergence, texts, profile, entropies(profile))


def _profile(weights: Array, site: Map, rows: Array) -> Array:
    """[head, offset], the mean over rows of the weight at each offset."""
    bins = np.clip(np.rint(site.offset[rows]), -FARTHEST, FARTHEST).astype(int) + FARTHEST
    profile = np.zeros((len(weights), 2 * FARTHEST + 1))
    for number in np.unique(bins):
        profile[:, number] = np.where(bins == number, weights, 0.0).sum(axis=(1, 2)) / len(rows)
    return profile


def clustered(divergence: Array) -> list[int]:
    """The compared heads in an order that puts like ones side by side: leaves of a tree by average linkage.

    Args:
        divergence: [head, head] without NaN.
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering  # a third of a second, and only for who asks
    from scipy.spatial.distance import squareform

    if len(divergence) < 3:
        return list(range(len(divergence)))
    flat = squareform(divergence, checks=False)
    tree = linkage(flat, "average")
    turned = optimal_leaf_ordering(tree, flat) if len(divergence) <= MOST_TURNED else tree
    return [int(leaf) for leaf in leaves_list(turned)]
