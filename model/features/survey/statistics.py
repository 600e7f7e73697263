"""Statistics of a survey, added up as the texts come. What is held does not grow with the number of texts.

Every text weighs the same: the number of a head in a text is already a mean over the rows of its map, and a mean over texts does
not look at how many rows each had.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from model.errors import CannotSurvey, phrase
from model.features.survey.questions import MeasuredTexts
from model.measures.catalogue import MEASURES
from model.trace.types import Array

BINS = 20
"""Bins of a histogram, of equal width, from 0 to the highest value of a measure."""

EXTREMES = 10
"""Texts with the largest and the smallest numbers that are remembered for each head and measure."""

SAMPLE = 200
"""Texts of which all numbers are kept: those with the smallest hashes of their numbers, whatever order they come in."""

PER_DECILE = 3
"""Texts that are named for each tenth of the sample."""

HIGHEST = np.array([measure.highest for measure in MEASURES.values()])
"""[measure], the end of the histogram of each."""


@dataclass(frozen=True, eq=False)
class Statistics:
    """The sums of a survey. Axes: head (of all sites, in the order in which they ran), measure (of MEASURES), bin, rank, text.

    Attributes:
        sites: with their numbers of heads.
        texts, tokens: number of texts measured, and of their tokens.
        count: [head, measure], texts in which the measure has a meaning.
        mean, squares: [head, measure], the mean, and the sum of squared differences from it (Welford 1962; Chan et al. 1983).
        lowest, highest: [head, measure].
        bins: [head, measure, bin], texts by their number, in BINS equal steps from 0 to the measure's highest.
        strongest, weakest: [head, measure, rank], numbers of the texts with the largest and the smallest values; -1: there is none.
        strongest_values, weakest_values: [head, measure, rank], these values.
        sample: [text], numbers of the sampled texts.
        sampled: [text, head, measure], their values.
        contexts: by site [head, head_dim], the mean over texts of the mean over rows of the context vectors.
    """

    sites: Mapping[str, int]
    texts: int
    tokens: int
    count: Array
    mean: Array
    squares: Array
    lowest: Array
    highest: Array
    bins: Array
    strongest: Array
    strongest_values: Array
    weakest: Array
    weakest_values: Array
    sample: Array
    sampled: Array
    contexts: Mapping[str, Array] = field(default_factory=dict)

    @property
    def heads(self) -> list[tuple[str, int]]:
        """Site and number of each head."""
        return [(site, head) for site, heads in self.sites.items() for head in range(heads)]

    @property
    def deviation(self) -> Array:
        """[head, measure], the standard deviation over texts; NaN where there are fewer than two."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.sqrt(np.where(self.count > 1, self.squares / (self.count - 1), np.nan)))

    @property
    def error(self) -> Array:
        """[head, measure], the standard error of the mean."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.deviation / np.sqrt(self.count))

    @property
    def chosen(self) -> list[int]:
        """Numbers of all texts that are remembered: the extremes and the sample."""
        remembered = (self.strongest, self.weakest, self.sample)
        return sorted({int(text) for numbers in remembered for text in numbers.ravel() if text >= 0})

    def share_above(self, head: int, measure: str, threshold: float) -> float:
        """Share of the sampled texts whose number is at least a threshold; NaN where the measure has no meaning in any."""
        values = self.sampled[:, head, list(MEASURES).index(measure)]
        values = values[np.isfinite(values)]
        return float((values >= threshold).mean()) if len(values) else float("nan")

    def deciles(self, head: int, measure: str) -> list[list[int]]:
        """For each tenth of the sampled texts, by their numbers, up to PER_DECILE texts of it, smallest numbers first."""
        values = self.sampled[:, head, list(MEASURES).index(measure)]
        known = np.flatnonzero(np.isfinite(values))
        order = known[np.argsort(values[known], kind="stable")]
        return [[int(self.sample[index]) for index in tenth[:PER_DECILE]] for tenth in np.array_split(order, 10)]


def empty(sites: Mapping[str, int]) -> Statistics:
    """The statistics of no text."""
    shape = (sum(sites.values()), len(MEASURES))
    ranks = (*shape, EXTREMES)
    return Statistics(
        dict(sites),
        texts=0,
        tokens=0,
        count=np.zeros(shape, np.int64),
        mean=np.zeros(shape),
        squares=np.zeros(shape),
        lowest=np.full(shape, np.inf),
        highest=np.full(shape, -np.inf),
        bins=np.zeros((*shape, BINS), np.int64),
        strongest=np.full(ranks, -1),
        strongest_values=np.full(ranks, -np.inf),
        weakest=np.full(ranks, -1),
        weakest_values=np.full(ranks, np.inf),
        sample=np.zeros(0, np.int64),
        sampled=np.zeros((0, *shape), np.float32),
    )


def added(before: Statistics, measured: MeasuredTexts, first: int) -> Statistics:
    """The statistics with more texts.

    Args:
        measured: the values of texts whose numbers begin at `first`.
    """
    good = np.array([number not in measured.problems for number in range(len(measured.values))], bool)
    values = measured.values[good].astype(np.float64)
    numbers = first + np.flatnonzero(good)
    known = np.isfinite(values)
    count, clean = known.sum(axis=0), np.where(known, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, clean.sum(axis=0) / count, 0.0)
        squares = (np.where(known, values - mean, 0.0) ** 2).sum(axis=0)
        total = before.count + count
        # Mean and squares of the batch are joined with those before (Chan et al. 1983). A running sum of squares
        # would lose most digits where the numbers differ little.
        step = np.where(total > 0, (mean - before.mean) * count / np.maximum(total, 1), 0.0)
    return replace(
        before,
        texts=before.texts + int(good.sum()),
        tokens=before.tokens + int(measured.tokens[good].sum()),
        count=total,
        mean=before.mean + step,
        squares=before.squares + squares + step * (mean - before.mean) * before.count,
        lowest=np.minimum(before.lowest, np.where(known, values, np.inf).min(axis=0, initial=np.inf)),
        highest=np.maximum(before.highest, np.where(known, values, -np.inf).max(axis=0, initial=-np.inf)),
        bins=before.bins + _bins(values, known),
        contexts=_contexts(before, measured, before.texts + int(good.sum())),
        **_remembered(before, values, numbers),
    )


def _contexts(before: Statistics, measured: MeasuredTexts, texts: int) -> dict[str, Array]:
    """The mean context vectors with more texts."""
    sites = dict.fromkeys((*before.contexts, *measured.contexts))
    sums = {site: before.contexts.get(site, 0.0) * before.texts + measured.contexts.get(site, 0.0) for site in sites}
    return {site: np.asarray(total / texts) for site, total in sums.items()}


def _remembered(before: Statistics, values: Array, numbers: Array) -> dict[str, Any]:
    """The fields of texts that are remembered by their numbers."""
    return _extremes(before, values, np.isfinite(values), numbers) | _sample(before, values, numbers)


def _bins(values: Array, known: Array) -> Array:
    """[head, measure, bin], how many values are in each bin."""
    places = np.clip(np.where(known, values, 0.0) / HIGHEST * BINS, 0, BINS - 1).astype(np.int64)
    return np.stack([((places == number) & known).sum(axis=0) for number in range(BINS)], axis=-1)


def together(first: Statistics, second: Statistics) -> Statistics:
    """The statistics over the texts of both, whose numbers differ: those of one survey that read them all, but for rounding.

    Raises:
        CannotSurvey: they are of other heads.
    """
    if not (first.sites and second.sites):
        return first if first.sites else second
    if dict(first.sites) != dict(second.sites):
        raise CannotSurvey(reason=phrase("not all texts go through the same heads"))
    texts, total = first.texts + second.texts, first.count + second.count
    apart = second.mean - first.mean
    share = second.count / np.maximum(total, 1)
    sites = dict.fromkeys((*first.contexts, *second.contexts))
    contexts = {site: (first.contexts[site] * first.texts + second.contexts[site] * second.texts) / max(texts, 1) for site in sites}
    return Statistics(
        dict(first.sites),
        texts,
        first.tokens + second.tokens,
        count=total,
        mean=first.mean + apart * share,
        squares=first.squares + second.squares + apart**2 * share * first.count,
        lowest=np.minimum(first.lowest, second.lowest),
        highest=np.maximum(first.highest, second.highest),
        bins=first.bins + second.bins,
        contexts=contexts,
        **_ranked(first, {name: (getattr(second, f"{name}_values"), getattr(second, name)) for name in ("strongest", "weakest")}),
        **_sample(first, second.sampled, second.sample),
    )


def _extremes(before: Statistics, values: Array, known: Array, numbers: Array) -> dict[str, Array]:
    """The texts with the largest and the smallest values among those remembered and the new ones."""
    new = {}
    for name, none in (("strongest", -np.inf), ("weakest", np.inf)):
        # Values without a meaning get the worst rank, so that every other text comes before them.
        by_head = np.moveaxis(np.where(known, values, none), 0, -1)  # [head, measure, text]
        new[name] = by_head, np.broadcast_to(numbers, by_head.shape)
    return _ranked(before, new)


def _ranked(before: Statistics, new: Mapping[str, tuple[Array, Array]]) -> dict[str, Array]:
    """The extremes among those remembered and new ones; of texts with equal values the one with the smallest number.

    Args:
        new: values and numbers of texts, [head, measure, text], by which extreme they are.
    """
    ranked = {}
    for name, sign in (("strongest", -1.0), ("weakest", 1.0)):
        all_values = sign * np.concatenate([getattr(before, f"{name}_values"), new[name][0]], axis=-1)
        all_texts = np.concatenate([getattr(before, name), new[name][1]], axis=-1)
        order = np.lexsort((all_texts, all_values), axis=-1)[..., :EXTREMES]
        best = np.take_along_axis(all_values, order, axis=-1)
        ranked[name] = np.where(np.isfinite(best), np.take_along_axis(all_texts, order, axis=-1), -1)
        ranked[f"{name}_values"] = sign * best
    return ranked


def _sample(before: Statistics, values: Array, numbers: Array) -> dict[str, Array]:
    """The sample with the new texts: a random choice that depends on neither the order nor the batches in which texts come."""
    texts, sampled = np.concatenate([before.sample, numbers]), np.concatenate([before.sampled, values.astype(np.float32)])
    lots = [blake2b(int(text).to_bytes(8, "big"), digest_size=8).digest() for text in texts]
    kept = sorted(sorted(range(len(texts)), key=lots.__getitem__)[:SAMPLE], key=texts.__getitem__)
    return {"sample": texts[kept], "sampled": sampled[kept]}
