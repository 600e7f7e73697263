"""Two surveys side by side: of two models, two snapshots, with and without an edit, or of two corpora."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.errors import CannotSurvey, phrase
from model.features.survey.survey import Survey
from model.measures.catalogue import MEASURES
from model.trace.types import Array


@dataclass(frozen=True)
class Difference:
    """A head's measure in two surveys.

    Attributes:
        site, head, measure: which.
        first, second: its means.
        error: standard error of second minus first.
        paired: whether both surveys read the same texts, so that the error is of the differences text by text.
    """

    site: str
    head: int
    measure: str
    first: float
    second: float
    error: float
    paired: bool

    @property
    def difference(self) -> float:
        """Second minus first."""
        return self.second - self.first

    @property
    def errors(self) -> float:
        """How many standard errors the difference is; without any spread infinity, and 0 where there is no difference."""
        return (
            self.difference / self.error if self.error else float(np.copysign(np.inf, self.difference)) if self.difference else 0.0
        )


def differences(first: Survey, second: Survey) -> list[Difference]:
    """The differences of all heads and measures that both surveys have, those of most standard errors first.

    Texts are independent, so the error of two means is √(e₁² + e₂²). Where both surveys read the same texts, the deviation of the
    differences in the sampled texts is used instead, over the root of the number of all texts.

    Raises:
        CannotSurvey: they have no head in common.
    """
    heads = set(second.statistics.heads)
    if not any(head in heads for head in first.statistics.heads):
        raise CannotSurvey(reason=phrase("the two surveys have no head in common"))
    return sorted(_differences(first, second), key=lambda difference: -abs(difference.errors))


def _differences(first: Survey, second: Survey) -> Iterator[Difference]:
    ours, theirs = first.statistics, second.statistics
    paired = first.about.content == second.about.content and np.array_equal(ours.sample, theirs.sample)
    places = {head: row for row, head in enumerate(theirs.heads)}
    for row, (site, head) in enumerate(ours.heads):
        if (their_row := places.get((site, head))) is None:
            continue
        for column, name in enumerate(MEASURES):
            if not (ours.count[row, column] and theirs.count[their_row, column]):
                continue
            error = float(np.hypot(ours.error[row, column], theirs.error[their_row, column]))
            if paired:
                apart = theirs.sampled[:, their_row, column].astype(np.float64) - ours.sampled[:, row, column]
                error = _error(apart[np.isfinite(apart)], min(ours.count[row, column], theirs.count[their_row, column]))
            means = float(ours.mean[row, column]), float(theirs.mean[their_row, column])
            if np.isfinite(error):
                yield Difference(site, head, name, *means, error, bool(paired))


def _error(apart: Array, texts: int) -> float:
    """The standard error of the mean difference over so many texts, from those of a sample; NaN for fewer than two."""
    return float(apart.std(ddof=1) / np.sqrt(texts)) if len(apart) > 1 else float("nan")
