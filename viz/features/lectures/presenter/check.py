"""Checks files of lectures and says what is wrong: `python -m model lecture check FILE …`."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from tqdm import tqdm

from model.engine import open_engine
from model.engine.api import Engine
from model.errors import HeadlightError
from viz.claims.runs import StepRuns
from viz.features.lectures.presenter import panels
from viz.features.lectures.presenter.label_room import WINDOWS, cut_labels
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.presenter.questions import revealed_view
from viz.features.lectures.script.check import can_run, check
from viz.features.lectures.script.lecture import Lecture, Problem
from viz.features.lectures.script.library import models_here, open_file
from viz.i18n.translate import _, error_message
from viz.panels import NotDrawable

QUIET = 2
"""Seconds that the check of a lecture may take without saying how far it is."""


MOST_NAMED = 3
"""Most labels that a problem quotes."""


def check_files(paths: Iterable[Path]) -> int:
    """Prints what is wrong with each file, as FILE:LINE: SENTENCE.

    Returns:
        The exit status: 1 if anything is wrong.
    """
    engine, wrong = open_engine(), 0
    for path in paths:
        try:
            lecture = open_file(path)
            with tqdm(total=2 * len(lecture.steps), desc=str(path), unit="step", mininterval=1, delay=QUIET, leave=False) as bar:
                problems_ = [*check(lecture, engine, bar.update), *not_drawn(lecture, engine, bar.update)]
            problems = sorted(problems_, key=lambda problem: problem.line)
        except HeadlightError as error:
            print(f"{path}: {error_message(error)}", file=sys.stderr)
            wrong += 1
            continue
        for problem in problems:
            print(f"{path}:{problem.line}: {problem.sentence}", file=sys.stderr)
        claims = sum(len(step.expects) for step in lecture.steps)
        fields = {"path": str(path), "steps": len(lecture.steps), "claims": claims, "problems": len(problems)}
        print(_("{path}: steps {steps}, claims {claims}, problems {problems}", **fields))
        if away := sorted({name for step in lecture.steps for name in step.needs} - models_here(lecture, engine)):
            fields = {"path": str(path), "names": ", ".join(away)}
            print(_("{path}: steps were not checked, because these models are not here: {names}", **fields))
        wrong += len(problems)
    return min(wrong, 1)


def not_drawn(lecture: Lecture, engine: Engine, on_step: Callable[[], object] = lambda: None) -> list[Problem]:
    """The steps whose view a lecture cannot show whole, with the reason. What cannot be run is a problem of `check`."""
    problems, models = list[Problem](), models_here(lecture, engine)
    for step in lecture.steps:
        on_step()
        if not step.page or not can_run(step, models):
            continue
        try:
            drawn = picture(engine, step.page, revealed_view(StepRuns(engine, step), step))
        except NotDrawable as error:
            problems.append(Problem(step.line, str(error)))
        except HeadlightError:
            continue
        if panels.is_empty(drawn):
            empty = _("the picture of this step is empty: no weight differs, or there is nothing to draw")
            problems.append(Problem(step.line, empty))
        for width, height in WINDOWS:
            cut = list(dict.fromkeys(cut_labels(drawn, (width, height))))
            fields = {"window": f"{width}×{height}", "labels": ", ".join(cut[:MOST_NAMED]), "count": len(cut)}
            if cut:
                problems.append(Problem(step.line, _("labels cut at {window}: {count}, such as {labels}", **fields)))
    return problems
