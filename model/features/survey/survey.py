"""A survey: its texts, statistics and baselines, as far as it has come; and how it goes on, batch after batch."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np

from model.errors import CannotSurvey, from_json, phrase
from model.features.survey.agreement import Compared
from model.features.survey.mattering import Matters
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text, Variant, none_ran, part, plain
from model.features.survey.relations import Relations, accuracies
from model.features.survey.roles import Role, roles
from model.features.survey.statistics import Statistics, added, empty, together
from model.features.survey.texts import Texts
from model.measures.catalogue import MEASURES, VERSION
from model.trace.types import Array

BATCH = 32
"""Texts of one question to the engine: another visitor's run waits for at most one such batch."""

BASELINES: tuple[Variant, ...] = ("shuffled", "untrained", "repeated")
"""What a survey is compared with: the same maps with the weights of each row in random order, the network untrained, and random
texts that repeat."""

BASELINE_TEXTS = 200
"""Texts that the baselines read: the first ones of the survey."""

COMPARED_TEXTS = 100
"""Texts in which heads are compared with each other: the first ones of the survey."""

MOST_PROBLEMS = 20
"""Errors of texts that are remembered; the others are counted."""


@dataclass(frozen=True)
class About:
    """What a survey is of.

    Attributes:
        model: name of the model.
        fingerprint: of its weights; empty before the first batch.
        texts: name of the texts.
        asked: how many there are.
        content: SHA-256 of the texts.
        edits: changes made in every run, as their texts.
        empty: lines that held no text.
        version: of the measures.
    """

    model: str
    fingerprint: str
    texts: str
    asked: int
    content: str
    edits: tuple[str, ...] = ()
    empty: int = 0
    version: int = VERSION


@dataclass(frozen=True, eq=False)
class Baseline:
    """The means of a variant of the network or of the texts.

    Attributes:
        done: texts that were read.
        count: [head, measure], texts in which the measure has a meaning.
        mean: [head, measure], the mean over these.
    """

    done: int
    count: Array
    mean: Array


