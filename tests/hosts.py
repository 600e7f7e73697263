"""Hosts of an engine for tests: in this process without a network, and real ones on loopback."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from model.engine.api import Healthy, SharedEngine
from model.engine.guards.access import AccessLimits
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.server import application
from model.known_models import FOLDER
from tests.browser.servers import free_port
from tests.patience import HANG_S

ROOT = Path(__file__).parents[1]


class Loopback(httpx.BaseTransport):
    """Hands requests to an ASGI application in this process."""

    def __init__(self, app: Any) -> None:
        self._transport = httpx.ASGITransport(app, raise_app_exceptions=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        async def handled() -> httpx.Response:
            again = httpx.Request(request.method, request.url, headers=request.headers, content=request.read())
            response = await self._transport.handle_async_request(again)
            return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

        return asyncio.run(handled())


def behind(engine: SharedEngine, access: AccessLimits | None = None, token: str = "") -> RemoteEngine:
    """A client of an engine behind HTTP, without a network."""
    return RemoteEngine("http://here", token, Loopback(application(engine, access or AccessLimits())))


@contextmanager
def served(engine: SharedEngine, token: str = "") -> Iterator[RemoteEngine]:
    """A client of an engine that a thread of this process serves on loopback."""
    address = listening(application(engine, AccessLimits(token)))
    with address as port, closing(RemoteEngine(f"http://127.0.0.1:{port}", token)) as remote:
        yield remote


def start(folder: Path, port: int, *options: str, **environment: str) -> subprocess.Popen[bytes]:
    """`python -m model serve` on loopback, ready to be asked."""
    settings = {"HEADLIGHT_CHECKPOINTS": str(folder), "HEADLIGHT_DEVICE": "cpu", "HEADLIGHT_THREADS": "1"}
    settings |= {FOLDER: os.environ[FOLDER], **environment}  # no models of whoever runs the tests
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HEADLIGHT_")}
    command = [sys.executable, "-m", "model", "serve", "--port", str(port), *options]
    process = subprocess.Popen(command, cwd=ROOT, env=clean | settings, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + HANG_S
    with closing(RemoteEngine(f"http://127.0.0.1:{port}")) as engine:
        while not engine.ask(Healthy()):
            assert process.poll() is None, "the host ended before it was ready"
            assert time.monotonic() < until, "the host was not ready in time"
            time.sleep(0.1)
    return process


@contextmanager
def host(folder: Path, *options: str, **environment: str) -> Iterator[str]:
    """The address of a host in a process of its own."""
    port = free_port()
    process = start(folder, port, *options, **environment)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(HANG_S)


@contextmanager
def listening(app: Any, **settings: Any) -> Iterator[int]:
    """The port of an ASGI application that a thread of this process serves on loopback."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", loop="asyncio", http="h11", **settings))
        thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        try:
            yield int(bound.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            thread.join(HANG_S)
