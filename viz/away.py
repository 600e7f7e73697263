"""Pages while the engine's host does not answer: they show the last result and continue when the host is back."""

from weakref import ref

import streamlit as st

from model.errors import EngineAway
from model.trace.types import Trace
from viz.links import View
from viz.page import say, the_engine
from viz.texts import _, sentence

AGAIN_SECONDS = 3
_LAST = "last"


def remember(trace: Trace, view: View) -> None:
    """Remembers the session's last result. Only the engine's cache holds the trace, so sessions add no memory."""
    st.session_state[_LAST] = ref(trace), view


def last() -> tuple[Trace, View] | None:
    """The session's last result; None if there is none yet or the engine's cache has evicted it."""
    found: tuple[ref[Trace], View] | None = st.session_state.get(_LAST)
    if found is None or (trace := found[0]()) is None:
        return None
    return trace, found[1]


def wait(error: EngineAway, shown: bool) -> None:
    """Says that the host is away, and redraws the page once it answers.

    Args:
        shown: whether the page shows the last result.
    """
    seconds = error.fields["seconds"]
    if shown:
        say(_("The engine has not answered for {seconds} s. You are looking at the last result until it is back.", seconds=seconds))
    else:
        say(sentence(error))
        if _LAST in st.session_state and last() is None:
            say(_("What you saw last is not kept any more."))
    _look_again()


@st.fragment(run_every=AGAIN_SECONDS)
def _look_again() -> None:
    if the_engine().is_healthy():
        st.rerun()
