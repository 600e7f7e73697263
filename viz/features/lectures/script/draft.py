"""A lecture that is being written: its file as text, changed step by step. Lines that are not touched stay as they are."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from viz.features.lectures.script import parser
from viz.features.lectures.script.lecture import Lecture
from viz.url import links
from viz.url.view_state import ViewState


@dataclass(frozen=True)
class Draft:
    """The parts of a lecture's file.

    Attributes:
        front: the front matter, without the lines `---` around it.
        steps: the text of each step, without the lines `---` between them.
    """

    front: str
    steps: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole file."""
        return f"---\n{self.front.strip()}\n---\n" + "\n---\n".join(step.strip("\n") for step in self.steps) + "\n"

    def lecture(self, name: str) -> Lecture:
        """The lecture as it is read.

        Raises:
            BadLecture: the front matter is broken, there is no step, or it is too large.
        """
        return parser.read(parser.decode(self.text.encode("utf-8", "replace"), name), name)

    def added(self, step: str, model: str) -> "Draft":
        """The draft with one more step at its end, and the model of that step in the front matter."""
        return replace(self, front=_naming(self.front, model), steps=(*self.steps, step))

    def replaced(self, number: int, step: str) -> "Draft":
        """The draft with another text of a step."""
        return replace(self, steps=(*self.steps[:number], step, *self.steps[number + 1 :]))

    def moved(self, number: int, by: int) -> "Draft":
        """The draft with a step moved `by` places, as far as there are places."""
        steps = list(self.steps)
        steps.insert(min(max(number + by, 0), len(steps) - 1), steps.pop(number))
        return replace(self, steps=tuple(steps))

    def without(self, number: int) -> "Draft":
        """The draft without a step."""
        return replace(self, steps=(*self.steps[:number], *self.steps[number + 1 :]))


def begin(title: str, language: str, model: str) -> Draft:
    """A draft without steps."""
    return Draft(f"title: {' '.join(title.split())}\nlanguage: {language}\nminutes: 15\nmodels: {model}")


def parts_of(text: str) -> Draft:
    """The parts of a file.

    Raises:
        BadLecture: it cannot be read.
    """
    lecture = parser.read(text, "draft")
    lines = text.replace("\r\n", "\n").split("\n")
    begins = [step.line - 1 for step in lecture.steps]
    front = "\n".join(lines[1 : lines.index("---", 1)])
    ends = [*(begin - 1 for begin in begins[1:]), len(lines)]
    return Draft(front, tuple(_trimmed("\n".join(lines[a:b])) for a, b in zip(begins, ends, strict=True)))


def step_of(page: str, view: ViewState, heading: str, words: str) -> str:
    """The text of a step that shows a view."""
    query = urlencode(links.write(replace(view, big=0)))
    return f"## {heading}\n\n{words}\n\nview: /{page}{'?' if query else ''}{query}"


def _trimmed(step: str) -> str:
    """A step's text without empty steps after it."""
    step = step.strip("\n")
    while step.endswith("\n---"):
        step = step.removesuffix("---").strip("\n")
    return step


def _naming(front: str, model: str) -> str:
    """Front matter that names a model."""
    lines = front.split("\n")
    for number, line in enumerate(lines):
        key, _colon, value = line.partition(":")
        models = [name.strip() for name in value.split(",")]
        if key.strip() == "models" and model not in models:
            lines[number] = f"models: {', '.join([*filter(None, models), model])}"
    return "\n".join(lines)
