"""What every answer of the app carries, and what an unexpected error tells the visitor and the log."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket

from model.engine.log import NAME, JsonFormatter
from model.errors import BadSetting
from viz.session.access import ClosedPaths
from viz.session.middleware import EveryAnswer, frame_ancestors

TYPED = "what somebody typed"


async def page(request: Request) -> Response:
    return HTMLResponse("<p>", headers={"Content-Security-Policy": "default-src 'none'", "Referrer-Policy": "unsafe-url"})


async def failing(request: Request) -> Response:
    raise ValueError(TYPED)


async def breaking(request: Request) -> Response:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        raise ValueError(TYPED)

    return StreamingResponse(pieces())


async def leaving(request: Request) -> Response:
    raise ClientDisconnect


async def reading(request: Request) -> Response:
    await request.body()
    return PlainTextResponse("no", 409)


async def refusing(websocket: WebSocket) -> None:
    await websocket.send_denial_response(PlainTextResponse("no", 403))


async def metrics(request: Request) -> Response:
    return PlainTextResponse("sessions 3")


ROUTES = [
    Route("/", page),
    Route("/failing", failing),
    Route("/breaking", breaking),
    Route("/leaving", leaving),
    Route("/reading", reading, methods=["POST"]),
    Route("/_stcore/metrics", metrics),
    Route("/base/_stcore/metrics", metrics),
    WebSocketRoute("/socket", refusing),
]


@contextmanager
def serving() -> Iterator[TestClient]:
    with TestClient(Starlette(routes=ROUTES, middleware=[Middleware(EveryAnswer), Middleware(ClosedPaths)])) as client:
        yield client


def carries(answer: Response | object) -> bool:
    headers = answer.headers  # type: ignore[union-attr]
    found = [headers[name] for name in ("x-content-type-options", "referrer-policy", "content-security-policy")]
    return found[:2] == ["nosniff", "no-referrer"] and found[2].endswith("frame-ancestors 'self'")


def test_every_answer_says_who_may_frame_it_and_that_links_from_it_tell_nothing() -> None:
    with serving() as client:
        answers = [client.get("/"), client.get("/none"), client.post("/"), client.head("/"), client.get("/failing")]
        assert [answer.status_code for answer in answers] == [200, 404, 405, 200, 500]
        assert all(map(carries, answers))
        assert answers[0].headers.get_list("content-security-policy") == ["default-src 'none'", "frame-ancestors 'self'"]
        with pytest.raises(WebSocketDenialResponse) as denied, client.websocket_connect("/socket"):
            pass
        assert carries(denied.value)


def test_an_unexpected_error_is_an_incident_and_quotes_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("model.engine.log._LOGGED", {})
    caplog.set_level(logging.INFO, NAME)
    with serving() as client:
        answer = client.get("/failing")
        assert answer.text.startswith("Something went wrong inside Headlight (incident ")
        incident = answer.text.split("incident ")[1].split(";")[0]
        with pytest.raises(RuntimeError, match=r"^incident [0-9a-f]{6}$") as broken:
            client.get("/breaking")
    assert broken.value.__suppress_context__, "the server logs what led to it otherwise"
    lines = [JsonFormatter().format(record) for record in caplog.records if record.name == NAME]
    assert len(lines) == 2
    assert incident in lines[0]
    assert "ValueError" in lines[0]
    assert TYPED not in "".join(lines)


def test_a_refusal_closes_the_connection_where_not_all_that_was_sent_was_read() -> None:
    with serving() as client:
        closed = [client.post("/none", content=b"a"), client.put("/", content=b"a"), client.post("/failing", content=b"a")]
        kept = [client.post("/reading", content=b"a"), client.post("/none"), client.get("/none"), client.get("/")]
        assert [answer.headers.get("connection") for answer in closed] == ["close"] * 3
        assert [answer.headers.get("connection") for answer in kept] == [None] * 4


def test_a_visitor_who_leaves_is_no_incident(caplog: pytest.LogCaptureFixture) -> None:
    async def left(scope: object, receive: object, send: object) -> None:
        raise ClientDisconnect

    asyncio.run(EveryAnswer(left)({"type": "http", "headers": []}, None, None))  # type: ignore[arg-type]
    assert caplog.records == []


def test_a_course_platform_may_be_allowed_to_show_the_app_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADLIGHT_FRAMES", "https://course.example.org  https://*.uni.example:8443")
    with serving() as client:
        allowed = "frame-ancestors 'self' https://course.example.org https://*.uni.example:8443"
        assert client.get("/none").headers["content-security-policy"] == allowed


@pytest.mark.parametrize(
    "sites", ["https://a; script-src *", "https://a, b", "'none'", "javascript:x", "https://a/b", "a\x00", "é é;"]
)
def test_what_is_no_site_is_refused_when_the_server_starts(sites: str) -> None:
    with pytest.raises(BadSetting, match="HEADLIGHT_FRAMES"):
        frame_ancestors({"HEADLIGHT_FRAMES": sites})


def test_streamlits_metrics_are_closed_in_public_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as client:
        assert client.get("/_stcore/metrics").text == "sessions 3"
        monkeypatch.setenv("HEADLIGHT_PUBLIC", "1")
        for path in ("/_stcore/metrics", "/base/_stcore/metrics"):
            assert client.get(path).status_code == 403
            assert "sessions" not in client.get(path).text
