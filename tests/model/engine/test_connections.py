"""Connections that ask nothing, against a real server with both of uvicorn's parsers."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from model.engine.guards import connections
from model.engine.guards.connections import MOST_HEADER_BYTES, guard
from tests.patience import HANG_S

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Reads the body and answers with its length; a socket is accepted and answered after a while."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    count, more = 0, True
    while more:
        message = await receive()
        count, more = count + len(message.get("body", b"")), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"8")]})
    await send({"type": "http.response.body", "body": b"%8d" % count})


@pytest.fixture(params=[H11Protocol, HttpToolsProtocol], ids=["h11", "httptools"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        guarded = guard(type("Guarded", (request.param,), {}))  # the class of other tests stays as it is
        config = uvicorn.Config(hello, log_level="critical", lifespan="off", loop="asyncio", http=guarded)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.005)
        yield int(bound.getsockname()[1])
        server.should_exit = server.force_exit = True
        thread.join(HANG_S)


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as connection:
        yield connection


def answer(connection: socket.socket, sent: bytes) -> bytes:
    """The answer to what is sent; empty: the connection was closed."""
    try:
        connection.sendall(sent)
        received = b""
        while not received.partition(b"\r\n\r\n")[2] and (piece := connection.recv(4096)):
            received += piece
        return received
    except (ConnectionResetError, BrokenPipeError):
        return b""


def test_a_header_without_an_end_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        received = answer(connection, b"y" * (MOST_HEADER_BYTES + 2**18))
        assert received == b"" or b" 431 " in received or b" 400 " in received
    with connected(port) as connection:
        assert b"200 OK" in answer(connection, REQUEST), "others are served"


def test_a_large_body_is_no_header(port: int) -> None:
    length = 4 * MOST_HEADER_BYTES
    with connected(port) as connection:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % length
        assert b"%8d" % length in answer(connection, head + b"z" * length)
        assert b"200 OK" in answer(connection, REQUEST), "and the connection goes on"


def test_who_asks_nothing_is_let_go(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    with connected(port) as silent, connected(port) as slow:
        slow.sendall(b"GET / HT")
        assert silent.recv(1) == b""
        assert slow.recv(1) in (b"", b"H"), "closed, perhaps with an answer"


def test_many_that_ask_nothing_do_not_keep_others_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 5)
    with ExitStack() as held:
        crowd = [held.enter_context(connected(port)) for _ in range(12)]
        assert crowd[0].recv(1) == b"", "the oldest make room"
        assert b"200 OK" in answer(held.enter_context(connected(port)), REQUEST)


def test_a_socket_of_a_page_stays(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from websockets.sync.client import connect

    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.2)
    with connect(f"ws://127.0.0.1:{port}/") as page, connected(port) as silent:
        assert silent.recv(1) == b"", "the time is over"
        page.send("still here")
        assert page.recv() == "still here"
