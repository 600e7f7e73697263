"""Roles: names for heads, each by a stated criterion. A head that meets no criterion has no name; one that meets two has two.

A criterion asks three things of a head's mean over the texts: that it reaches a threshold; that it is at least twice as large as in
the same network untrained, so that training made it; and at least twice as large as where the weights of each row are dealt out to
its keys in random order, so that it matters where they are. What looks for a token that came before must reach the threshold on
random texts that repeat, too: in natural text a head that looks at frequent words reaches it by chance. Induction needs an earlier
head that looks at the previous token, so no head of a first layer is called so.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.features.survey.statistics import Statistics
from model.measures.catalogue import MEASURES
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
        repeated: whether the mean over random texts that repeat must reach the threshold, too.
        later: whether heads of a first layer cannot have it.
    """

    role: str
    measure: str
    threshold: float
    cross: bool | None = None
    repeated: bool = False
    later: bool = False

    def can_be_of(self, site: str) -> bool:
        """Whether heads of a site, in its text form, can have it."""
        # An induction head reads what a head of an earlier layer wrote, so the very first layer cannot have one.
        _stack, pass_, layer, kind = site.split(".")
        return self.cross in (None, kind == "cross") and not (self.later and pass_ == layer == "0")


CRITERIA = (
    Criterion("previous token", "previous", 0.4),
    Criterion("next token", "next", 0.4),
    Criterion("same token", "same", 0.4),
    Criterion("first token", "first", 0.5),
    Criterion("last token", "last", 0.5),
    Criterion("special tokens", "special", 0.5),
    Criterion("punctuation", "punctuation", 0.4),
    Criterion("duplicate token", "duplicate", 0.4, repeated=True),
    Criterion("induction", "induction", 0.4, repeated=True, later=True),
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
        repeated: the mean over random texts that repeat; NaN: it was not measured, and the criterion does not ask for it.
        share: the share of the sampled texts in which the head's number reaches the threshold.
        rest: in the other sampled texts: the measure of weight on some keys that is largest in the mean; empty: there are none.
        rest_mean: that mean.
    """

    criterion: Criterion
    mean: float
    shuffled: float
    untrained: float
    repeated: float
    share: float
    rest: str
    rest_mean: float


def roles(
    statistics: Statistics, shuffled: Array | None, untrained: Array | None, repeated: Array | None
) -> list[tuple[Role, ...]]:
    """The roles of each head; none at all without both baselines.

    Args:
        shuffled, untrained: [head, measure], the means of the baselines; None: they were not run.
        repeated: [head, measure], the means over random texts that repeat; None: they were not run, and no head has a
            role that asks for them.
    """
    if shuffled is None or untrained is None:
        return [()] * len(statistics.heads)
    repetition = np.full(shuffled.shape, np.nan) if repeated is None else repeated
    means = (shuffled, untrained, repetition)
    return [tuple(_roles_of(statistics, means, head, site)) for head, (site, _) in enumerate(statistics.heads)]


def _roles_of(statistics: Statistics, means: tuple[Array, Array, Array], head: int, site: str) -> Iterator[Role]:
    """The roles of one head, given the means of `shuffled`, `untrained` and `repeated`."""
    for criterion in CRITERIA:
        column = list(MEASURES).index(criterion.measure)
        if not statistics.count[head, column] or not criterion.can_be_of(site):
            continue
        mean = float(statistics.mean[head, column])
        shuffled, untrained, repeated = (float(values[head, column]) for values in means)
        # Large is not enough: in short texts even a random head has much weight on the first token. A role needs a
        # mean that is also well above what shuffled rows and untrained weights reach.
        if mean < criterion.threshold or mean < TIMES * max(shuffled, untrained):
            continue
        if not criterion.repeated or repeated >= criterion.threshold:
            share = statistics.share_above(head, criterion.measure, criterion.threshold)
            yield Role(criterion, mean, shuffled, untrained, repeated, share, *_rest(statistics, head, criterion))


def _rest(statistics: Statistics, head: int, criterion: Criterion) -> tuple[str, float]:
    """What a head does in those sampled texts in which it does not reach the threshold of a criterion."""
    names = [other.measure for other in CRITERIA if other.measure not in (criterion.measure, "near_diagonal", "antidiagonal")]
    values = statistics.sampled[:, head, list(MEASURES).index(criterion.measure)]
    # Only texts in which the measure has a meaning count as texts that fall short of it: NaN is no small number.
    others = statistics.sampled[np.isfinite(values) & (values < criterion.threshold)][:, head]
    means = {
        name: float(np.nanmean(column)) for name in names if np.isfinite(column := others[:, list(MEASURES).index(name)]).any()
    }
    best = max(means, key=means.__getitem__, default="")
    return best, means.get(best, float("nan"))
