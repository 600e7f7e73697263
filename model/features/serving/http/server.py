"""Engine server: any SharedEngine behind HTTP. `python -m model serve` starts it."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from model.engine import log
from model.engine.api import Healthy, Receive, SharedEngine
from model.engine.client_address import FORWARDED_HEADER, client_address
from model.engine.guards.access import STATUS, AccessLimits
from model.engine.log import logs_texts
from model.engine.scheduling.queue import CANCEL_TOKEN, CallerGone, CancelToken, Session, in_session
from model.errors import (
    Busy,
    DoesNotFit,
    HeadlightError,
    NotForPages,
    NotFound,
    OutOfMemory,
    Refused,
    TookTooLong,
    Unavailable,
    phrase,
)
from model.features.serving.http import openapi
from model.features.serving.http.metrics import EngineMetrics
from model.features.serving.http.progress_stream import Answer, with_progress
from model.features.serving.http.protocol import (
    ENDPOINTS,
    RECEIVE,
    SESSION_HEADER,
    WIRE_VERSION,
    WIRE_VERSION_HEADER,
)
from model.requests.endpoints import JSON, Endpoint, pack
from model.requests.questions import Question

CALLERS = 1024
"""Requests that may wait for the engine, each in a thread; the engine's own queue is shorter and says how long it is."""

BODY_SECONDS = 30.0
"""Time limit for sending a request body."""

MOST_LOGGED = 4096
"""Most bytes of a body that are logged if texts are logged."""

GONE = 499
"""Status, in log and metrics only, of a request whose caller disconnected: it is not an error."""

DEAD = "the compute thread has ended; another one is started"

UNREAD = frozenset({*STATUS.values(), 408})
"""Statuses of requests that were not read to the end. Their connections are closed, so that the rest is never read."""

_log = logging.getLogger("headlight.serve")


def application(engine: SharedEngine, access: AccessLimits) -> Starlette:
    """The ASGI application of an engine server.

    On the event loop runs only what never waits: checks of headers, the reading of bodies, and `/metrics`, whose gauges take the
    scheduler's lock for a moment. Whatever may open a file, wait for a run, or pack megabytes goes to a thread; so does `/healthz`,
    which may ask another server.
    """
    measured, threads = EngineMetrics(engine), CapacityLimiter(CALLERS)

    def route(path: str, answer: Callable[[Request, bytes], tuple[bytes, str]], runs: bool = False) -> Route:
        async def asked(request: Request) -> Response:
            if "origin" in request.headers:  # browsers send it; a page of any site could make its visitors' machines compute
                raise NotForPages()
            upload, peer = path == RECEIVE, request.client.host if request.client else ""
            access.admit(request.headers.get("authorization", ""), peer, request.headers.getlist(FORWARDED_HEADER))
            async with asyncio.timeout(BODY_SECONDS):
                data = await access.body(request.stream(), request.headers.get("content-length", ""), upload)
            request.state.asked = b"a file" if upload else data
            if admitted := getattr(request.state, "admitted", None):
                admitted.set()
            with in_session(Session(request.headers.get(SESSION_HEADER, ""))):  # the answering thread gets a copy of the context
                async with _cancelled_on_disconnect(request):
                    reply, media = await anyio.to_thread.run_sync(answer, request, data, limiter=threads)
            return Response(reply, media_type=media)

        answered = _with_error_replies(asked, measured)
        return Route(path, with_progress(answered) if runs else answered, methods=["POST"])

    def take(request: Request, data: bytes) -> tuple[bytes, str]:
        return pack({"name": engine.ask(Receive(data, request.query_params.get("name") or "upload"))}), JSON

    def answering(endpoint: Endpoint) -> Callable[[Request, bytes], tuple[bytes, str]]:
        def answer(request: Request, data: bytes) -> tuple[bytes, str]:
            # In a thread: reading JSON of megabytes and packing a trace would stop the event loop, and with it all
            # callers.
            question = _read(endpoint, data)
            access.check_question(question)
            peer = request.client.host if request.client else ""
            with access.charging(question, client_address(peer, request.headers.getlist(FORWARDED_HEADER), access.proxies)):
                return endpoint.pack(engine.ask(question)), endpoint.media

        return answer

    async def metrics(request: Request) -> Response:
        return Response(generate_latest(measured.registry), media_type=CONTENT_TYPE_LATEST)

    async def health(request: Request) -> Response:
        ok = await anyio.to_thread.run_sync(engine.ask, Healthy())
        return JSONResponse({"status": "ok" if ok else DEAD}, 200 if ok else 503, {WIRE_VERSION_HEADER: WIRE_VERSION})

    async def description(request: Request) -> Response:
        return JSONResponse(openapi.describe())

    routes = [route(endpoint.path, answering(endpoint), endpoint.runs) for endpoint in ENDPOINTS.values()]
    open_to_all = [Route("/healthz", health), Route("/metrics", metrics), Route("/openapi.json", description)]
    return Starlette(routes=[*routes, route(RECEIVE, take), *open_to_all])


