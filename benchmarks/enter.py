"""From Enter to the painted picture: the app in a real Chromium, split into model, server and browser."""

import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.timing import Row, ratio

ROOT = Path(__file__).parents[1]
ONE_LINE = Path(__file__).parent / "one_line.py"
WATCH = (Path(__file__).parent / "watch.js").read_text(encoding="utf-8")

SENTENCE = "zwei junge hunde spielen mit einem ball im schnee und eine frau mit einem roten hut sitzt auf einer bank"

STRIPS = ".hl[data-drawing=strips]"

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class NoBrowser(Exception):
    """There is no Chromium on this machine."""


def measure(repeats: int) -> Iterator[Row]:
    """Sentences of 12 words that nobody has asked for before, warm; and in turns with them the app of one text line.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with sync_playwright() as playwright, serving(ROOT / "app.py") as app, serving(ONE_LINE) as line:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield from _rows(_turns(browser, app.address, line.address, repeats))
        finally:
            browser.close()


def chromium() -> str:
    """The path of a Chromium or Chrome.

    Raises:
        NoBrowser: there is none.
    """
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
    if found := next(filter(None, map(shutil.which, names)), None):
        return found
    raise NoBrowser(
        "Enter → painted was not measured: no Chromium or Chrome was found; install one, for instance `apt install chromium`."
    )


@dataclass(frozen=True)
class Served:
    """A Streamlit server: where it answers, and its process."""

    address: str
    pid: int


@contextmanager
def serving(script: Path, **environment: str) -> Iterator[Served]:
    """A Streamlit server of its own.

    Args:
        environment: variables that it has besides ours.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.headless=true", f"--server.port={port}"]
    variables = os.environ | environment
    server = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait(f"http://127.0.0.1:{port}/_stcore/health", server)
        yield Served(f"http://127.0.0.1:{port}/", server.pid)
    finally:
        server.terminate()
        server.wait()


def _wait(url: str, server: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except OSError:
            if server.poll() is not None:
                raise RuntimeError(f"the server ended with status {server.returncode}") from None
            time.sleep(0.1)
        else:
            return
    raise TimeoutError(url)


def _turns(browser: Browser, app: str, line: str, repeats: int) -> list[dict[str, float]]:
    """Milliseconds of each turn; the first two, which warm up, left out."""
    pages = [browser.new_page(viewport={"width": 1440, "height": 900}) for _ in range(2)]
    for page, address in zip(pages, (app, line), strict=True):
        page.add_init_script(WATCH)
        page.goto(address)
        page.wait_for_selector("[data-testid=stTextInput] input", timeout=60_000)
    pages[0].wait_for_function(f"headlightWatch.text('{STRIPS}') !== ''", timeout=60_000)
    return [{**_app(pages[0], turn), "line": _line(pages[1], turn)} for turn in range(repeats + 2)][2:]


def _app(page: Page, turn: int) -> dict[str, float]:
    """One new sentence of 12 words: when the answer came, when it was painted, and what the model took of it."""
    words = SENTENCE.split()
    rotated = words[turn % len(words) :] + words[: turn % len(words)]
    before = json.dumps(page.evaluate(f"headlightWatch.text('{STRIPS}')"))
    spans: dict[str, float] = _enter(page, " ".join(rotated[:12]), f"headlightWatch.text('{STRIPS}') !== {before}")
    shown = re.search(r"([\d.,]+) ms", page.inner_text("[data-testid=stSidebar]"))
    return {**spans, "model": float(shown[1].replace(",", "")) if shown else 0.0}


def _line(page: Page, turn: int) -> float:
    text = "x" * (turn + 1)
    return _enter(page, text, f"headlightWatch.text('#echo') === '{len(text)}'")["painted"]


def _enter(page: Page, text: str, painted: str) -> dict[str, float]:
    """Types `text` at once, presses Enter and waits until `painted` (JavaScript) holds in a painted frame."""
    field = page.locator("[data-testid=stTextInput] input").last
    field.fill(text)
    page.evaluate(f"headlightWatch.start(() => {painted})")
    field.press("Enter")
    page.wait_for_function("headlightWatch.spans !== null", timeout=60_000)
    spans: dict[str, float] = page.evaluate("headlightWatch.spans")
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
    return spans


def _rows(turns: list[dict[str, float]]) -> Iterator[Row]:
    def median(name: str) -> float:
        return statistics.median(turn[name] for turn in turns)

    own = [turn["painted"] - turn["model"] for turn in turns]
    line = [turn["line"] for turn in turns]
    yield Row("an app of one text line", median("line"), note="Enter → painted")
    yield Row("Enter → painted, 12 words", median("painted"), ratio([turn["painted"] for turn in turns], line), "of one text line")
    yield Row("… of it the model", median("model"))
    yield Row("… of it the server", statistics.median(t["answered"] - t["model"] for t in turns), note="last byte, less the model")
    yield Row("… of it the browser", statistics.median(t["painted"] - t["answered"] for t in turns), note="from the last byte")
    yield Row("Enter → painted, less the model", statistics.median(own), ratio(own, line), "of one text line")
