"""The runs that the page What if compares: decoded freely and fed with what was written before, without and with the edits."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from model.engine.api import Run
from model.errors import EngineAway, HeadlightError
from model.requests.edits import Edit
from model.trace.types import Trace
from viz.i18n.translate import _, error_message
from viz.metrics.teacher_forcing import first_written, teacher_forced_request
from viz.session import patient_engine
from viz.session.background_calls import NotCached, Pending, Stopped
from viz.session.patient_engine import CachedEngine
from viz.session.state import Page


@dataclass(frozen=True, eq=False)
class Fed:
    """Two runs that read the same tokens: what was written before, but for its last token, which is written and not read.

    Attributes:
        before, now: without and with the edits.
        first: position of the first token that the model wrote, or was given as its target.
    """

    before: Trace
    now: Trace
    first: int


@dataclass(frozen=True, eq=False)
class Answers:
    """The effect of the edits.

    Attributes:
        fed: the runs that read what was written before, or a sentence that says why there are none.
        free: what the model writes by itself now, or why it cannot; None: it never decodes.
    """

    fed: Fed | str
    free: Trace | str | None


def answers(page: Page, edits: Sequence[Edit], waits: DeltaGenerator) -> Answers | None:
    """The runs with these edits. While they are computed, `waits` says so, and those shown last are returned, if they are kept.

    Returns:
        None if there are no edits, or no runs to show yet.
    """
    if not edits:
        return None
    try:
        answers = _answers(page, edits)
    except (Pending, Stopped) as pause:
        with waits:
            patient_engine.show(pause)
    else:
        st.session_state[_LAST] = tuple(edits)
        return answers
    with suppress(NotCached):
        if last_edits := st.session_state.get(_LAST):
            return _answers(replace(page, engine=CachedEngine(page.engine)), last_edits)
    return None


_LAST = "whatif:shown"


def _answers(page: Page, edits: Sequence[Edit]) -> Answers:
    return Answers(fed(page, edits), free(page, edits) if writes_freely(page) else None)


def fed(page: Page, edits: Sequence[Edit]) -> Fed | str:
    """The two fed runs, or a sentence that says why there are none.

    Args:
        page: its trace is the run without edits.
    """
    request = teacher_forced_request(replace(page.view.request(), edits=()), page.trace)
    try:
        before, now = (page.engine.ask(Run(replace(request, edits=some_edits))) for some_edits in ((), tuple(edits)))
    except EngineAway:
        raise
    except HeadlightError as error:
        return error_message(error)
    if not now.is_finite:
        return _("With these edits the run produces NaN or infinite values, so there is nothing to draw. Switch one off.")
    tokens = page.trace.tokens
    return Fed(replace(before, tokens=tokens), replace(now, tokens=tokens), first_written(page.trace))


def free(page: Page, edits: Sequence[Edit]) -> Trace | str:
    """The run in which the model generates freely with these edits, or a sentence that says why it cannot."""
    try:
        trace = page.engine.ask(Run(replace(page.view.request(), target=None, edits=tuple(edits))))
    except EngineAway:
        raise
    except HeadlightError as error:
        return error_message(error)
    return trace if trace.is_finite else _("With these edits the run produces NaN or infinite values, so it generates nothing.")


def writes_freely(page: Page) -> bool:
    """Whether the model can decode by itself: it has an output layer, and reads words or ids."""
    return page.info.writes and page.info.reads != "features"
