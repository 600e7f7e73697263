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
        baselines = (each in self.without or _done(self, each) == self.of_baseline for each in BASELINES)
        return self.done == self.of_texts and all(baselines) and self.compared_done == self.of_compared

    def span(self, of: int) -> range:
        """The numbers of the texts of this share among the first `of` ones: whole batches, as many as other shares or one less."""
        number, shares = self.share
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
        again = sum(own.done for own in self.baselines.values()) + self.compared_done
        of = (len(BASELINES) - len(self.without)) * self.of_baseline + self.of_compared
        return self.done + again, self.of_texts + of

    @cached_property
    def roles(self) -> list[tuple[Role, ...]]:
        """The roles of each head; none before the baselines are there, and none of a share."""
        if self.share != (1, 1):
            return roles(self.statistics, None, None, None)
        baselines = (self.baselines.get(variant) for variant in BASELINES)
        return roles(self.statistics, *(baseline.mean if baseline and baseline.done else None for baseline in baselines))

    def of_heads(self, name: str) -> Array:
        """[head], the mean of a measure over the texts, or one of OF_HEADS; NaN where it has no meaning or is not known."""
        own = self.statistics
        if name == "copying":
            return np.full(len(own.heads), np.nan) if self.copying is None else self.copying
        if name == "variation":
            return np.full(len(own.heads), np.nan) if self.compared is None else self.compared.variation
        column = list(MEASURES).index(name)
        return np.where(own.count[:, column] > 0, own.mean[:, column], np.nan)

    def to_json(self) -> dict[str, Any]:
        """`about`, counts, the first texts that could not be run, and every head with its measures and roles, as JSON values."""
        names, own = list(MEASURES), self.statistics
        heads = [
            {
                "site": site,
                "head": head,
                "measures": {name: self._numbers(row, column) for column, name in enumerate(names) if own.count[row, column]},
                "roles": [role.criterion.role for role in self.roles[row]],
                "variation": plain(self.compared.variation[row]) if self.compared else None,
                "copying": None if self.copying is None else plain(self.copying[row]),
            }
            for row, (site, head) in enumerate(own.heads)
        ]
        problems = [{"text": number + 1, "problem": str(from_json(problem))} for number, problem in self.problems.items()]
        found = vars(self.about) | {"texts_read": own.texts, "tokens": own.tokens, "skipped": self.skipped}
        found |= {"problems": problems, "heads": heads}
        if self.relations is None:
            return found
        best = accuracies(self.relations, own.sites)
        named = ({"site": own.heads[each.head][0], "head": own.heads[each.head][1]} for each in best)
        return found | {"relations": [vars(each) | name for each, name in zip(best, named, strict=True)]}

    def _numbers(self, row: int, column: int) -> dict[str, Any]:
        own = self.statistics
        named = {"mean": own.mean, "std": own.deviation, "min": own.lowest, "max": own.highest, "error": own.error}
        found: dict[str, Any] = {"count": int(own.count[row, column])}
        found |= {name: plain(values[row, column]) for name, values in named.items()}
        return found | {name: plain(each.mean[row, column]) for name, each in self.baselines.items() if each.done}


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
            except CannotSurvey as error:
                survey = replace(survey, without={**survey.without, variant: error.to_json()})
            yield survey
    while survey.compared_done < survey.of_compared:
        left = survey.span(min(survey.about.asked, COMPARED_TEXTS))[survey.compared_done :]
        found = ask(replace(_next(question, texts, left), variant="compared"))
        done = survey.compared_done + len(found.values)
        pairs, scores = _sum(survey.compared, found.compared), _first(survey.copying, found.copying)
        survey = replace(survey, compared=pairs, compared_done=done, copying=scores)
        yield survey


def merged(shares: Sequence[Survey]) -> Survey:
    """The survey of all texts from its shares: what one process that reads all of them finds, but for rounding.

    Raises:
        CannotSurvey: they are shares of other surveys, one is missing or there twice, or one is not finished.
    """
    first, count = shares[0], len(shares)
    if any(each.about != first.about for each in shares):
        raise CannotSurvey(reason=phrase("these are shares of different surveys: other weights, texts or edits"))
    if sorted(each.share for each in shares) != [(number + 1, count) for number in range(count)]:
        there = ", ".join("/".join(map(str, each.share)) for each in shares)
        raise CannotSurvey(reason=phrase("each share is needed once, and these are {there}", there=there))
    if left := [each.share[0] for each in shares if not each.finished]:
        raise CannotSurvey(
            reason=phrase("share {number} of {count} is not finished: go on with it first", number=left[0], count=count)
        )
    return replace(reduce(_added, sorted(shares, key=lambda each: each.share)), share=(1, 1))