@dataclass(frozen=True, eq=False)
class Survey:
    """A survey, finished or not.

    Attributes:
        about: what it is of.
        statistics: of the texts so far.
        done: texts that were read, those with problems included.
        baselines: by variant.
        skipped: number of texts that could not be run.
        problems: the first errors of texts, as JSON values, by the texts' numbers.
        quoted: the texts that the statistics remember, by number, so that they can be shown.
        without: why a baseline is not there, as JSON values of an error, by variant.
        compared: heads compared with each other, over `compared_done` texts.
        relations: counts along the dependencies of parsed texts; None: no text has a parse.
        copying: [head], the copying scores of the weights, NaN where there is none; None: not computed yet.
        matters: how much heads matter over some of the texts; None: nobody asked for it.
        share: which share of the texts this is, and of how many: (1, 1) is all of them. What is done is counted within it.
    """

    about: About
    statistics: Statistics
    done: int = 0
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    skipped: int = 0
    problems: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    quoted: Mapping[int, Text] = field(default_factory=dict)
    without: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    compared: Compared | None = None
    compared_done: int = 0
    relations: Relations | None = None
    share: tuple[int, int] = (1, 1)
    copying: Array | None = None
    matters: Matters | None = None

    @property
    def finished(self) -> bool:
        """Whether all texts and all baselines were read, and heads compared."""
        baselines = (baseline in self.without or _done(self, baseline) == self.of_baseline for baseline in BASELINES)
        return self.done == self.of_texts and all(baselines) and self.compared_done == self.of_compared

    def span(self, of: int) -> range:
        """The numbers of the texts of this share among the first `of` ones: whole batches, as many as other shares or one less."""
        number, shares = self.share
        # Shares end where batches end, so that no text is in two shares and no question is smaller than it has to
        # be.
        batches = -(-of // BATCH)
        return range(min((number - 1) * batches // shares * BATCH, of), min(number * batches // shares * BATCH, of))

    @property
    def of_texts(self) -> int:
        """Number of texts."""
        return len(self.span(self.about.asked))

    @property
    def of_baseline(self) -> int:
        """Number of texts of a baseline."""
        return len(self.span(min(self.about.asked, BASELINE_TEXTS)))

    @property
    def of_compared(self) -> int:
        """Number of texts in which heads are compared."""
        return len(self.span(min(self.about.asked, COMPARED_TEXTS)))

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, those of the baselines and of the comparison included, and of all."""
        again = sum(baseline.done for baseline in self.baselines.values()) + self.compared_done
        of = (len(BASELINES) - len(self.without)) * self.of_baseline + self.of_compared
        return self.done + again, self.of_texts + of

    @cached_property
    def roles(self) -> list[tuple[Role, ...]]:
        """The roles of each head; none before the baselines are there, and none of a share."""
        # A role is a statement about all texts, which a share alone cannot make.
        if self.share != (1, 1):
            return roles(self.statistics, None, None, None)
        baselines = (self.baselines.get(variant) for variant in BASELINES)
        return roles(self.statistics, *(baseline.mean if baseline and baseline.done else None for baseline in baselines))

    def of_heads(self, name: str) -> Array:
        """[head], the mean of a measure over the texts, or one of OF_HEADS; NaN where it has no meaning or is not known."""
        statistics = self.statistics
        if name == "copying":
            return np.full(len(statistics.heads), np.nan) if self.copying is None else self.copying
        if name == "variation":
            return np.full(len(statistics.heads), np.nan) if self.compared is None else self.compared.variation
        column = list(MEASURES).index(name)
        return np.where(statistics.count[:, column] > 0, statistics.mean[:, column], np.nan)

    def to_json(self) -> dict[str, Any]:
        """`about`, counts, the first texts that could not be run, and every head with its measures and roles, as JSON values."""
        names, statistics = list(MEASURES), self.statistics
        heads = [
            {
                "site": site,
                "head": head,
                "measures": {name: self._numbers(row, i) for i, name in enumerate(names) if statistics.count[row, i]},
                "roles": [role.criterion.role for role in self.roles[row]],
                "variation": plain(self.compared.variation[row]) if self.compared else None,
                "copying": None if self.copying is None else plain(self.copying[row]),
            }
            for row, (site, head) in enumerate(statistics.heads)
        ]
        problems = [{"text": number + 1, "problem": str(from_json(problem))} for number, problem in self.problems.items()]
        summary = vars(self.about) | {"texts_read": statistics.texts, "tokens": statistics.tokens, "skipped": self.skipped}
        summary |= {"problems": problems, "heads": heads}
        if self.relations is None:
            return summary
        best = accuracies(self.relations, statistics.sites)
        named = ({"site": statistics.heads[accuracy.head][0], "head": statistics.heads[accuracy.head][1]} for accuracy in best)
        return summary | {"relations": [vars(accuracy) | name for accuracy, name in zip(best, named, strict=True)]}

    def _numbers(self, row: int, column: int) -> dict[str, Any]:
        of = self.statistics
        named = {"mean": of.mean, "std": of.deviation, "min": of.lowest, "max": of.highest, "error": of.error}
        numbers: dict[str, Any] = {"count": int(of.count[row, column])}
        numbers |= {name: plain(values[row, column]) for name, values in named.items()}
        return numbers | {name: plain(baseline.mean[row, column]) for name, baseline in self.baselines.items() if baseline.done}


def begun(question: MeasureTexts, texts: Texts, share: tuple[int, int] = (1, 1)) -> Survey:
    """A survey of which nothing has run. `question` says the model, its settings and edits.

    Args:
        share: as of `Survey`: one process of several reads one share, and `merged` adds them up.
    """
    edits = tuple(map(str, question.edits))
    return Survey(
        About(question.model, "", texts.name, len(texts.items), texts.content, edits, texts.empty), empty({}), share=share
    )


def gone_on(ask: Callable[[MeasureTexts], MeasuredTexts], question: MeasureTexts, texts: Texts, survey: Survey) -> Iterator[Survey]:
    """The survey after each further batch, to its end. Whoever stops keeps the last one, and can go on with it later.

    Args:
        ask: answers a question, as an engine does.
        question: the model, its settings and edits.
        texts: those of the survey.
        survey: how far it has come.

    Raises:
        CannotSurvey: the weights are others than those that it began with, or no text could be run.
        HeadlightError: whatever the engine refuses.
    """
    # Three parts, each of which goes on where it stopped: the texts, the baselines, and the comparison of heads.
    while survey.done < survey.of_texts:
        survey = _with_texts(survey, ask(_next(question, texts, survey.span(survey.about.asked)[survey.done :])), texts)
        yield survey
    if not survey.statistics.texts:
        raise none_ran(survey.done, survey.problems.values())
    for variant in BASELINES:
        first = survey.span(min(survey.about.asked, BASELINE_TEXTS))
        while variant not in survey.without and (done := _done(survey, variant)) < survey.of_baseline:
            asked = replace(_next(question, texts, first[done:]), variant=variant)
            try:
                survey = _with_baseline(survey, variant, ask(asked))
            # A network may have no such variant, for example none without training. The survey goes on without it
            # and says why.
            except CannotSurvey as error:
                survey = replace(survey, without={**survey.without, variant: error.to_json()})
            yield survey
    while survey.compared_done < survey.of_compared:
        left = survey.span(min(survey.about.asked, COMPARED_TEXTS))[survey.compared_done :]
        measured = ask(replace(_next(question, texts, left), variant="compared"))
        done = survey.compared_done + len(measured.values)
        pairs, scores = _sum(survey.compared, measured.compared), _first(survey.copying, measured.copying)
        survey = replace(survey, compared=pairs, compared_done=done, copying=scores)
        yield survey


def merged(shares: Sequence[Survey]) -> Survey:
    """The survey of all texts from its shares: what one process that reads all of them finds, but for rounding.

    Raises:
        CannotSurvey: they are shares of other surveys, one is missing or there twice, or one is not finished.
    """
    first, count = shares[0], len(shares)
    if any(part.about != first.about for part in shares):
        raise CannotSurvey(reason=phrase("these are shares of different surveys: other weights, texts or edits"))
    if sorted(part.share for part in shares) != [(number + 1, count) for number in range(count)]:
        named = ", ".join("/".join(map(str, part.share)) for part in shares)
        raise CannotSurvey(reason=phrase("each share is needed once, and these are {there}", there=named))
    if left := [part.share[0] for part in shares if not part.finished]:
        raise CannotSurvey(
            reason=phrase("share {number} of {count} is not finished: go on with it first", number=left[0], count=count)
        )
    return replace(reduce(_added, sorted(shares, key=lambda part: part.share)), share=(1, 1))


def _added(first: Survey, second: Survey) -> Survey:
    """Two shares of a survey as if they were one."""
    statistics = together(first.statistics, second.statistics)
    problems, quoted = {**first.problems, **second.problems}, {**first.quoted, **second.quoted}
    return replace(
        first,
        statistics=statistics,
        done=first.done + second.done,
        baselines={name: _of_both(first, second, name) for name in (*first.baselines, *second.baselines)},
        skipped=first.skipped + second.skipped,
        problems=dict(list(problems.items())[:MOST_PROBLEMS]),
        quoted={number: quoted[number] for number in statistics.chosen},
        without={**first.without, **second.without},
        compared=_sum(first.compared, second.compared),
        compared_done=first.compared_done + second.compared_done,
        relations=_sum(first.relations, second.relations),
        copying=_first(first.copying, second.copying),
    )


def _of_both(survey: Survey, more: Survey, name: str) -> Baseline:
    """A baseline over the texts of two shares; one of them may have none of it."""
    first, second = survey.baselines.get(name), more.baselines.get(name)
    if first is None or second is None:
        baseline = first or second
        assert baseline is not None
        return baseline
    count = first.count + second.count
    # Means of different numbers of texts are weighed by these; 1 in place of 0 only keeps the division defined.
    sums = first.mean * first.count + second.mean * second.count
    return Baseline(first.done + second.done, count, sums / np.maximum(count, 1))


def _next(question: MeasureTexts, texts: Texts, left: range) -> MeasureTexts:
    """The question about the next batch of the texts that are left."""
    batch = left[:BATCH]
    return part(question, tuple(texts.items[number] for number in batch), batch.start)


def _done(survey: Survey, variant: str) -> int:
    return survey.baselines[variant].done if variant in survey.baselines else 0


def _with_texts(survey: Survey, measured: MeasuredTexts, texts: Texts) -> Survey:
    """A survey with one more batch of texts."""
    known, statistics = survey.about.fingerprint, survey.statistics
    first = survey.span(survey.about.asked)[survey.done]
    if known and known != measured.fingerprint:
        raise CannotSurvey(reason=phrase("the weights of the model have changed since the survey began: begin it again"))
    if measured.sites:
        if statistics.sites and dict(statistics.sites) != dict(measured.sites):
            raise CannotSurvey(reason=phrase("not all texts go through the same heads"))
        statistics = added(statistics if statistics.sites else empty(measured.sites), measured, first)
    problems = {**survey.problems, **{first + number: error for number, error in measured.problems.items()}}
    return replace(
        survey,
        about=replace(survey.about, fingerprint=measured.fingerprint),
        statistics=statistics,
        done=survey.done + len(measured.values),
        skipped=survey.skipped + len(measured.problems),
        problems=dict(list(problems.items())[:MOST_PROBLEMS]),
        quoted={number: texts.items[number] for number in statistics.chosen},
        relations=_sum(survey.relations, measured.relations),
    )


Sums = TypeVar("Sums", Compared, Relations)


def _sum(first: Sums | None, second: Sums | None) -> Sums | None:
    """The sum of what is there."""
    return second if first is None else first if second is None else first + second


def _first(first: Array | None, second: Array | None) -> Array | None:
    """What is there of two equal arrays."""
    return second if first is None else first


def _with_baseline(survey: Survey, variant: Variant, measured: MeasuredTexts) -> Survey:
    """A survey with one more batch of a baseline."""
    shape = survey.statistics.mean.shape
    before = survey.baselines.get(variant) or Baseline(0, np.zeros(shape, np.int64), np.zeros(shape))
    values = measured.values.astype(np.float64) if measured.sites else np.zeros((0, *shape))
    known = np.isfinite(values)
    count = before.count + known.sum(axis=0)
    sums = before.mean * before.count + np.where(known, values, 0.0).sum(axis=0)
    baseline = Baseline(before.done + len(measured.values), count, sums / np.maximum(count, 1))
    return replace(survey, baselines={**survey.baselines, variant: baseline})
