"""A lecture, as docs/lectures.md describes it: frozen values without any run."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from model.errors import BadLecture
from viz.claims.subjects import Head, Scope, Subject, Token
from viz.i18n.translate import _
from viz.url.view_state import ViewState


@dataclass(frozen=True)
class Point:
    """The part of a view that a step points at.

    Attributes:
        kind: `token` of a strip; `row` or `cell` of a head; a `head`; a `stage` of the computation.
        note: a short note to show beside it; may be empty.
        line: line of the file.
        strip: of a token: `source` or `target`.
        head: the head.
        query, key: the row, the column, or the token (`key`).
        stage: PLACE/NAME, as in docs/stages.md.
    """

    kind: Literal["token", "row", "cell", "head", "stage"]
    note: str
    line: int
    strip: str = ""
    head: Head = field(default_factory=Head)
    query: Token | None = None
    key: Token | None = None
    stage: str = ""


@dataclass(frozen=True)
class Claim:
    """A claim about a real run: an `expect:` line.

    Attributes:
        text: the line as written.
        line: line of the file.
        subject, scope: what is claimed of which run.
        relation: `=`, `≠`, `<`, `>`, `≤`, `≥`, `contains` or `lacks`.
        value: a number as written, or a text.
        quoted: whether the value is a text.
    """

    text: str
    line: int
    subject: Subject
    scope: Scope
    relation: str
    value: str
    quoted: bool


@dataclass(frozen=True)
class Question:
    """A question of a step. The real run answers it (`viz.features.lectures.script.answers`).

    Attributes:
        prompt: the question, in Markdown.
        kind: `token`: which token comes next; `key`: which token a row looks at; `head`: which head does this; `output`: what is
            written under edits; `number`.
        options: the possible answers; empty: the run gives them (tokens, heads), or a number is asked.
        subject, scope: what the run is asked for.
        line: line of the file.
    """

    prompt: str
    kind: Literal["token", "key", "head", "output", "number"]
    options: tuple[str, ...]
    subject: Subject
    scope: Scope
    line: int


@dataclass(frozen=True)
class Problem:
    """A problem of a file: a sentence, and its line."""

    line: int
    sentence: str


@dataclass(frozen=True)
class Step:
    """One step: words beside a view of the app.

    Attributes:
        number: counted from 0.
        chapter: the chapter that it belongs to; empty before the first one.
        title: its heading; may be empty.
        words: Markdown without raw HTML, without the headings.
        page: URL path of its view, such as `explore`; empty: it has no usable view.
        view: the view; the model is always named.
        link: the link as written.
        points: what it points at.
        notes: the speaker's notes, in Markdown.
        question: a question, if it asks one.
        expects: claims about its runs.
        line: line of the file on which it begins.
        needs, unless: models that must be there, and that must not, for the step to be shown.
    """

    number: int
    chapter: str
    title: str
    words: str
    page: str
    view: ViewState
    link: str
    points: tuple[Point, ...]
    notes: str
    question: Question | None
    expects: tuple[Claim, ...]
    line: int
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lecture:
    """A lecture.

    Attributes:
        name: name of the file without its ending, such as `attention.en`.
        title: its title.
        language: code of the language of its words, such as `en`.
        minutes: how long it takes.
        models: the models that it needs.
        steps: its steps.
        problems: what could not be read.
    """

    name: str
    title: str
    language: str
    minutes: int
    models: tuple[str, ...]
    steps: tuple[Step, ...]
    problems: tuple[Problem, ...] = ()

    def shown_with(self, models: Collection[str]) -> "Lecture":
        """The lecture as it is held where there are these models: the steps whose `needs` and `unless` are met.

        Raises:
            BadLecture: no step is left.
        """
        left = [step for step in self.steps if set(step.needs) <= set(models) and not set(step.unless) & set(models)]
        if not left:
            raise BadLecture(lecture=self.name, line=1, reason=_("no step can be shown with the models that are here"))
        return replace(self, steps=tuple(replace(step, number=number) for number, step in enumerate(left)))

    @property
    def chapters(self) -> tuple[tuple[str, int], ...]:
        """The chapters in order, each with the number of its first step."""
        first: dict[str, int] = {}
        for step in self.steps:
            first.setdefault(step.chapter, step.number)
        return tuple((chapter, number) for chapter, number in first.items() if chapter)
