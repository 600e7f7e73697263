"""A lecture that is held: its slides, and its pictures and answers, which a thread prepares in the background."""

import json
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from model.engine import log
from model.engine.api import Engine
from model.errors import HeadlightError
from model.trace import stages
from viz.canvas.wire.transport import content_hash
from viz.claims.runs import StepRuns, column, position_of, row
from viz.features.lectures.classroom.deck import Answer, Slide
from viz.features.lectures.presenter import markdown
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.presenter.questions import answered, revealed_view, unanswered
from viz.features.lectures.presenter.view_store import PackedView
from viz.features.lectures.script.lecture import Lecture, Point, Step
from viz.i18n.translate import _, error_message, speaking
from viz.labels import titles, tokens
from viz.panels import NotDrawable
from viz.views import page_panels

_log = logging.getLogger(log.NAME)


@dataclass(frozen=True)
class Prepared:
    """The prepared picture of one step.

    Attributes:
        view: its picture; None: it has none.
        problem: why it has none, or why its question has no answer; empty: all is there.
        slide: the slide with what only the run knows: the options of its question, the places of its points.
        answer: the answer of the run.
    """

    view: PackedView | None
    problem: str
    slide: Slide
    answer: Answer | None


class LectureDeck:
    """A deck (viz/features/lectures/classroom/deck.py) of a lecture.

    Attributes:
        lecture: the lecture.
        engine: runs its views; called in one thread, one run after the other.
        slides: its steps. The options of a question are empty until its run was prepared.
    """

    def __init__(self, lecture: Lecture, engine: Engine) -> None:
        self.lecture = lecture
        self.slides: list[Slide] = [slide_of(step) for step in lecture.steps]
        self.engine = engine
        self._prepared: dict[int, Prepared] = {}
        self._first = 0
        self._lock = threading.Lock()
        self._listeners = set[Callable[[], None]]()
        self._thread: threading.Thread | None = None
        self._all_prepared = threading.Event()

    @property
    def name(self) -> str:
        """Name by which the lecture is opened again."""
        return self.lecture.name

    @property
    def title(self) -> str:
        """Title of the lecture."""
        return self.lecture.title

    @property
    def language(self) -> str:
        """Code of the language of its words."""
        return self.lecture.language

    @property
    def minutes(self) -> int:
        """How long it is planned to take."""
        return self.lecture.minutes

    def view(self, step: int) -> str | None:
        """Name of the picture of a step, if it is prepared."""
        prepared = self._prepared.get(step)
        return prepared.view.name if prepared is not None and prepared.view is not None else None

    def packed(self, step: int) -> PackedView | None:
        """The picture of a step, if it is prepared."""
        prepared = self._prepared.get(step)
        return prepared.view if prepared is not None else None

    def problem(self, step: int) -> str:
        """Why a step has no picture or no answer; empty: it has them, or is not prepared yet."""
        prepared = self._prepared.get(step)
        return prepared.problem if prepared is not None else ""

    def answer(self, step: int) -> Answer | None:
        """The answer of the run to the question of a step, if it is prepared."""
        prepared = self._prepared.get(step)
        return prepared.answer if prepared is not None else None

    @property
    def prepared(self) -> int:
        """Number of steps that are prepared."""
        return len(self._prepared)

    @property
    def nbytes(self) -> int:
        """Bytes of its pictures."""
        return sum(len(prepared.view.data) for prepared in list(self._prepared.values()) if prepared.view is not None)

    @property
    def is_begun(self) -> bool:
        """Whether its preparing has begun, or is done."""
        return self._thread is not None or self.prepared > 0

    @property
    def is_prepared(self) -> bool:
        """Whether all steps are prepared."""
        return self._all_prepared.is_set()

    @cached_property
    def content(self) -> str:
        """Hash of the lecture and of what its runs gave; only once all steps are prepared."""
        assert self.is_prepared
        return content_hash(repr(self.lecture).encode(), json.dumps(deck_event(self)).encode())

    def prepare(self, step: int) -> None:
        """Prepares a step and those that follow, then the others."""
        with self._lock:
            self._first = step
            if self._thread is None and not self.is_prepared:
                self._thread = threading.Thread(target=self._prepare_all, name="headlight-lecture", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Returns when all steps are prepared. Not for requests: they would keep the threads of all others waiting."""
        self.prepare(0)
        self._all_prepared.wait()

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener` in the thread that prepares, after each step."""
        with self._lock:
            self._listeners.add(listener)

    def forget(self, listener: Callable[[], None]) -> None:
        """Ends `listen`."""
        with self._lock:
            self._listeners.discard(listener)

    def _prepare_all(self) -> None:
        while (step := self._next()) is not None:
            prepared = self._prepare(step)
            self.slides[step] = prepared.slide
            self._prepared[step] = prepared
            if self.prepared == len(self.slides):
                self._all_prepared.set()
            self._tell()

    def _tell(self) -> None:
        """Calls the listeners. One that fails is forgotten: its event loop has ended, and the others wait for the next step."""
        with self._lock:
            listeners = list(self._listeners)
        for listener in listeners:
            try:
                listener()
            except Exception:
                _log.exception("A listener of the lecture %s failed and is called no more.", self.name)
                self.forget(listener)

    def _next(self) -> int | None:
        """The step to prepare next: the first one, from the present step on, that is not prepared."""
        with self._lock:
            ahead = [*range(self._first, len(self.slides)), *range(self._first)]
            following = next((step for step in ahead if step not in self._prepared), None)
            if following is None:
                self._thread = None
            return following

    def _prepare(self, step: int) -> Prepared:
        this, slide = self.lecture.steps[step], self.slides[step]
        with speaking(self.lecture.language):
            try:
                return self._ran(this, slide)
            except (HeadlightError, NotDrawable) as error:
                text = error_message(error) if isinstance(error, HeadlightError) else str(error)
                return Prepared(None, text, slide, None)
            except Exception:
                _log.exception("The view of step %d of the lecture %s could not be prepared.", step + 1, self.name)
                return Prepared(None, _("This view could not be prepared; the server’s log says why."), slide, None)

    def _ran(self, this: Step, slide: Slide) -> Prepared:
        """The picture, the answer and the places of the points of one step. A question without an answer keeps its picture."""
        runs, view_ = StepRuns(self.engine, this), this.view
        slide = replace(slide, notes=markdown.html(this.notes + about_heads(self.engine, this)))
        points, problem, answer = list[Any](), "", None
        try:
            points = [placed(runs, point) for point in this.points]
            if this.question is not None:
                answer, asked = answered(runs, this)
                slide, view_ = replace(slide, question=asked), revealed_view(runs, this)
        except HeadlightError as error:
            problem = error_message(error)
            slide = replace(slide, question=None)
        view = PackedView.of(picture(self.engine, this.page, view_).packed()) if this.link else None
        return Prepared(view, problem, replace(slide, points=tuple(points)), answer)


def about_heads(engine: Engine, step: Step) -> str:
    """Markdown for the notes of a step: what other pages tell of the heads of its claims."""
    subjects = [claim.subject for claim in step.expects if claim.subject.head.site and claim.subject.head.number >= 0]
    heads = {(subject.head.site, subject.head.number): subject.name or subject.kind for subject in subjects}
    return "".join(f"\n\n{text}" for text in page_panels.about_heads(engine, step.page, step.view.model, heads))


def slide_of(step: Step) -> Slide:
    """The slide of a step, without what only its run knows."""
    question = unanswered(step.question) if step.question is not None else None
    return Slide(step.title, step.chapter, markdown.html(step.words), markdown.html(step.notes), step.link, (), question)


def placed(runs: StepRuns, point: Point) -> dict[str, Any]:
    """A point as the page understands it: what it names in words, what to select, and what to light up.

    Raises:
        HeadlightError: the run has no such head or token.
    """
    trace, note = runs.run(), markdown.inline(point.note)
    if point.kind == "stage":
        stage = stages.find(trace, point.stage)
        return {"label": f"{titles.titles()[stage.name]} · {titles.place(trace, stage, runs.view.head)}", "note": note}
    if point.kind == "token":
        strip = trace.tokens[point.strip]
        at = position_of(strip, point.key)
        return {"label": tokens.plain(strip.texts[at]), "note": note, "keyStrip": point.strip, "key": at}
    attention, head = runs.attention(trace, point.head)
    fields: dict[str, Any] = {"note": note, "site": str(attention.site), "head": head, "queryStrip": attention.query_tokens}
    if point.kind == "head":
        return fields | {"label": tokens.site(attention.site, head)}
    fields["query"] = row(trace, attention, point.query)
    label = tokens.queries(trace, attention)[fields["query"]]
    if point.kind == "cell":
        fields |= {"keyStrip": attention.key_tokens, "key": column(trace, attention, point.key)}
        label = _("“{query}” attends to “{key}”", query=label, key=tokens.keys(trace, attention)[fields["key"]])
    return fields | {"label": label}


def slide_json(slide: Slide) -> dict[str, Any]:
    """A slide as JSON values, without the notes; if it asks something, also without its words and points, which say the answer."""
    fields = {name: value for name, value in asdict(slide).items() if name != "notes"}
    return fields | {"words": "", "points": ()} if slide.question is not None else fields


def deck_event(deck: LectureDeck) -> dict[str, Any]:
    """The event that a lecturer's page gets whenever a step was prepared. The page keeps what answers an open question apart."""
    steps: Sequence[int] = range(len(deck.slides))
    answers = {step: deck.answer(step) for step in steps}
    return {
        "views": [deck.view(step) for step in steps],
        "problems": [deck.problem(step) for step in steps],
        "words": [slide.words for slide in deck.slides],
        "points": [list(slide.points) for slide in deck.slides],
        "questions": {step: asdict(slide.question) for step, slide in enumerate(deck.slides) if slide.question is not None},
        "answers": {step: asdict(answer) for step, answer in answers.items() if answer is not None},
    }
