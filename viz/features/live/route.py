"""The route of live pictures: `POST /headlight/live/TOKEN` with `{"text": …, "change": {…}}`; the answer is a stream of frames.
`DELETE` stops the run, and keeps what it has written.

Only the app's own pages may ask: the token is known to them alone, and the browser must say that the request comes from the same
origin. The limits of the app hold: length and pace are checked by the engine call itself, as for a script run.

While a run decodes, each frame holds the scenes of its trace so far. A frame is its length, a uint32 (little endian), and a scene
(viz/canvas/wire/transport.py) whose blobs are scenes of drawings. Its header says the sentence (`text`), whether it is the last
(`final`), what is written (`progress`), or an `error` in words.
"""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from model.engine import log
from model.engine.api import Run
from model.engine.scheduling.queue import CallerGone
from model.errors import HeadlightError, Superseded
from model.requests.inputs import CHARACTERS_PER_POSITION, POSITIONS
from model.requests.sent_text import split_address
from model.trace.progress import Progress
from model.trace.types import Trace, chat_of
from viz.canvas.wire import transport
from viz.canvas.wire.transport import pack
from viz.features.live.sessions import BY_TOKEN, LiveSession, PageContext, Question, fields_of
from viz.i18n.translate import _, error_message, number
from viz.session.background_calls import Call
from viz.url.view_state import ViewState
from viz.views import run_page

PATH = f"{transport.address()}/live"
MEDIA = "application/x-headlight-frames"
"""The media type of a stream of frames."""

BODY = 8 * CHARACTERS_PER_POSITION * POSITIONS
"""Most bytes of a question: the longest text that any model accepts, in JSON."""


LOOK_SECONDS = 0.06
"""After this time the speed of a run is checked. One that has generated fewer than two tokens will take long."""

FIRST_SECONDS = 0.4
"""Another run that takes no longer is drawn once, at its end: making a frame takes processor time from the run."""

ENCODER_SECONDS = 0.25
"""The encoder's maps are drawn alone if the first token takes longer: the other maps leave the picture meanwhile."""

SHARE = 4
"""After a frame that took so long to make, the next one waits this many times as long: a fifth of a core for all sessions."""


class FrameThrottle:
    """The processor time of frames of runs that still decode, of all sessions together.

    Attributes:
        due: time on the monotonic clock at which the next frame may be made.
    """

    def __init__(self) -> None:
        self.due = 0.0

    def begin(self) -> float:
        """Notes that a frame is being made, and returns the time; no other is made meanwhile."""
        began = time.monotonic()
        self.due = began + FIRST_SECONDS  # if the browser never reads it, others go on then
        return began

    def end(self, began: float) -> float:
        """Notes that the frame is made. Returns the time at which the next one may be."""
        self.due = time.monotonic() + SHARE * (time.monotonic() - began)
        return self.due


BUDGET = FrameThrottle()
"""That of this process."""


async def frames(live: LiveSession, page: PageContext, question: Question, run: Run, gone: Awaitable[None]) -> AsyncIterator[bytes]:
    """The frames of one question, until its run has ended or a newer question of the session replaces it.

    Args:
        question: what is to be drawn.
        run: the run that it asks for.
        gone: done when the browser has left.
    """
    call, left = live.ask(page, run), asyncio.ensure_future(gone)
    try:
        async for progress in _progress(call, left):
            with suppress(HeadlightError):  # what another host sent so far is damaged: the end of the run says so
                yield await asyncio.to_thread(_partial, *live.current(page, question), progress)
        if not left.done():
            yield await asyncio.to_thread(_last, *live.current(page, question), call)
    finally:
        left.cancel()
        call.give_up()  # the browser has the answer, or has left


