"""The base classes of all questions that an engine answers: frozen, small and hashable. No torch."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from model.requests.request import RunRequest, Settings

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Question(Generic[Answer]):
    """What an engine can be asked. The class says the type of the answer: a `Question[Trace]` is answered with a Trace."""

    @property
    def cost(self) -> int:
        """As how many runs the question counts where a server limits the pace of its callers."""
        return 1


@dataclass(frozen=True)
class ModelQuestion(Question[Answer]):
    """A question about a model or its file.

    Attributes:
        model: the model's name.
        settings: settings that the model's file does not hold.
    """

    model: str
    settings: Settings = ()


@dataclass(frozen=True)
class RunQuestion(Question[Answer]):
    """A question that needs a run of a network: it takes longer than others, and can report its progress.

    Attributes:
        request: the run.
    """

    request: RunRequest