@asynccontextmanager
async def _cancelled_on_disconnect(request: Request) -> AsyncIterator[None]:
    """Cancels the request if the caller disconnects. Threads started inside inherit the CANCEL_TOKEN."""
    cancel_token = CancelToken()

    async def watch() -> None:
        # The body has been read by now. All that is left to come is the message that the caller has gone.
        while (await request.receive())["type"] != "http.disconnect":
            pass
        cancel_token.cancel()

    CANCEL_TOKEN.set(cancel_token)
    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()


def _read(endpoint: Endpoint, data: bytes) -> Question[Any]:
    """The validated question of a request.

    Raises:
        BadSetting: it is not JSON, or not of the endpoint's form.
    """
    if endpoint.body is None:
        return endpoint.read(None)
    try:
        values = json.loads(data)
        json.dumps(values, ensure_ascii=False, allow_nan=False).encode()  # refuses lone surrogates and NaN
    except (ValueError, RecursionError) as error:
        raise DoesNotFit(
            name=endpoint.path, reason=phrase("the request is not valid JSON ({error})", error=type(error).__name__)
        ) from error
    return endpoint.read(values)


def status_of(error: HeadlightError) -> int:
    """The HTTP status of an error."""
    match error:
        case Refused():
            return STATUS.get(type(error), 403)
        case NotFound():
            return 404
        case TookTooLong():
            return 408
        case OutOfMemory():
            return 507
        case Busy() | Unavailable():
            return 503
    return 422


def refusal(error: HeadlightError) -> Response:
    """The reply to a request that no endpoint sees."""
    return JSONResponse(error.to_json(), status_of(error), {WIRE_VERSION_HEADER: WIRE_VERSION, "connection": "close"})


def _with_error_replies(asked: Answer, metrics: EngineMetrics) -> Answer:
    """Replies to every error: a known one as it is, others get an incident number, under which the log has them."""

    async def replied(request: Request) -> Response:
        began = time.perf_counter()
        try:
            response = await asked(request)
        except HeadlightError as error:
            response = JSONResponse(error.to_json(), status_of(error))
        except TimeoutError:
            response = JSONResponse(TookTooLong(seconds=BODY_SECONDS).to_json(), 408)
        except (ClientDisconnect, CallerGone):
            response = Response(status_code=GONE)
        except Exception as error:
            incident = log.incident(error)
            words = f"the engine's host met an error that nobody foresaw (incident {incident}, see its log)"
            response = JSONResponse(HeadlightError(detail=words).to_json(), 500)
        response.headers[WIRE_VERSION_HEADER] = WIRE_VERSION
        # The rest of a body that was not read would be taken for the next request of the connection.
        if response.status_code in UNREAD:
            response.headers["connection"] = "close"
        seconds = time.perf_counter() - began
        metrics.observe_request(request.url.path, response.status_code, seconds)
        line = {"path": request.url.path, "status": response.status_code, "milliseconds": round(seconds * 1000, 1)}
        line["bytes"] = int(response.headers.get("content-length", 0))
        if logs_texts():
            line["asked"] = getattr(request.state, "asked", b"")[:MOST_LOGGED].decode("utf-8", "replace")
        _log.info(line)
        return response

    return replied