def _added(one: Survey, other: Survey) -> Survey:
    """Two shares of a survey as if they were one."""
    own = together(one.statistics, other.statistics)
    problems, quoted = {**one.problems, **other.problems}, {**one.quoted, **other.quoted}
    return replace(
        one,
        statistics=own,
        done=one.done + other.done,
        baselines={name: _of_both(one, other, name) for name in (*one.baselines, *other.baselines)},
        skipped=one.skipped + other.skipped,
        problems=dict(list(problems.items())[:MOST_PROBLEMS]),
        quoted={number: quoted[number] for number in own.chosen},
        without={**one.without, **other.without},
        compared=_sum(one.compared, other.compared),
        compared_done=one.compared_done + other.compared_done,
        relations=_sum(one.relations, other.relations),
        copying=_first(one.copying, other.copying),
    )


def _of_both(one: Survey, other: Survey, name: str) -> Baseline:
    """A baseline over the texts of two shares; one of them may have none of it."""
    first, second = one.baselines.get(name), other.baselines.get(name)
    if first is None or second is None:
        found = first or second
        assert found is not None
        return found
    count = first.count + second.count
    sums = first.mean * first.count + second.mean * second.count
    return Baseline(first.done + second.done, count, sums / np.maximum(count, 1))


def _next(question: MeasureTexts, texts: Texts, left: range) -> MeasureTexts:
    """The question about the next batch of the texts that are left."""
    batch = left[:BATCH]
    return part(question, tuple(texts.items[number] for number in batch), batch.start)


def _done(survey: Survey, variant: str) -> int:
    return survey.baselines[variant].done if variant in survey.baselines else 0


def _with_texts(survey: Survey, found: MeasuredTexts, texts: Texts) -> Survey:
    """A survey with one more batch of texts."""
    known, own = survey.about.fingerprint, survey.statistics
    first = survey.span(survey.about.asked)[survey.done]
    if known and known != found.fingerprint:
        raise CannotSurvey(reason=phrase("the weights of the model have changed since the survey began: begin it again"))
    if found.sites:
        if own.sites and dict(own.sites) != dict(found.sites):
            raise CannotSurvey(reason=phrase("not all texts go through the same heads"))
        own = added(own if own.sites else empty(found.sites), found, first)
    problems = {**survey.problems, **{first + number: error for number, error in found.problems.items()}}
    return replace(
        survey,
        about=replace(survey.about, fingerprint=found.fingerprint),
        statistics=own,
        done=survey.done + len(found.values),
        skipped=survey.skipped + len(found.problems),
        problems=dict(list(problems.items())[:MOST_PROBLEMS]),
        quoted={number: texts.items[number] for number in own.chosen},
        relations=_sum(survey.relations, found.relations),
    )


Sums = TypeVar("Sums", Compared, Relations)


def _sum(one: Sums | None, other: Sums | None) -> Sums | None:
    """The sum of what is there."""
    return other if one is None else one if other is None else one + other


def _first(one: Array | None, other: Array | None) -> Array | None:
    """What is there of two equal arrays."""
    return other if one is None else one


def _with_baseline(survey: Survey, variant: Variant, found: MeasuredTexts) -> Survey:
    """A survey with one more batch of a baseline."""
    shape = survey.statistics.mean.shape
    before = survey.baselines.get(variant) or Baseline(0, np.zeros(shape, np.int64), np.zeros(shape))
    values = found.values.astype(np.float64) if found.sites else np.zeros((0, *shape))
    there = np.isfinite(values)
    count = before.count + there.sum(axis=0)
    sums = before.mean * before.count + np.where(there, values, 0.0).sum(axis=0)
    own = Baseline(before.done + len(found.values), count, sums / np.maximum(count, 1))
    return replace(survey, baselines={**survey.baselines, variant: own})
