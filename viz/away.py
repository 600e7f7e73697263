"""What a page does while the host of its engine does not answer: it shows the last result, and goes on when the host is back."""

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
    """Notes what the session saw last. The engine's cache alone holds its trace: many sessions hold no more than its bytes."""
    st.session_state[_LAST] = ref(trace), view


def last() -> tuple[Trace, View] | None:
    """What the session saw last; None: nothing yet, or the engine's cache does not hold it any more."""
    found: tuple[ref[Trace], View] | None = st.session_state.get(_LAST)
    if found is None or (trace := found[0]()) is None:
        return None
    return trace, found[1]


def wait(error: EngineAway, shown: bool) -> None:
    """Says that the host is away, and draws the page anew as soon as it answers.

    Args:
        shown: whether the last result is on the page.
    """
    seconds = error.fields["seconds"]
    if shown:
        say(_("The engine's host does not answer since {seconds} s; the last result is shown until it is back.", seconds=seconds))
    else:
        say(sentence(error))
        if _LAST in st.session_state and last() is None:
            say(_("What you saw last is not kept any more."))
    _look_again()


@st.fragment(run_every=AGAIN_SECONDS)
def _look_again() -> None:
    if the_engine().is_healthy():
        st.rerun()
