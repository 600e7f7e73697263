"""Roles: names for heads, each by a stated criterion. A head that meets no criterion has no name; one that meets two has two.

A criterion asks three things of a head's mean over the texts: that it reaches a threshold; that it is at least twice as large as in
the same network untrained, so that training made it; and at least twice as large as where the weights of each row are dealt out to
its keys in random order, so that it matters where they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.survey.measures import MEASURES
from model.survey.statistics import Statistics
from model.trace.types import Array

TIMES = 2.0
"""How many times as large as its baseline the mean of a head with a role must be."""


@dataclass(frozen=True)
class Criterion:
    """What a head must do to have a role.

    Attributes:
        role: its name.
        measure: the measure that is looked at.
        threshold: smallest mean over the texts.
        cross: whether it is for cross-attention alone; else for self-attention, or for both where the measure has both.
    """

    role: str
    measure: str
    threshold: float
    cross: bool | None = None


CRITERIA = (
    Criterion("previous token", "previous", 0.4),
    Criterion("next token", "next", 0.4),
    Criterion("same token", "same", 0.4),
    Criterion("first token", "first", 0.5),
    Criterion("last token", "last", 0.5),
    Criterion("special tokens", "special", 0.5),
    Criterion("punctuation", "punctuation", 0.4),
    Criterion("duplicate token", "duplicate", 0.4),
    Criterion("induction", "induction", 0.4),
    Criterion("diagonal", "near_diagonal", 0.7, cross=True),
    Criterion("antidiagonal", "antidiagonal", 0.7, cross=True),
)
"""All criteria. docs/survey.md gives the reasons for the thresholds."""


@dataclass(frozen=True)
class Role:
    """A role that a head has.

    Attributes:
        criterion: which one it meets.
        mean: its mean over the texts.
        shuffled, untrained: the means of the two baselines.
        share: the share of the sampled texts in which the head's number reaches the threshold.
        rest: in the other sampled texts: the measure of weight on some keys that is largest in the mean; empty: there are none.
        rest_mean: that mean.
    """

    criterion: Criterion
    mean: float
    shuffled: float
    untrained: float
    share: float
    rest: str
    rest_mean: float


def roles(statistics: Statistics, shuffled: Array | None, untrained: Array | None) -> list[tuple[Role, ...]]:
    """The roles of each head; none at all without both baselines.

    Args:
        shuffled, untrained: [head, measure], the means of the baselines; None: they were not run.
    """
    if shuffled is None or untrained is None:
        return [()] * len(statistics.heads)
    return [
        tuple(_roles_of(statistics, shuffled, untrained, head, site.rpartition(".")[2] == "cross"))
        for head, (site, _) in enumerate(statistics.heads)
    ]


def _roles_of(statistics: Statistics, shuffled: Array, untrained: Array, head: int, cross: bool) -> Iterator[Role]:
    for each in CRITERIA:
        column = list(MEASURES).index(each.measure)
        if not statistics.count[head, column] or each.cross not in (None, cross):
            continue
        mean = float(statistics.mean[head, column])
        baselines = float(shuffled[head, column]), float(untrained[head, column])
        if mean >= each.threshold and mean >= TIMES * max(baselines):
            share = statistics.share_above(head, each.measure, each.threshold)
            yield Role(each, mean, *baselines, share, *_rest(statistics, head, each))


def _rest(statistics: Statistics, head: int, criterion: Criterion) -> tuple[str, float]:
    """What a head does in those sampled texts in which it does not reach the threshold of a criterion."""
    names = [each.measure for each in CRITERIA if each.measure not in (criterion.measure, "near_diagonal", "antidiagonal")]
    own = statistics.sampled[:, head, list(MEASURES).index(criterion.measure)]
    others = statistics.sampled[np.isfinite(own) & (own < criterion.threshold)][:, head]
    means = {
        name: float(np.nanmean(column)) for name in names if np.isfinite(column := others[:, list(MEASURES).index(name)]).any()
    }
    best = max(means, key=means.__getitem__, default="")
    return best, means.get(best, float("nan"))
