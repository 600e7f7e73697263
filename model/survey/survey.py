"""A survey: its texts, statistics and baselines, as far as it has come; and how it goes on, batch after batch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, TypeVar

import numpy as np

from model.errors import CannotSurvey, phrase
from model.survey.agreement import Compared
from model.survey.measures import MEASURES, VERSION
from model.survey.questions import MeasuredTexts, MeasureTexts, Text, Variant, part, plain
from model.survey.relations import Relations, accuracies
from model.survey.roles import Role, roles
from model.survey.statistics import Statistics, added, empty
from model.survey.texts import Texts
from model.trace.types import Array

BATCH = 32
"""Texts of one question to the engine: another visitor's run waits for at most one such batch."""

BASELINES: tuple[Variant, ...] = ("shuffled", "untrained")
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

    @property
    def finished(self) -> bool:
        """Whether all texts and both baselines were read, and heads compared."""
        baselines = (each in self.without or _done(self, each) == self.of_baseline for each in BASELINES)
        return self.done == self.about.asked and all(baselines) and self.compared_done == self.of_compared

    @property
    def of_baseline(self) -> int:
        """Number of texts of a baseline."""
        return min(self.about.asked, BASELINE_TEXTS)

    @property
    def of_compared(self) -> int:
        """Number of texts in which heads are compared."""
        return min(self.about.asked, COMPARED_TEXTS)

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, those of the baselines and of the comparison included, and of all."""
        again = sum(own.done for own in self.baselines.values()) + self.compared_done
        of = (len(BASELINES) - len(self.without)) * self.of_baseline + self.of_compared
        return self.done + again, self.about.asked + of

    @property
    def roles(self) -> list[tuple[Role, ...]]:
        """The roles of each head; none before both baselines are there."""
        shuffled, untrained = (self.baselines.get(each) for each in BASELINES)
        means = [own.mean if own and own.done else None for own in (shuffled, untrained)]
        return roles(self.statistics, *means)

    def to_json(self) -> dict[str, Any]:
        """`about`, counts, and every head with its measures and roles, as JSON values."""
        names, own = list(MEASURES), self.statistics
        heads = [
            {
                "site": site,
                "head": head,
                "measures": {name: self._numbers(row, column) for column, name in enumerate(names) if own.count[row, column]},
                "roles": [role.criterion.role for role in self.roles[row]],
                "change": plain(self.compared.change[row]) if self.compared else None,
            }
            for row, (site, head) in enumerate(own.heads)
        ]
        found = vars(self.about) | {"texts_read": own.texts, "tokens": own.tokens, "skipped": self.skipped, "heads": heads}
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


def begun(question: MeasureTexts, texts: Texts) -> Survey:
    """A survey of which nothing has run. `question` says the model, its settings and edits."""
    content = sha256(repr(texts.items).encode("utf-8", "surrogatepass")).hexdigest()
    edits = tuple(map(str, question.edits))
    return Survey(About(question.model, "", texts.name, len(texts.items), content, edits, texts.empty), empty({}))


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
    while survey.done < survey.about.asked:
        survey = _with_texts(survey, ask(part(question, _batch(texts, survey.done, survey.about.asked), survey.done)), texts)
        yield survey
    if not survey.statistics.texts:
        raise CannotSurvey(reason=phrase("none of the {count:,} texts could be run", count=survey.about.asked))
    for variant in BASELINES:
        while variant not in survey.without and (done := _done(survey, variant)) < survey.of_baseline:
            asked = replace(part(question, _batch(texts, done, survey.of_baseline), done), variant=variant)
            try:
                survey = _with_baseline(survey, variant, ask(asked))
            except CannotSurvey as error:
                survey = replace(survey, without={**survey.without, variant: error.to_json()})
            yield survey
    while survey.compared_done < survey.of_compared:
        first = survey.compared_done
        found = ask(replace(part(question, _batch(texts, first, survey.of_compared), first), variant="compared"))
        done = first + len(found.values)
        survey = replace(survey, compared=_sum(survey.compared, found.compared), compared_done=done)
        yield survey


def _batch(texts: Texts, first: int, end: int) -> tuple[Text, ...]:
    return texts.items[first : min(first + BATCH, end)]


def _done(survey: Survey, variant: str) -> int:
    return survey.baselines[variant].done if variant in survey.baselines else 0


def _with_texts(survey: Survey, found: MeasuredTexts, texts: Texts) -> Survey:
    """A survey with one more batch of texts."""
    known, own = survey.about.fingerprint, survey.statistics
    if known and known != found.fingerprint:
        raise CannotSurvey(reason=phrase("the weights of the model have changed since the survey began: begin it again"))
    if found.sites:
        if own.sites and dict(own.sites) != dict(found.sites):
            raise CannotSurvey(reason=phrase("not all texts go through the same heads"))
        own = added(own if own.sites else empty(found.sites), found, survey.done)
    problems = {**survey.problems, **{survey.done + number: error for number, error in found.problems.items()}}
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
