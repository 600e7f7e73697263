"""Reads one head in the texts of a question."""

import numpy as np

from model.checkpoints.loader import Runner
from model.errors import CannotSurvey, HeadlightError, InputError, phrase
from model.features.survey.answers import of_each
from model.features.survey.questions import Text
from model.features.survey.reading import HeadInText, HeadRead, ReadHead
from model.inference.resources import Resources
from model.inference.run import run
from model.trace.types import Site


def answer(question: ReadHead, runner: Runner, resources: Resources) -> HeadRead:
    """The head in each text. A text that cannot be run has none, and its error is among the problems.

    Raises:
        UnknownSite, UnknownHead: the network has no such head.
    """
    site = Site.parse(question.site)
    answers = of_each(question.texts, resources, lambda _number, text: _read_text(question, site, runner, resources, text))
    problems = {number: answer.to_json() for number, answer in enumerate(answers) if isinstance(answer, HeadlightError)}
    return HeadRead(runner.fingerprint, tuple(answer if isinstance(answer, HeadInText) else None for answer in answers), problems)


def _read_text(question: ReadHead, site: Site, runner: Runner, resources: Resources, text: Text) -> HeadInText | HeadlightError:
    """The head in one text, or why there is none. The run itself is not kept."""
    request = text.request(question, question.edits, runner.info.spec.encoder is not None, ("qkv",))
    try:
        trace = run(runner, request, resources.device, "", resources.ask, most=resources.most)
    except InputError as error:
        return error
    attention = trace.at(site)
    weights = np.array(attention.head(question.head), np.float32)
    if not (trace.is_finite and np.isfinite(weights).all()):
        return CannotSurvey(reason=phrase("the network computed numbers that are not finite"))
    rows, columns = weights.shape
    q, k = (None if tensor is None else np.array(tensor[question.head], np.float32) for tensor in (attention.q, attention.k))
    allowed = np.array(np.broadcast_to(np.asarray(attention.mask, bool), weights.shape))
    queries, keys = trace.tokens[attention.query_tokens], trace.tokens[attention.key_tokens]
    return HeadInText(queries.first(rows), keys.first(columns), weights, allowed, q, k)
