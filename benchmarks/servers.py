"""Servers for the benchmarks: Streamlit scripts and engine hosts, each in a process of its own, and static files."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

from benchmarks import runs
from model.trace.types import Trace

K = TypeVar("K")

HERE = Path(__file__).parent
ROOT = HERE.parent

START_SECONDS = 120


@dataclass(frozen=True)
class Served:
    """A running server: its address and its process id."""

    address: str
    pid: int


@contextmanager
def serving(script: Path, *arguments: str | Path, **environment: str) -> Iterator[Served]:
    """Starts a Streamlit server, and stops it at the end.

    Args:
        arguments: command-line arguments of the script.
        environment: environment variables added to ours.
    """
    port = _free_port()
    options = ["--server.headless=true", f"--server.port={port}", "--", *map(str, arguments)]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
    variables = os.environ | environment
    server = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield Served(f"http://127.0.0.1:{port}/", server.pid)
    finally:
        server.terminate()
        server.wait()


class NoProxy(Exception):
    """HAProxy is not installed here."""


@contextmanager
def serving_processes(**environment: str) -> Iterator[Served]:
    """Starts two processes of the app behind the proxy of compose.yaml, and stops them at the end. The process id is the proxy's.

    Args:
        environment: environment variables added to ours.

    Raises:
        NoProxy: there is no HAProxy.
    """
    if (haproxy := shutil.which("haproxy")) is None:
        raise NoProxy("Two processes were not measured: they need HAProxy (apt-get install haproxy).")
    with ExitStack() as stay, tempfile.TemporaryDirectory() as room:
        both = [environment | {"HEADLIGHT_PROCESS": name, "HEADLIGHT_CLASSES": room} for name in "12"]
        pages = [stay.enter_context(serving(ROOT / "app.py", **one)) for one in both]
        port = _free_port()
        told = {f"PAGES_{place}": one.address.removeprefix("http://").rstrip("/") for place, one in enumerate(pages, 1)}
        command = [haproxy, "-db", "-f", str(ROOT / "haproxy.cfg")]
        variables = os.environ | told | {"ADDRESS": "127.0.0.1", "PORT": str(port)}
        proxy = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", proxy)
            yield Served(f"http://127.0.0.1:{port}/", proxy.pid)
        finally:
            proxy.terminate()
            proxy.wait()


@contextmanager
def serving_engine(folder: Path, **environment: str) -> Iterator[Served]:
    """Starts an engine server with the checkpoints in `folder`, and stops it at the end.

    Args:
        environment: environment variables added to ours.
    """
    port = _free_port()
    variables = os.environ | {"HEADLIGHT_CHECKPOINTS": str(folder)} | environment
    command = [sys.executable, "-m", "model", "serve", f"--port={port}"]
    server = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/healthz", server)
        yield Served(f"http://127.0.0.1:{port}/", server.pid)
    finally:
        server.terminate()
        server.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait(url: str, server: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            if server.poll() is not None:
                raise RuntimeError(f"the server ended with status {server.returncode}") from None
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(url)


@contextmanager
def serving_atlas(traces: Iterable[tuple[K, Trace]]) -> Iterator[tuple[Served, dict[K, str]]]:
    """Starts a server of our component only; also returns the address of each trace."""
    with tempfile.TemporaryDirectory() as room:
        files = {key: runs.write(trace, Path(room) / f"{place}.trace.safetensors") for place, (key, trace) in enumerate(traces)}
        with serving(HERE / "atlas_app.py", *files.values()) as served:
            yield served, {key: f"{served.address}?file={place}" for place, key in enumerate(files)}


@contextmanager
def serving_files(folder: Path) -> Iterator[str]:
    """Serves the files of a folder; returns the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
