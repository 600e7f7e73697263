"""Answers of the real run to the questions of a lecture."""

from dataclasses import dataclass

import numpy as np

from model.errors import BadClaim
from viz.claims.runs import StepRuns, column, row, step_of
from viz.features.lectures.script.claim_values import distribution, number_of, text_of
from viz.features.lectures.script.lecture import Question
from viz.i18n.translate import _
from viz.labels import tokens

CANDIDATES = 5
"""Most options of a question for the next token."""


@dataclass(frozen=True)
class Answer:
    """The run's answer.

    Attributes:
        options: the possible answers as texts; empty where a number is asked for.
        right: index of the right option; -1 where a number is asked for.
        shares: a number of each option: probability or weight; empty: there is none.
        number: the number that was asked for; None: an option was.
        strip: the tokens that the options are, `source` or `target`; empty: they are no tokens of a strip.
    """

    options: tuple[str, ...] = ()
    right: int = -1
    shares: tuple[float, ...] = ()
    number: float | None = None
    strip: str = ""


def answer(runs: StepRuns, question: Question) -> Answer:
    """The answer of the real run.

    Raises:
        HeadlightError: the run is not possible, has no such head, token or step, or writes none of the options.
    """
    match question.kind:
        case "number":
            return Answer(number=number_of(runs, question.subject, question.scope))
        case "token":
            return _token(runs, question)
        case "output":
            written = text_of(runs, question.subject, question.scope)
            return Answer(question.options, _index(question.options, written))
    trace = runs.run(question.scope)
    attention, head = runs.attention(trace, question.subject.head)
    query = row(trace, attention, question.subject.query)
    if question.kind == "head":
        key = column(trace, attention, question.subject.key)
        weights = attention.weights[:, query, key]
        return Answer(
            tuple(str(number + 1) for number in range(attention.heads)), int(np.argmax(weights)), tuple(map(float, weights))
        )
    weights = attention.head(head)[query]
    options = tuple(tokens.keys(trace, attention))
    return Answer(options, int(np.argmax(weights)), tuple(map(float, weights)), strip=attention.key_tokens)


def _token(runs: StepRuns, question: Question) -> Answer:
    trace = runs.run(question.scope)
    step = trace.steps[step_of(trace, question.subject.at)]
    options = question.options or tuple(sorted(candidate.text for candidate in step.candidates[:CANDIDATES]))
    log_probabilities, ids = distribution(trace, step), runs.ids(trace)
    if missing := [text for text in options if text not in ids]:
        raise BadClaim(reason=_("the vocabulary has no token “{text}”", text=missing[0]))
    shares = tuple(float(np.exp(log_probabilities[ids[text]])) for text in options)
    return Answer(options, _index(options, step.chosen.text), shares)


def _index(options: tuple[str, ...], text: str) -> int:
    if text not in options:
        raise BadClaim(reason=_("the run gives “{found}”, which is not one of the options", found=text))
    return options.index(text)
