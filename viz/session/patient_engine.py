"""Waiting for slow engine calls without blocking: the page shows a waiting line with a stop button, and is redrawn on the answer.

Pages draw inside `show_pending` or `raise_if_slow`. There, a slow call of a `NonBlockingEngine` raises `Pending`, which ends the
drawing. The browser polls a route of the app until the answer has arrived, and then triggers a script run.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from model.engine.api import Engine, Export, Listing, ModelInfo, Receive, Run
from model.engine.guards.access import AccessLimits
from model.engine.scheduling.queue import NOBODY, Session, in_session
from model.requests.questions import Answer, Question, RunQuestion
from model.requests.sent_text import whole_number
from model.trace.progress import Progress
from viz.canvas.assets import read
from viz.canvas.wire import strings, transport
from viz.i18n.translate import _, decimal_sign, localize_info, number
from viz.labels import tokens
from viz.session import background_calls
from viz.session.background_calls import BY_TOKEN, Call, Calls, NotCached, Pending, Stopped

ANSWER_SECONDS = 1.0
"""Seconds that the route waits for an answer before it responds."""

MOST_REPORTS = 10**9
"""Largest number of reports that a browser may say it has seen."""

_CALLS, _WAITS = "calls", "waits"
_UNTIL: ContextVar[float | None] = ContextVar("until", default=None)
"""Time at which the script run stops waiting; None: it waits without limit."""

_BAR = st.components.v2.component(
    "headlight.waiting",
    html='<p class="waiting" role="status"></p><p class="how-far"></p><progress hidden></progress>'
    '<p class="written" dir="auto"></p>',
    css=(Path(__file__).parent / "waiting.css").read_text(encoding="utf-8"),
    js=f"{read('page_link.js')}\n{(Path(__file__).parent / 'waiting.js').read_text(encoding='utf-8')}",
)


def my_calls() -> Calls:
    """The calls of this session."""
    calls: Calls = st.session_state.setdefault(_CALLS, Calls())
    return calls


@contextmanager
def raise_if_slow() -> Iterator[None]:
    """Context in which slow calls of a NonBlockingEngine raise Pending.

    All calls of one context share PATIENCE_S seconds. Contexts nest: a part of a page that may be missing has one of its own, whose
    `show_pending` ends that part alone. Answers are held until a context ends with no call pending: a page that needs several slow
    answers is begun again for each of them, and must find the earlier ones.
    """
    if _UNTIL.get() is None:  # the outermost context: nothing on this page waits yet
        st.session_state[_WAITS] = False
    before = _UNTIL.set(time.monotonic() + background_calls.PATIENCE_S)
    try:
        yield
    finally:
        _UNTIL.reset(before)
        my_calls().clear_if_idle()


@contextmanager
def show_pending() -> Iterator[None]:
    """Like `raise_if_slow`, but a slow call skips the rest of the block and shows that the page waits."""
    try:
        with raise_if_slow():
            yield
    except (Pending, Stopped) as pause:
        show(pause)
    except NotCached:
        pass


def waits() -> bool:
    """Whether a part of the page that was drawn last waits for an answer, after which the page is drawn again."""
    return bool(st.session_state.get(_WAITS))


def show(pause: Pending | Stopped, opens: str = "") -> None:
    """Shows that the page waits, or that the visitor stopped the call; `opens`: the title of a model that is opened for it."""
    if isinstance(pause, Stopped):
        st.info(_("Stopped. Press Run to start again."), icon=":material/stop_circle:")
        if (progress := pause.progress) is not None:
            counts = {"written": progress.done, "most": progress.most, "rate": number(progress.rate, ".1f")}
            measured = progress.measured is not None
            words = (
                _("{written} of {most} measured, {rate} per second", **counts)
                if measured
                else _("{written} of at most {most} tokens, {rate} per second", **counts)
            )
            st.caption(f"{tokens.markdown(words)}  \n{tokens.markdown(_text(progress))}")
        return
    if waits():  # another part of this page says so: its button stops all calls, and its answer draws all again
        return
    st.session_state[_WAITS] = True
    show_call(pause.call, my_calls().stop, "run", opens)


def show_call(call: Call, stop: Callable[[], None], what: strings.Wait, opens: str = "") -> None:
    """Shows for how long a call was waited for, and how far it is, with a button that stops it.

    Args:
        stop: called by the button.
        what: the page waits for; a run and what a dialog opens may be waited for at once.
        opens: the title of a model that is opened for the run.
    """
    name = "" if what == "run" else "-beside"
    data = {
        "path": f"{transport.address()}/waiting/{call.token}",
        "seconds": round(time.monotonic() - call.began, 1),
        **strings.waiting(what, opens),
        "decimal": decimal_sign(),
    }
    with st.container(horizontal=True, vertical_alignment="center", key=f"waiting{name}"):
        _BAR(key=f"waiting-{call.token}", data=data, on_ready_change=_the_run_is_enough)
        st.button(_("Stop"), icon=":material/stop_circle:", key=f"stop{name}", on_click=stop)


def _text(progress: Progress) -> str:
    """The tokens written so far, a blank between each two."""
    return " ".join(map(tokens.plain, progress.texts))


def _the_run_is_enough() -> None:
    """The script run that a trigger causes fetches the answer."""


@dataclass(frozen=True)
class NonBlockingEngine:
    """Engine whose slow calls do not block a script run inside `raise_if_slow`; outside, its calls wait without limit.

    Attributes:
        engine: the wrapped engine, called from other threads.
        session: the session that all calls are for.
        limits: access limits that every call must meet; None: no limits.
    """

    engine: Engine
    session: Session = NOBODY
    limits: AccessLimits | None = None

    def ask(self, question: Question[Answer]) -> Answer:
        """The engine's answer, with what it says of models in the session's language.

        An upload and an export always wait: a file is sent, or made, while the visitor watches its button.
        """
        until = _UNTIL.get()
        if until is None or isinstance(question, Receive | Export):
            answer: Any = self._call(question)
        else:
            answer = my_calls().ask(question, lambda: self._call(question), until, isinstance(question, RunQuestion))
        match answer:
            case Listing():
                answer = replace(answer, models=tuple(map(localize_info, answer.models)))
            case ModelInfo():
                answer = localize_info(answer)
        return cast(Answer, answer)

    def _call(self, question: Question[Answer]) -> Answer:
        """Asks the engine for the session. Also called in threads that other sessions use before and after."""
        with in_session(self.session):
            if self.limits is None:
                return self.engine.ask(question)
            self.limits.admit_call(question)
            with self.limits.charging(question, self.session.client):
                return self.engine.ask(question)


@dataclass(frozen=True)
class CachedEngine(NonBlockingEngine):
    """Engine that runs nothing: it only returns this session's earlier runs that are still cached."""

    def ask(self, question: Question[Answer]) -> Answer:
        """An earlier run, or the engine's answer to a question that needs no run.

        Raises:
            NotCached: it needs a run that is not cached.
        """
        if isinstance(question, Run):
            return cast(Answer, my_calls().again(question))
        if isinstance(question, RunQuestion):
            raise NotCached
        return super().ask(question)


async def _answer(request: Request) -> Response:
    """Whether a call is done, and the tokens written so far: as soon as it is another than `seen`, at the latest after a moment.

    A call that is not known counts as done: its page is to be drawn again.
    """
    call: Call | None = BY_TOKEN.get(request.path_params["token"])
    state: dict[str, object] = {"done": True}
    if call is not None:
        seen = whole_number(request.query_params.get("seen", ""), 0, MOST_REPORTS) or 0
        await asyncio.wait([asyncio.wrap_future(call.feed.after(seen))], timeout=ANSWER_SECONDS)
        state = {"done": call.done.done(), "seen": call.feed.count}
        if (progress := call.feed.newest) is not None:
            state |= {"written": progress.done, "most": progress.most, "rate": round(progress.rate, 1), "text": _text(progress)}
            state |= {"measuring": True} if progress.measured is not None else {}
            state |= {"fetching": True} if progress.fetched is not None else {}
    return JSONResponse(state, headers={"Cache-Control": "no-store"})


ROUTE = Route(f"{transport.address()}/waiting/{{token}}", _answer)
"""For `st.App(routes=…)`; must come before the route of parts."""
