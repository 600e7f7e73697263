"""A fresh tab of a real Chromium: when it stood painted, and what it was made of. And the servers of what it visits."""

import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

from playwright.sync_api import Browser, Error, Page, WebSocket, sync_playwright

from benchmarks import peers, runs
from benchmarks.enter import FLAGS, ROOT, Served, chromium
from model.trace import Trace

K = TypeVar("K")

HERE = Path(__file__).parent
PAINTED = (HERE / "painted.js").read_text(encoding="utf-8")

ATLAS = ".hl[data-drawing=atlas][data-layout]"
"""What is there once our drawing is."""

START_SECONDS = 60

_SIZES = """() => {
    const sum = (entries) => entries.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0);
    const fetched = performance.getEntriesByType("resource");
    return [painted, arrived, sum(fetched.filter(({ name }) => name.includes("/headlight/"))), sum(fetched)];
}"""


@dataclass(frozen=True)
class Visit:
    """One tab.

    Attributes:
        seconds: from the navigation to the frame after the last change.
        drawing: the part of it from the last byte on.
        data: bytes of the drawing: what came by our route and over the socket.
        others: bytes of everything else that was fetched, the page itself left out.
    """

    seconds: float
    drawing: float
    data: int
    others: int


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(browser: Browser, *scripts: str) -> Iterator[Page]:
    """A fresh tab that has nothing in its cache and reaches nothing but this machine."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    try:
        page = context.new_page()
        page.set_default_timeout(1000 * peers.SECONDS)
        for script in (PAINTED, *scripts):
            page.add_init_script(script)
        peers.answer_for_the_network(page)
        yield page
    finally:
        context.close()


def heard(page: Page) -> Callable[[], int]:
    """Counts the bytes that come over the sockets that a page opens from now on."""
    sizes: list[int] = []

    def listen(opened: WebSocket) -> None:
        opened.on("framereceived", lambda payload: sizes.append(len(payload)))

    page.on("websocket", listen)
    return lambda: sum(sizes)


def visit(browser: Browser, address: str, there: str = "body") -> Visit:
    """Opens a page in a fresh tab, until `there` is there and nothing changes any more.

    Raises:
        TooMuch: it takes more than a peer may, or the tab gives up.
    """
    with tab(browser) as page:
        socket_bytes = heard(page)
        try:
            page.goto(address, wait_until="commit")
            page.wait_for_selector(there, state="attached")
            rest(page)
            painted, arrived, ours, fetched = page.evaluate(_SIZES)
        except Error as error:
            raise peers.TooMuch(f"> {peers.SECONDS} s" if "Timeout" in error.message else "the tab gave up") from error
        return Visit(painted / 1000, (painted - arrived) / 1000, ours + socket_bytes(), fetched - ours)


def rest(page: Page) -> None:
    """Waits until the page has not changed for a second."""
    page.wait_for_function("window.painted !== null", polling=100)


@contextmanager
def serving(script: Path, *arguments: str | Path) -> Iterator[Served]:
    """A Streamlit server of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--server.headless=true", f"--server.port={port}", "--", *map(str, arguments)]
    command = [sys.executable, "-m", "streamlit", "run", str(script), *options]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield Served(f"http://127.0.0.1:{port}/", server.pid)
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serving_atlas(traces: Iterable[tuple[K, Trace]]) -> Iterator[tuple[Served, dict[K, str]]]:
    """A server of our component alone, and where it shows each trace."""
    with tempfile.TemporaryDirectory() as room:
        files = {key: runs.write(trace, Path(room) / f"{place}.trace.safetensors") for place, (key, trace) in enumerate(traces)}
        with serving(HERE / "atlas_app.py", *files.values()) as served:
            yield served, {key: f"{served.address}?file={place}" for place, key in enumerate(files)}


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
def serving_files(folder: Path) -> Iterator[str]:
    """The address of a server of a folder's files."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
