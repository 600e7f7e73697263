"""A lecture for tests of classes: three steps; the second one asks for a token, the third one for a number."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from viz.features.lectures.classroom.deck import Answer, Question, Slide

SLIDES = (
    Slide("Words", "First", "<p>Words.</p>", notes="<p>Say this.</p>", link="/explore"),
    Slide(
        "Which word?", "First", "<p>Look.</p>", link="/explore?head=4", question=Question("Which?", "tokens", ("ein", "hund", "."))
    ),
    Slide("How much?", "Second", "", question=Question("How much?", "number")),
)


@dataclass
class ReadyDeck:
    """A deck without a network."""

    name: str = "plain"
    title: str = "A lecture"
    language: str = "en"
    minutes: int = 15
    slides: Sequence[Slide] = SLIDES
    listeners: list[Callable[[], None]] = field(default_factory=list)
    prepared: list[int] = field(default_factory=list)

    def view(self, step: int) -> str | None:
        return f"view{step}" if self.slides[step].link else None

    def problem(self, step: int) -> str:
        return ""

    def answer(self, step: int) -> Answer | None:
        return Answer((1,), (0.1, 0.8, 0.1), text="hund")

    def prepare(self, step: int) -> None:
        self.prepared.append(step)

    def listen(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        self.listeners.remove(listener)


def opened(name: str) -> ReadyDeck:
    """Opens the lecture `plain`."""
    if name != "plain":
        raise LookupError(name)
    return ReadyDeck()
