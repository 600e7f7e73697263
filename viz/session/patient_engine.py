"""Waiting for slow engine calls without blocking: the page shows a waiting line with a stop button, and is redrawn on the answer.

Pages draw inside `show_pending` or `raise_if_slow`. There, a slow call of a `NonBlockingEngine` raises `Pending`, which ends the
drawing. The browser polls a route of the app until the answer has arrived, and then triggers a script run.
"""

import asyncio
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from model.attribution.questions import Answer, Question
from model.engine.api import Engine, ModelInfo
from model.engine.http.access import AccessLimits
from model.engine.scheduling.queue import NOBODY, Session, in_session
from model.errors import Words
from model.inspection.report import Inspection
from model.spec.request import RunRequest, Settings
from model.spec.sent_text import whole_number
from model.trace.cell_arithmetic import Explanation
from model.trace.progress import Progress
from model.trace.types import Array, Trace
from viz.canvas.assets import read
from viz.canvas.wire import strings, transport
from viz.i18n.locales import decimal_sign
from viz.i18n.translate import _, localize_info, number
from viz.labels import tokens
from viz.session import background_calls
from viz.session.background_calls import BY_TOKEN, Call, Calls, NotCached, Pending, Stopped

PATH = f"{transport.PATH}/waiting"
ANSWER_SECONDS = 1.0
"""Seconds that the route waits for an answer before it responds."""

MOST_REPORTS = 10**9
"""Largest number of reports that a browser may say it has seen."""

_CALLS, _WAITS = "calls", "waits"
_RUNS = ("run", "explain", "attribute")
_UNTIL: ContextVar[float | None] = ContextVar("until", default=None)
"""Time at which the script run stops waiting; None: it waits without limit."""

_BAR = st.components.v2.component(
    "headlight.waiting",
    html='<p class="waiting" role="status"></p><p class="how-far"></p><p class="written" dir="auto"></p>',
    css=(Path(__file__).parent / "waiting.css").read_text(encoding="utf-8"),
    js=f"{read('page_link.js')}\n{(Path(__file__).parent / 'waiting.js').read_text(encoding='utf-8')}",
)


def my_calls() -> Calls:
    """The calls of this session."""
    found: Calls = st.session_state.setdefault(_CALLS, Calls())
    return found


@contextmanager
def raise_if_slow() -> Iterator[None]:
    """Context in which slow calls of a NonBlockingEngine raise Pending."""
    if _UNTIL.get() is None:
        st.session_state[_WAITS] = False
    before = _UNTIL.set(time.monotonic() + background_calls.PATIENCE_S)
    try:
        yield
    finally:
        _UNTIL.reset(before)
        my_calls().completed()


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


