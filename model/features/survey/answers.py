"""Runs the texts of a question and measures them. Their calls of the network are batched like those of many visitors."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np

from model.checkpoints.loader import Runner
from model.errors import CannotSurvey, HeadlightError, InputError, NotRecorded, NotTakenApart, phrase
from model.features.circuit.circuit_parts import copying_scores
from model.features.survey.agreement import Compared, compared
from model.features.survey.questions import MeasuredTexts, MeasureTexts, Text, no_values
from model.features.survey.relations import Relations, relations_of
from model.features.survey.texts import repetition
from model.inference.resources import Resources
from model.inference.run import run
from model.measures.catalogue import VERSION
from model.measures.of_run import measured
from model.requests.network import to_json
from model.requests.request import KEEP
from model.trace.types import Array

AT_ONCE = 8
"""Texts of one question that run at the same time, so that their calls can be batched."""

Answer = TypeVar("Answer")


def of_each(texts: Sequence[Text], resources: Resources, answer_of: Callable[[int, Text], Answer]) -> list[Answer]:
    """What `answer_of` makes of each text, given its number, too; some texts run at the same time."""
    answers = list[Answer]()
    with ThreadPoolExecutor(AT_ONCE) as threads:  # a thread waits while the network computes
        for answer in threads.map(answer_of, range(len(texts)), texts):
            answers.append(answer)
            resources.on_count(len(answers), len(texts))
    return answers


@dataclass(frozen=True, eq=False)
class _Measured:
    """What is kept of one run.

    Attributes:
        sites: with their numbers of heads.
        tokens: number of tokens read and written.
        values: [head, measure].
        contexts: by site [head, head_dim], the mean over rows of the context vectors.
        compared: heads compared with each other, where that is asked.
        relations: counts along the dependencies of a text that has a parse.
    """

    sites: dict[str, int]
    tokens: int
    values: Array
    contexts: dict[str, Array]
    compared: Compared | None = None
    relations: Relations | None = None


def answer(question: MeasureTexts, runner: Runner, resources: Resources) -> MeasuredTexts:
    """The measures of each text. A text that cannot be run has none, and its error is among the problems.

    Raises:
        CannotSurvey: the asker expects other measures, or the network cannot be had untrained, or reads no tokens.
    """
    if question.version != VERSION:
        reason = phrase("this server computes version {ours} of the measures, not {asked}", ours=VERSION, asked=question.version)
        raise CannotSurvey(reason=reason)
    # Baselines change one thing each: the network, the texts, or (below) the order of a row's weights.
    network = runner.untrained() if question.variant == "untrained" else runner
    if question.variant == "repeated":
        spec, numbers = to_json(runner.info.spec), range(question.first, question.first + len(question.texts))
        question = replace(question, texts=tuple(repetition(number, spec) for number in numbers))
    answers = of_each(question.texts, resources, lambda number, text: _measure_text(question, network, resources, number, text))
    measured = _gathered(runner.fingerprint, answers)
    good = [text for number, text in enumerate(question.texts) if number not in measured.problems]
    if question.variant == "compared" and question.first == 0 and good:
        return replace(measured, copying=_copying(question, good[0], runner, resources, measured.sites))
    return measured


def _copying(question: MeasureTexts, text: Text, runner: Runner, resources: Resources, sites: Mapping[str, int]) -> Array:
    """[head], the copying score of each head of an unedited run; the text decides nothing but which layers there are."""
    request = text.request(question, (), runner.info.spec.encoder is not None, KEEP)
    try:
        scores = copying_scores(runner.network, run(runner, request, resources.device, "", resources.ask, most=resources.most))
    except (NotTakenApart, NotRecorded):
        scores = {}
    return np.array([scores.get((site, head), np.nan) for site, heads in sites.items() for head in range(heads)])


def _measure_text(
    question: MeasureTexts, runner: Runner, resources: Resources, number: int, text: Text
) -> _Measured | HeadlightError:
    """The measures of one text, or why there are none. The run itself is not kept."""
    request = text.request(question, question.edits, runner.info.spec.encoder is not None, ("context",))
    try:
        trace = run(runner, request, resources.device, "", resources.ask, most=resources.most)
    except InputError as error:
        return error
    read = trace.tokens.get("source", trace.tokens.get("target"))
    # Special tokens are known to every model; only the others say whether it knows anything of this text.
    words = [new for new, other in zip(read.unknown, read.special, strict=True) if not other] if read is not None else []
    if words and all(words):
        return CannotSurvey(reason=phrase("the model knows none of its tokens"))
    if not trace.is_finite:
        return CannotSurvey(reason=phrase("the network computed numbers that are not finite"))
    sites = {str(site): attention.heads for site, attention in trace.attention.items()}
    tokens = sum(map(len, trace.tokens.values()))
    if question.variant == "compared":
        return _Measured(sites, tokens, no_values(1, sum(sites.values()))[0], {}, compared(trace))
    shuffled = question.first + number if question.variant == "shuffled" else None
    recorded = {str(site): attention.context for site, attention in trace.attention.items() if attention.context is not None}
    contexts = {site: attention.mean(axis=1, dtype=np.float64) for site, attention in recorded.items()}
    relations = relations_of(trace, text.source, text.tree) if question.variant == "as it is" else None
    return _Measured(sites, tokens, measured(trace, shuffled, text.gold), contexts, relations=relations)


def _gathered(fingerprint: str, answers: Sequence[_Measured | HeadlightError]) -> MeasuredTexts:
    """The answer about all texts."""
    sites = next((answer.sites for answer in answers if isinstance(answer, _Measured)), {})
    values, tokens = no_values(len(answers), sum(sites.values())), np.zeros(len(answers), np.int64)
    problems = {number: answer.to_json() for number, answer in enumerate(answers) if isinstance(answer, HeadlightError)}
    for number, answer in enumerate(answers):
        if isinstance(answer, _Measured):
            values[number], tokens[number] = answer.values, answer.tokens
    good = [answer for answer in answers if isinstance(answer, _Measured)]
    contexts = {site: np.sum([answer.contexts[site] for answer in good], axis=0) for site in (good[0].contexts if good else ())}
    pairs = [answer.compared for answer in good if answer.compared is not None]
    counts = [answer.relations for answer in good if answer.relations is not None]
    compared, relations = reduce(add, pairs) if pairs else None, reduce(add, counts) if counts else None
    return MeasuredTexts(fingerprint, sites, values, tokens, problems, contexts, compared, relations)
