"""What is made for a visitor over many texts, a survey or the reading of one head: a thread asks the engine for batch after batch
while the page shows how far it is.

The thread has a session of its own, so that the visitor's runs do not replace its questions, nor the other way round. It ends when
it is stopped, and when nobody has looked at it for a while: a closed tab computes nothing.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import streamlit as st

from model.errors import HeadlightError, TooFast
from model.features.survey.survey import Survey
from viz.i18n.translate import _, error_message, number
from viz.widgets.cards import say

UNWATCHED_S = 30.0
"""Seconds without a look after which a survey is given up; what is there stays."""

AGAIN_S = 2.0
"""Seconds until a batch is asked for again where a public server answered that the visitor asks too fast."""

KEY = "survey-made"

Ask: TypeAlias = Callable[[Any], Any]


class Counted(Protocol):
    """What can be made step by step."""

    @property
    def steps(self) -> tuple[int, int]:
        """Texts read so far, and of all."""

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""


Found = TypeVar("Found", bound=Counted)


@dataclass(eq=False)
class Making(Generic[Found]):
    """Something in the making. Its thread writes `newest` and `error`; the script runs of the page read them.

    Attributes:
        newest: what there is so far.
        steps: what there is after each further step, given what answers questions and what there is; None: it was made elsewhere.
        model: the model on whose page it stands.
        error: why it ended before its end; None: it did not.
        stopped: set to end it.
        seen: when the page last looked.
        began: when it began, or last went on.
        before: texts that were read before that.
    """

    newest: Found
    steps: Callable[[Ask, Found], Iterator[Found]] | None = None
    model: str = ""
    error: HeadlightError | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    seen: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    before: int = 0
    thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether it goes on."""
        return self.thread is not None and self.thread.is_alive()

    def look(self) -> None:
        """Notes that somebody still waits for it."""
        self.seen = time.monotonic()


def start(ask: Ask, steps: Callable[[Ask, Found], Iterator[Found]], first: Found, model: str = "") -> Making[Found]:
    """Starts to make something, or goes on with it, in a thread of its own.

    Args:
        ask: answers a question, as an engine does.
        steps, model: as of `Making`.
        first: what there is before.
    """
    making = Making(first, steps, model, before=first.steps[0])

    def patient(asked: Any) -> Any:
        while True:
            try:
                return ask(asked)
            except TooFast:
                if making.stopped.wait(AGAIN_S):
                    raise

    def work() -> None:
        try:
            for newest in steps(patient, first):
                making.newest = newest
                if making.stopped.is_set() or time.monotonic() - making.seen > UNWATCHED_S:
                    return
        except HeadlightError as error:
            making.error = None if making.stopped.is_set() else error

    making.thread = threading.Thread(target=work, name="headlight-survey", daemon=True)
    making.thread.start()
    return making


def made(model: str) -> Making[Survey] | None:
    """The survey that this visitor has made, is making or has opened on the page of a model."""
    making: Making[Survey] | None = st.session_state.get(KEY)
    return making if making is not None and making.model == model else None


def keep(making: Making[Any], key: str = KEY) -> None:
    """Makes it that of the visitor under a key, and ends the one before."""
    before: Making[Any] | None = st.session_state.get(key)
    if before is not None:
        before.stopped.set()
    st.session_state[key] = making


def drop() -> None:
    """Forgets the survey of this visitor."""
    st.session_state.pop(KEY, None)


@st.fragment(run_every=1.0)
def progress(making: Making[Any], name: str = "survey") -> None:
    """Draws how far it is, with the time left and a button that stops it; draws the page again when it has ended.

    Args:
        name: of its widgets.
    """
    making.look()
    if not making.runs:
        st.rerun()
    done, of = making.newest.steps
    seconds = time.monotonic() - making.began
    fields = {"done": done, "of": of}
    text = _("Texts measured: {done:,} of {of:,}", **fields)
    if done > making.before:
        left = number(round(seconds / (done - making.before) * (of - done)), ",")
        text = _("Texts measured: {done:,} of {of:,}, time left: about {seconds} s", seconds=left, **fields)
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-progress"):
        st.progress(done / max(of, 1), text)
        st.button(_("Stop"), icon=":material/stop_circle:", key=f"{name}-stop", on_click=making.stopped.set)


def ended(making: Making[Any]) -> None:
    """Says why it ended before its end."""
    if making.error is not None:
        say(error_message(making.error))
    elif not making.newest.finished:
        st.info(_("Stopped: these are the results up to then."), icon=":material/stop_circle:")


def go_on(ask: Ask, making: Making[Any]) -> None:
    """Draws a button that goes on with a survey where it ended."""
    if making.steps is None or making.newest.finished:
        return

    def again() -> None:
        assert making.steps is not None
        keep(start(ask, making.steps, making.newest, making.model))

    st.button(_("Go on"), icon=":material/play_arrow:", key="survey-go-on", on_click=again)
