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
from model.survey.survey import Survey
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
        error: why it ended before its end; None: it did not.
        stopped: set to end it.
        seen: when the page last looked.
        began: when it began.
    """

    newest: Found
    error: HeadlightError | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    seen: float = field(default_factory=time.monotonic)
    began: float = field(default_factory=time.monotonic)
    thread: threading.Thread | None = None

    @property
    def runs(self) -> bool:
        """Whether it goes on."""
        return self.thread is not None and self.thread.is_alive()

    def look(self) -> None:
        """Notes that somebody still waits for it."""
        self.seen = time.monotonic()


def start(ask: Ask, steps: Callable[[Ask], Iterator[Found]], first: Found) -> Making[Found]:
    """Starts to make something in a thread of its own.

    Args:
        ask: answers a question, as an engine does.
        steps: what there is after each step, given what answers questions.
        first: what there is before.
    """
    making = Making(first)

    def patient(asked: Any) -> Any:
        while True:
            try:
                return ask(asked)
            except TooFast:
                if making.stopped.wait(AGAIN_S):
                    raise

    def work() -> None:
        try:
            for newest in steps(patient):
                making.newest = newest
                if making.stopped.is_set() or time.monotonic() - making.seen > UNWATCHED_S:
                    return
        except HeadlightError as error:
            making.error = None if making.stopped.is_set() else error

    making.thread = threading.Thread(target=work, name="headlight-survey", daemon=True)
    making.thread.start()
    return making


def made(model: str) -> Making[Survey] | None:
    """The survey of a model that this visitor has made or is making."""
    found: Making[Survey] | None = st.session_state.get(KEY)
    return found if found is not None and found.newest.about.model == model else None


def keep(making: Making[Any], key: str = KEY) -> None:
    """Makes it that of the visitor under a key, and ends the one before."""
    before: Making[Any] | None = st.session_state.get(key)
    if before is not None:
        before.stopped.set()
    st.session_state[key] = making


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
    gaps = {"done": done, "of": of}
    text = _("Texts measured: {done:,} of {of:,}", **gaps)
    if done:
        left = number(round(seconds / done * (of - done)), ",")
        text = _("Texts measured: {done:,} of {of:,}, time left: about {seconds} s", seconds=left, **gaps)
    with st.container(horizontal=True, vertical_alignment="center", key=f"{name}-progress"):
        st.progress(done / max(of, 1), text)
        st.button(_("Stop"), icon=":material/stop_circle:", key=f"{name}-stop", on_click=making.stopped.set)


def ended(making: Making[Any]) -> None:
    """Says why it ended before its end."""
    if making.error is not None:
        say(error_message(making.error))
    elif not making.newest.finished:
        st.info(_("Stopped: these are the results up to then."), icon=":material/stop_circle:")