def show(pause: Pending | Stopped) -> None:
    """Shows that the page waits, or that the visitor stopped the call."""
    if isinstance(pause, Stopped):
        st.info(_("Stopped. Press Run to start again."), icon=":material/stop_circle:")
        if (progress := pause.progress) is not None:
            sentence = strings.how_far_measured() if progress.measured else strings.how_far()
            words = sentence.format(written=progress.done, most=progress.most, rate=number(progress.rate, ".1f"))
            st.caption(f"{tokens.markdown(words)}  \n{tokens.markdown(_text(progress))}")
        return
    st.session_state[_WAITS] = True
    call = pause.call
    seconds = round(time.monotonic() - call.began, 1)
    data = {
        "path": f"{transport.address()}/waiting/{call.token}",
        "seconds": seconds,
        "sentence": strings.running(),
        "how_far": strings.how_far(),
        "measured": strings.how_far_measuring(),
        "decimal": decimal_sign(),
    }
    with st.container(horizontal=True, vertical_alignment="center", key="waiting"):
        _BAR(key=f"waiting-{call.token}", data=data, on_ready_change=_the_run_is_enough)
        st.button(_("Stop"), icon=":material/stop_circle:", key="stop", on_click=my_calls().stop)


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

    @property
    def device(self) -> Words:
        """As for Engine."""
        return self.engine.device

    def models(self) -> tuple[ModelInfo, ...]:
        """As for Engine."""
        found: tuple[ModelInfo, ...] = self._ask("models")
        return tuple(map(localize_info, found))

    def receive(self, data: bytes, name: str) -> str:
        """As for Engine; always waits for the answer."""
        found: str = self._call("receive", data, name)
        return found

    def describe(self, model: str, settings: Settings = ()) -> ModelInfo:
        """As for Engine."""
        found: ModelInfo = self._ask("describe", model, settings)
        return localize_info(found)

    def inspect(self, model: str, settings: Settings = ()) -> Inspection:
        """As for Engine."""
        found: Inspection = self._ask("inspect", model, settings)
        return found

    def run(self, request: RunRequest) -> Trace:
        """As for Engine."""
        found: Trace = self._ask("run", request)
        return found

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine."""
        found: Explanation = self._ask("explain", request, site, head, query, key)
        return found

    def attribute(self, question: Question[Answer]) -> Answer:
        """As for Engine."""
        found: Answer = self._ask("attribute", question)
        return found

    def tensors(self, model: str, names: tuple[str, ...], settings: Settings = ()) -> dict[str, Array]:
        """As for Engine."""
        found: dict[str, Array] = self._ask("tensors", model, names, settings)
        return found

    def export(self, model: str, settings: Settings = ()) -> bytes:
        """As for Engine; always waits: a file is made while it is downloaded."""
        found: bytes = self._call("export", model, settings)
        return found

    def texts(self, model: str, strip: str, ids: tuple[int, ...], settings: Settings = ()) -> tuple[str, ...]:
        """As for Engine."""
        found: tuple[str, ...] = self._ask("texts", model, strip, ids, settings)
        return found

    def _ask(self, what: str, *about: Hashable) -> Any:
        if (until := _UNTIL.get()) is None:
            return self._call(what, *about)
        return my_calls().ask((what, *about), lambda: self._call(what, *about), until, what in _RUNS)

    def _call(self, what: str, *about: Hashable) -> Any:
        """Calls the engine for the session. Also called in threads that other sessions use before and after."""
        with in_session(self.session):
            if self.limits is not None:
                self.limits.admit_call(what, *about)
            return getattr(self.engine, what)(*about)


@dataclass(frozen=True)
class CachedEngine(NonBlockingEngine):
    """Engine that runs nothing: it only returns this session's earlier runs that are still cached."""

    def run(self, request: RunRequest) -> Trace:
        """As for Engine.

        Raises:
            NotCached: this run is not cached.
        """
        found: Trace = my_calls().again(("run", request))
        return found

    def explain(self, request: RunRequest, site: str, head: int, query: int, key: int) -> Explanation:
        """As for Engine.

        Raises:
            NotCached: always.
        """
        raise NotCached

    def attribute(self, question: Question[Answer]) -> Answer:
        """As for Engine.

        Raises:
            NotCached: always.
        """
        raise NotCached


async def _answer(request: Request) -> Response:
    """Whether a call is done, and the tokens written so far: as soon as it is another than `seen`, at the latest after a moment.

    A call that is not known counts as done: its page is to be drawn again.
    """
    call: Call | None = BY_TOKEN.get(request.path_params["token"])
    told: dict[str, object] = {"done": True}
    if call is not None:
        seen = whole_number(request.query_params.get("seen", ""), 0, MOST_REPORTS) or 0
        await asyncio.wait([asyncio.wrap_future(call.feed.after(seen))], timeout=ANSWER_SECONDS)
        told = {"done": call.done.done(), "seen": call.feed.count}
        if (progress := call.feed.newest) is not None:
            told |= {"written": progress.done, "most": progress.most, "rate": round(progress.rate, 1), "text": _text(progress)}
            told |= {"measuring": True} if progress.measured else {}
    return JSONResponse(told, headers={"Cache-Control": "no-store"})


ROUTE = Route(f"{transport.address()}/waiting/{{token}}", _answer)
"""For `st.App(routes=…)`; must come before the route of parts."""
