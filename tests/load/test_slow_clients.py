"""Callers that send too slowly, do not read, hang up halfway, or send far too much: the others are answered all the same."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlparse

import httpx
import psutil
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from benchmarks.load.visitor import visiting
from benchmarks.servers import Served
from model.engine.api import Gauges, Run
from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.features.serving.http import server
from model.features.serving.http.server import application
from model.requests.request import KEEP, Decoding, RunRequest
from model.trace import serialization
from tests.hosts import listening
from tests.networks import save_checkpoint
from tests.patience import HANG_S
from tests.runs import CPU, assert_same
from viz.session.middleware import EveryAnswer

OF_EACH = 25
TWO_GIGABYTES = 2 * 2**30
REQUEST = RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=6), keep=KEEP)
BODY = json.dumps(REQUEST.to_json()).encode()
HEAD = f"POST /v1/run HTTP/1.1\r\nHost: x\r\nContent-Length: {len(BODY)}\r\n".encode()
SLOW = {
    "nothing": b"",
    "half a head": HEAD[:30],
    "a head without its end": HEAD,
    "half a body": HEAD + b"\r\n" + BODY[: len(BODY) // 2],
    "all, and they do not read": HEAD + b"\r\n" + BODY,
}


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalEngine]:
    save_checkpoint(tmp_path / "tiny")
    engine = LocalEngine(tmp_path, CPU)
    yield engine
    engine.scheduler.close()


@contextmanager
def connected(port: int, *sent: bytes, half_closed: bool = False) -> Iterator[list[socket.socket]]:
    """Callers who send this and then no more."""
    with ExitStack() as stay:
        callers = []
        for data in sent:
            callers.append(stay.enter_context(socket.create_connection(("127.0.0.1", port), 30)))
            callers[-1].sendall(data)
            if half_closed:
                callers[-1].shutdown(socket.SHUT_WR)
        yield callers


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_host_answers_while_slow_callers_hang_on(local: LocalEngine, half_closed: bool) -> None:
    with (
        listening(application(local, AccessLimits())) as port,
        connected(port, *list(SLOW.values()) * OF_EACH, half_closed=half_closed),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG_S) as client,
    ):
        for word in ("w6", "w7", "w8"):
            asked = replace(REQUEST, source=word)
            reply = client.post("/v1/run", json=asked.to_json())
            assert_same(serialization.from_bytes(reply.content), local.ask(Run(asked)))
    assert local.ask(Gauges()) == {"waiting": 0, "running": 0, "device_bytes": 0}


def test_who_does_not_finish_a_question_is_let_go(local: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "BODY_SECONDS", 0.05)
    with listening(application(local, AccessLimits())) as port, connected(port, SLOW["half a body"]) as callers:
        assert callers[0].recv(99).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("announced", [True, False])
@pytest.mark.parametrize("most", [0, 2**20])
def test_of_two_gigabytes_a_host_reads_next_to_nothing(local: LocalEngine, announced: bool, most: int) -> None:
    before = psutil.Process().memory_info().rss
    with listening(application(local, AccessLimits(uploads=most))) as port:
        status, sent = send_too_much(port, "POST /v1/receive?name=big HTTP/1.1", announced)
    assert status == (413 if most else 403)
    assert sent < 48 * 2**20, "what fits into buffers, and not what was announced"
    assert psutil.Process().memory_info().rss - before < 64 * 2**20


def send_too_much(port: int, line: str, announced: bool, *headers: str) -> tuple[int, int]:
    """Sends up to two gigabytes until nobody takes more; the status of the answer, and how many bytes were taken."""
    length = f"Content-Length: {TWO_GIGABYTES}" if announced else "Transfer-Encoding: chunked"
    piece = bytes(2**16) if announced else b"10000\r\n" + bytes(2**16) + b"\r\n"
    sent, reply = 0, b""
    with socket.create_connection(("127.0.0.1", port), 30) as caller:
        caller.sendall("\r\n".join([line, "Host: x", length, *headers, "", ""]).encode())
        caller.settimeout(1)
        try:
            while sent < TWO_GIGABYTES:
                sent += caller.send(piece)
        except OSError:  # the buffers are full, or the other side has hung up
            pass
        caller.settimeout(30)
        with suppress(OSError):
            reply = caller.recv(99)
    return int(reply.split()[1]) if reply else 0, sent


def test_the_app_draws_for_others_while_slow_visitors_hang_on(app: Served) -> None:
    stream = b"GET /_stcore/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

    async def visit() -> None:
        for word in ("w6", "w7"):
            async with visiting(app.address, model="first") as visitor:
                await visitor.join()
                await visitor.type(word)
                assert visitor.tokens("source")[1:-1] == [word]

    slow = [b"", b"GET / HT", stream, b"PUT /_stcore/upload_file/x/y HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nx"]
    for half_closed in (False, True):
        with connected(port_of(app), *slow * OF_EACH, half_closed=half_closed):
            asyncio.run(visit())


def test_of_two_gigabytes_an_app_for_strangers_reads_next_to_nothing(app: Served) -> None:
    process = psutil.Process(app.pid)
    before = process.memory_info().rss
    for announced in (True, False):
        status, sent = send_too_much(port_of(app), "PUT /_stcore/upload_file/x/y HTTP/1.1", announced)
        assert status == 403
        assert sent < 48 * 2**20
    assert process.memory_info().rss - before < 64 * 2**20
    assert httpx.put(f"{app.address}_stcore/upload_file/x/y", content=b"x").text == "This server takes no files."


def test_a_file_that_the_app_refuses_after_a_part_is_not_read_to_its_end() -> None:
    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await PlainTextResponse("File too large", 413)(scope, receive, send)

    with listening(EveryAnswer(refusing)) as port:
        for announced in (True, False):
            status, sent = send_too_much(port, "PUT /_stcore/upload_file/x/y HTTP/1.1", announced)
            assert (status, sent < 48 * 2**20) == (413, True)
        assert "connection" not in httpx.get(f"http://127.0.0.1:{port}/other").headers


def port_of(app: Served) -> int:
    return urlparse(app.address).port or 0