async def _progress(call: Call, left: "asyncio.Future[None]") -> AsyncIterator[Progress]:
    """How far a run has come that still decodes; what comes while a frame is made is left out, but for the newest.

        begun ── LOOK_SECONDS ──▶ paused until `due` ──▶ listening ── a token ──▶ making a frame ──┐
                                      ▲                                                            │
                                      └──── `due` = now + SHARE × what the frame took to make ◀────┘

    Each arrow also ends when the run has ended or the browser has left. A run that has two tokens after LOOK_SECONDS is quick: its
    first `due` is FIRST_SECONDS after its begin, by which time it has usually ended. While the encoder alone has run, listening
    goes on up to ENCODER_SECONDS. `due` is also that of all other sessions' frames (BUDGET).
    """
    began, seen = time.monotonic(), 0
    done = asyncio.wrap_future(call.done)

    async def wait(until: float, *others: "asyncio.Future[None]") -> None:
        seconds = None if until == math.inf else max(0.0, until - time.monotonic())
        await asyncio.wait({done, left, *others}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    await wait(due := began + LOOK_SECONDS)
    if call.feed.newest is not None and call.feed.newest.done > 1:
        due = began + FIRST_SECONDS
    while not (done.done() or left.done()):
        count, progress, now = call.feed.count, call.feed.newest, time.monotonic()
        if now < (due := max(due, BUDGET.due)):
            await wait(due)  # nobody listens until then: each token would wake this thread
        elif count == seen or progress is None or progress.so_far is None:
            await wait(math.inf, asyncio.wrap_future(call.feed.after(count)))
        elif not progress.done and now < began + ENCODER_SECONDS:
            await wait(began + ENCODER_SECONDS, asyncio.wrap_future(call.feed.after(count)))
        else:
            seen, made = count, BUDGET.begin()
            yield progress
            due = BUDGET.end(made)


def _partial(page: PageContext, view: ViewState, progress: Progress) -> bytes:
    """A frame of a run that still decodes."""
    assert progress.so_far is not None
    written = {"written": progress.done, "most": progress.most, "rate": page.context.copy().run(number, progress.rate, ".1f")}
    return _frame(page, view, progress.so_far(), written)


def _last(page: PageContext, view: ViewState, call: Call) -> bytes:
    """The last frame: the finished run, or why there is none. A stopped run ends with what it had written."""
    try:
        return _frame(page, view, call.answer(), None)
    except (CallerGone, Superseded):
        return _packed({"text": view.text, "final": True, "stopped": True})
    except HeadlightError as error:
        return _packed({"text": view.text, "final": True, "error": page.context.copy().run(error_message, error)})
    except Exception as error:
        sentence = page.context.copy().run(_failure, log.incident(error))
        return _packed({"text": view.text, "final": True, "error": sentence})


def _failure(incident: str) -> str:
    return _("Something went wrong inside Headlight (incident {incident}; details are in the server log).", incident=incident)


def _frame(page: PageContext, view: ViewState, trace: Trace, written: Mapping[str, Any] | None) -> bytes:
    header: dict[str, Any] = {"text": view.text, "final": written is None, "progress": written}
    if written is None:
        header["note"] = page.note(view, trace)
    if (chat := chat_of(trace)) is not None:
        header["reply"] = chat.reply
    if sentence := page.context.copy().run(run_page.undrawable, trace):
        return _packed(header | {"error": sentence})
    return _packed(header, page.scenes(view, trace, partial=written is not None))


def _packed(header: Mapping[str, Any], scenes: Mapping[str, bytes] | None = None) -> bytes:
    data = pack(header, {name: np.frombuffer(scene, np.uint8) for name, scene in (scenes or {}).items()})
    return len(data).to_bytes(4, "little") + data


def same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a browser says that a page of this app asks. `Sec-Fetch-Site` also holds behind a proxy that changes the host."""
    if site := headers.get("sec-fetch-site"):
        return site == "same-origin"
    origin = split_address(headers.get("origin", ""))
    return origin is not None and bool(origin.netloc) and origin.netloc == headers.get("host")


async def _serve(request: Request) -> Response:
    """Answers one question of a sentence box, or stops the run that the last one asked for."""
    if not same_origin(request.headers):
        return _refused(403, "Only pages of this app can request this.")
    live = BY_TOKEN.get(request.path_params["token"])
    if live is None or (page := live.page) is None:
        return _refused(404, "This session has ended: reload the page.")
    if request.method == "DELETE":
        live.calls.stop_following()
        return Response(status_code=204)
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return _refused(415, "The question must be JSON.")
    try:
        question = _question(await _body(request))
    except OverflowError:
        return _refused(413, "The question is too long.")
    except (ValueError, RecursionError, ClientDisconnect):
        return _refused(400, 'The question must be {"text": "…"}, perhaps with a "change".')
    try:
        run = Run(page.of(question).request())
    except HeadlightError as error:  # a text longer than any model reads: said like that of a run
        sentence = page.context.copy().run(error_message, error)
        return Response(_packed({"text": question.text, "final": True, "error": sentence}), media_type=MEDIA)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Content-Encoding": "identity"}
    return StreamingResponse(frames(live, page, question, run, _gone(request)), headers=headers, media_type=MEDIA)


async def _body(request: Request) -> bytes:
    """The body of a request.

    Raises:
        OverflowError: it is longer than BODY.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > BODY:
            raise OverflowError
    return bytes(body)


async def _gone(request: Request) -> None:
    """Returns when the browser has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _question(body: bytes) -> Question:
    """The question in a body.

    Raises:
        ValueError: it is of another form.
    """
    asked = json.loads(body)
    if (
        not isinstance(asked, dict)
        or not {"text"} <= asked.keys() <= {"text", "change"}
        or not isinstance(asked["text"], str | None)
    ):
        raise ValueError
    return Question(asked["text"], fields_of(asked.get("change", {})))


def _refused(status: int, why: str) -> Response:
    return PlainTextResponse(why, status, headers={"Cache-Control": "no-store"})


ROUTE = Route(f"{PATH}/{{token}}", _serve, methods=["POST", "DELETE"])
"""For `st.App(routes=…)`; must come before the route of parts."""
