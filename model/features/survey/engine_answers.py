"""How an engine answers the questions of a survey: they take their turn among the runs of visitors."""

from collections.abc import Callable
from functools import partial
from typing import Any

from model.checkpoints.loader import Runner
from model.engine.runtime import Runtime, counting
from model.feature import Answers
from model.features.survey.answers import answer as measure_texts
from model.features.survey.questions import MeasureTexts, StoredSurvey
from model.features.survey.reading import ReadHead
from model.features.survey.reading_answers import answer as read_head
from model.features.what_if.surveyed_means import FILE, FILM
from model.inference.calls import Ask
from model.inference.resources import Resources
from model.trace.progress import Report


def _stored(engine: Runtime, question: StoredSurvey) -> bytes:
    folder = engine.folder_of(question.model)
    path = None if folder is None else folder / (FILM if question.film else FILE)
    return path.read_bytes() if path is not None and path.is_file() else b""


def _over_texts(answer: Callable[[Any, Runner, Resources], Any], engine: Runtime, question: MeasureTexts | ReadHead) -> Any:
    """The answer about some texts: a batch of a survey, or of the reading of one head."""
    runner = engine.network(question.model, question.settings).runner

    def work(ask: Ask, report: Report) -> Any:
        return answer(question, runner, engine.resources(ask, counting(report)))

    return engine.scheduler.do(question, work)


ANSWERS: Answers = {
    StoredSurvey: _stored,
    MeasureTexts: partial(_over_texts, measure_texts),
    ReadHead: partial(_over_texts, read_head),
}
