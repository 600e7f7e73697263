"""What attribution is tested on: small random networks, and questions asked without an engine."""

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from model.attribution.answers import Place, answer
from model.attribution.example import forced_run
from model.attribution.questions import Attribution, Measured
from model.checkpoints.loaded import Runner
from model.inference.run import run
from model.spec.inputs import POSITIONS
from tests.runs import CPU

Answering: TypeAlias = Callable[..., Any]


def answered(runner: Runner, question: Attribution[Measured], **place: Any) -> Measured:
    """The result of a question about a network in memory."""
    request, prompt = forced_run(runner, question.request, CPU, POSITIONS)
    trace = run(runner, request, CPU, "cpu")
    return answer(question, request, prompt, runner, trace, Place(CPU, **place))  # type: ignore[return-value]


@pytest.fixture
def ask() -> Answering:
    """Asks a question about a network in memory."""
    return answered
