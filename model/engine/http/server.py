"""The host of an engine: any SharedEngine behind HTTP. `python -m model serve` starts it."""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from model.engine.client_address import FORWARDED_HEADER
from model.engine.http import openapi
from model.engine.http.access import STATUS, AccessLimits
from model.engine.http.metrics import Figures
from model.engine.http.protocol import JSON, QUESTIONS, RECEIVE, SESSION_HEADER, SPEAKS, SPEAKS_HEADER, Nothing, Question, pack
from model.engine.log import texts_too
from model.engine.scheduling.queue import DEPARTURE, Departure, Left
from model.engine.session import SharedEngine
from model.errors import (
    BadSetting,
    Busy,
    HeadlightError,
    NotFound,
    OutOfMemory,
    Refused,
    TookTooLong,
    Unavailable,
)
from model.spec.validation import read

CALLERS = 1024
"""Questions that may wait for the engine, each in a thread; the engine's own line is shorter and says how long it is."""

BODY_SECONDS = 30.0
"""A caller that has not sent its question by then is let go."""

MOST_LOGGED = 4096
"""Bytes of a question that are logged where texts were asked for."""

GONE = 499
"""The status, in the log and the figures alone, of a question whose caller went away: it is nobody's error."""

DEAD = "the compute thread has ended; another one is started"

UNREAD = frozenset({*STATUS.values(), 408})
"""Statuses of questions that were not read to their end. Left open, their connections would be read on, gigabytes perhaps."""

Answer = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger("headlight.serve")


def application(engine: SharedEngine, door: AccessLimits) -> Starlette:
    """The ASGI application of a host."""
    figures, threads = Figures(engine), CapacityLimiter(CALLERS)

    def route(path: str, answer: Callable[[Request, bytes], tuple[bytes, str]]) -> Route:
        async def asked(request: Request) -> Response:
            upload, peer = path == RECEIVE, request.client.host if request.client else ""
            door.admit(request.headers.get("authorization", ""), peer, request.headers.getlist(FORWARDED_HEADER))
            async with asyncio.timeout(BODY_SECONDS):
                data = await door.body(request.stream(), request.headers.get("content-length", ""), upload)
            request.state.asked = b"a file" if upload else data
            async with _watched(request):
                reply, media = await anyio.to_thread.run_sync(answer, request, data, limiter=threads)
            return Response(reply, media_type=media)

        return Route(path, _guarded(asked, figures), methods=["POST"])

    def take(request: Request, data: bytes) -> tuple[bytes, str]:
        return pack({"name": engine.receive(data, request.query_params.get("name") or "upload")}), JSON

    def answering(question: Question) -> Callable[[Request, bytes], tuple[bytes, str]]:
        def answer(request: Request, data: bytes) -> tuple[bytes, str]:
            body = _read(question, data)
            door.look_at(body)
            return question.answer(engine, body, request.headers.get(SESSION_HEADER, "")), question.media

        return answer

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(figures.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(request: Request) -> Response:
        ok = await anyio.to_thread.run_sync(engine.answers)
        return JSONResponse({"status": "ok" if ok else DEAD}, 200 if ok else 503, {SPEAKS_HEADER: SPEAKS})

    async def description(request: Request) -> Response:
        return JSONResponse(openapi.describe())

    routes = [route(question.path, answering(question)) for question in QUESTIONS.values()]
    open_to_all = [Route("/healthz", health), Route("/metrics", metrics), Route("/openapi.json", description)]
    return Starlette(routes=[*routes, route(RECEIVE, take), *open_to_all])


@asynccontextmanager
async def _watched(request: Request) -> AsyncIterator[None]:
    """While this lasts, a caller that closes its connection gives up what it asked for. Threads begun within know of it."""
    departure = Departure()

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        departure.go()

    DEPARTURE.set(departure)
    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def _read(question: Question, data: bytes) -> Any:
    """The body of a question.

    Raises:
        BadSetting: it is no JSON, or not of the question's form.
    """
    if question.body is Nothing:
        return Nothing()
    try:
        values = json.loads(data)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()  # no half characters, no NaN
    except (ValueError, RecursionError) as error:
        raise BadSetting(name="the body", found=type(error).__name__, allowed=f"JSON, as {question.path} is described") from error
    return read(question.body, values, "the body")


def status_of(error: HeadlightError) -> int:
    """The HTTP status of an error."""
    match error:
        case Refused():
            return STATUS.get(str(error.fields["what"]), 403)
        case NotFound():
            return 404
        case TookTooLong():
            return 408
        case OutOfMemory():
            return 507
        case Busy() | Unavailable():
            return 503
    return 422


def _guarded(asked: Answer, figures: Figures) -> Answer:
    """Every end in words: a known error as it is, any other with a number that the log explains. Nothing typed is logged."""

    async def guarded(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await asked(request)
        except HeadlightError as error:
            response = JSONResponse(error.to_json(), status_of(error))
        except TimeoutError:
            response = JSONResponse(TookTooLong(seconds=BODY_SECONDS).to_json(), 408)
        except (ClientDisconnect, Left):
            response = Response(status_code=GONE)
        except Exception as error:
            incident = secrets.token_hex(3)
            _log.error({"event": "incident", "incident": incident}, exc_info=error)
            words = f"the engine's host met an error that nobody foresaw (incident {incident}, see its log)"
            response = JSONResponse(HeadlightError(detail=words).to_json(), 500)
        response.headers[SPEAKS_HEADER] = SPEAKS
        if response.status_code in UNREAD:
            response.headers["connection"] = "close"
        seconds = time.perf_counter() - began
        figures.saw(request.url.path, response.status_code, seconds)
        line = {"path": request.url.path, "status": response.status_code, "milliseconds": round(seconds * 1000, 1)}
        line["bytes"] = int(response.headers.get("content-length", 0))
        if texts_too():
            line["asked"] = getattr(request.state, "asked", b"")[:MOST_LOGGED].decode("utf-8", "replace")
        _log.info(line)
        return response

    return guarded
