"""Interface between a class and the lecture that is held: slides, questions, views and answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Layout: TypeAlias = Literal["list", "tokens", "number"]
"""How a question is answered: an option of a list, a token of a strip, or a number."""


@dataclass(frozen=True)
class Strip:
    """Tokens that a question is about.

    Attributes:
        title: what they are, such as their language.
        tokens: their labels.
        outlined: indices of those that the question asks about.
    """

    title: str
    tokens: tuple[str, ...]
    outlined: tuple[int, ...] = ()


@dataclass(frozen=True)
class Question:
    """A question of a step. Nothing in it says the answer.

    Attributes:
        prompt: its text, as HTML.
        layout: how it is answered.
        options: texts of the possible answers; empty where a number is asked.
        given: the picture of the open question.
        unit: of the number that is asked for; empty: it has none.
        counted: whether that number counts things, so that it has no decimals.
    """

    prompt: str
    layout: Layout
    options: tuple[str, ...] = ()
    given: tuple[Strip, ...] = ()
    unit: str = ""
    counted: bool = False


@dataclass(frozen=True)
class Answer:
    """The run's answer.

    Attributes:
        right: indices of the options that are right.
        shares: number of each option, such as its probability; empty: the run gives none.
        number: the number that was asked for; None: an option was asked for.
        text: the answer as a sentence.
    """

    right: tuple[int, ...] = ()
    shares: tuple[float, ...] = ()
    number: float | None = None
    text: str = ""


@dataclass(frozen=True)
class Slide:
    """One step of a lecture as it is shown.

    Attributes:
        title: its heading.
        chapter: the chapter that it belongs to.
        words: its words, as HTML that holds no script.
        notes: the speaker's notes, as such HTML.
        link: the view of the app that it shows, as its link; empty: words only.
        points: what to point at, each as JSON values that the page understands.
        question: the question of the step; None: it asks nothing.
    """

    title: str
    chapter: str
    words: str
    notes: str = ""
    link: str = ""
    points: tuple[Any, ...] = ()
    question: Question | None = None


class Deck(Protocol):
    """A lecture that is held, with views that are prepared in the background. Its methods return without waiting."""

    @property
    def name(self) -> str:
        """Name by which the lecture is opened again."""

    @property
    def title(self) -> str:
        """Title of the lecture."""

    @property
    def language(self) -> str:
        """Code of the language of its words."""

    @property
    def minutes(self) -> int:
        """How long it is planned to take."""

    @property
    def slides(self) -> Sequence[Slide]:
        """The steps; at least one."""

    def view(self, step: int) -> str | None:
        """Name of the prepared view of a step, its content's hash; None: there is none, or it is not prepared yet."""

    def problem(self, step: int) -> str:
        """Sentence that says why the view of a step cannot be shown; empty: it can, or is not prepared yet."""

    def answer(self, step: int) -> Answer | None:
        """The answer of the run to the question of a step; None: it is not known yet, or nothing is asked."""

    def prepare(self, step: int) -> None:
        """Prepares the view of a step first, then those that follow."""

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener`, in any thread, whenever a view or an answer was prepared."""

    def forget(self, listener: Callable[[], None]) -> None:
        """Ends `listen`."""
