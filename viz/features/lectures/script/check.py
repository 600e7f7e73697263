"""Checks a lecture against real runs: every link, head, token and claim."""

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from model.engine.api import Describe, Engine
from model.errors import BadClaim, HeadlightError
from model.requests.snapshots import without_step
from model.trace import stages
from viz.claims.runs import StepRuns, column, position_of, row
from viz.claims.subjects import Head, Scope
from viz.features.lectures.script.answers import answer
from viz.features.lectures.script.claim_values import number_of, text_of
from viz.features.lectures.script.lecture import Claim, Lecture, Point, Problem, Step
from viz.features.lectures.script.library import models_here
from viz.features.lectures.script.telling import spoiler_problems
from viz.i18n.translate import _, error_message
from viz.i18n.translate import problem as reason

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "≤": operator.le,
    "≥": operator.ge,
    "≠": operator.ne,
}


def check(lecture: Lecture, engine: Engine, on_step: Callable[[], object] = lambda: None) -> list[Problem]:
    """Everything that is wrong with a lecture, in the order of its lines; empty: nothing.

    Steps that can be run are checked, also where another one is shown in their place; `can_run` says which.

    Args:
        on_step: called after each step.

    Raises:
        EngineAway: the engine does not answer.
    """
    problems, models = [*lecture.problems, *_models(lecture, engine)], models_here(lecture, engine)
    for step in lecture.steps:
        if step.page and can_run(step, models):
            problems += check_step(step, engine)
        on_step()
    return sorted(problems, key=lambda problem: problem.line)


def can_run(step: Step, models: Collection[str]) -> bool:
    """Whether the models that a step needs are among these."""
    return set(step.needs) <= set(models)


def check_step(step: Step, engine: Engine) -> list[Problem]:
    """The problems of one step that has a view: its run, what it points at, its question and its claims."""
    runs = StepRuns(engine, step)
    try:
        trace = runs.run()
        runs.attention(trace, Head())
        if step.view.stage:
            stages.find(trace, step.view.stage)
        if runs.has_second_side:
            runs.run(Scope(side="B"))
    except HeadlightError as error:
        return [Problem(step.line, error_message(error))]
    problems = [problem for point in step.points for problem in _refused(point.line, partial(located, runs, point))]
    if step.question is not None:
        problems += _refused(step.question.line, partial(answer, runs, step.question)) or spoiler_problems(runs, step)
    return problems + [problem for claim in step.expects for problem in check_claim(runs, claim)]


def check_claim(runs: StepRuns, claim: Claim) -> list[Problem]:
    """Why a claim is not true of the real run; empty: it is."""
    try:
        if claim.quoted:
            value = text_of(runs, claim.subject, claim.scope)
            true, words = _holds(claim.relation, value, claim.value), f"“{value}”"
        else:
            number = number_of(runs, claim.subject, claim.scope)
            true, words = _compares(claim.relation, number, claim.value), f"{number:.6g}"
    except HeadlightError as error:
        return [Problem(claim.line, error_message(error))]
    return [] if true else [Problem(claim.line, _("not true: {claim}. The run gives {found}.", claim=claim.text, found=words))]


def _holds(relation: str, text: str, value: str) -> bool:
    match relation:
        case "contains":
            return value in text
        case "lacks":
            return value not in text
    return (text == value) == (relation == "=")


def _compares(relation: str, number: float, value: str) -> bool:
    """Whether a relation holds; `=` allows for rounding to the decimals that are written."""
    if relation in _RELATIONS:
        return _RELATIONS[relation](number, float(value))
    decimals = len(value.partition(".")[2])
    return abs(number - float(value)) <= 0.5 * 10.0**-decimals + 1e-9


@dataclass(frozen=True)
class Located:
    """Where a point is in a run: indices, counted from 0; None: it names no such thing.

    Attributes:
        site, head: text form of a site, and a head of it.
        query, key: a row and a key of the head, or (`key`) a token of `strip`.
        strip: `source` or `target`.
        stage: PLACE/NAME.
    """

    site: str = ""
    head: int | None = None
    query: int | None = None
    key: int | None = None
    strip: str = ""
    stage: str = ""


def located(runs: StepRuns, point: Point) -> Located:
    """Where a point is in the run of the step's view.

    Raises:
        HeadlightError: the run has no such token, row, head or stage.
    """
    trace = runs.run()
    match point.kind:
        case "stage":
            return Located(stage=str(stages.find(trace, point.stage)))
        case "token":
            if point.strip not in trace.tokens:
                raise BadClaim(reason=_("this run has no {strip} tokens", strip=point.strip))
            return Located(key=position_of(trace.tokens[point.strip], point.key), strip=point.strip)
    attention, head = runs.attention(trace, point.head)
    query = None if point.query is None else row(trace, attention, point.query)
    key = None if point.key is None else column(trace, attention, point.key)
    return Located(str(attention.site), head, query, key)


def _refused(line: int, ask: Callable[[], object]) -> list[Problem]:
    """The problem of what cannot be answered."""
    try:
        ask()
    except HeadlightError as error:
        return [Problem(line, error_message(error))]
    return []


def _models(lecture: Lecture, engine: Engine) -> Iterator[Problem]:
    """Models that the front matter names and that are not here, and models of views that it does not name."""
    for name in lecture.models:
        try:
            info = engine.ask(Describe(name))
        except HeadlightError as error:
            yield Problem(1, error_message(error))
        else:
            if info.problem:
                yield Problem(1, reason(info))
    for step in lecture.steps:
        name = without_step(step.view.model)[0]
        if step.page and name not in (*lecture.models, *step.needs):
            yield Problem(
                step.line, _("the view uses the model “{name}”, which the line models: at the top does not list", name=name)
            )
