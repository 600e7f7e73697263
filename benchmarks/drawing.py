"""All heads at a glance: from the weights in memory to the painted picture in a fresh tab, ours beside what others make of them."""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from playwright.sync_api import Browser, Error, sync_playwright
from plotly.subplots import make_subplots

from benchmarks import peers
from benchmarks.enter import FLAGS, chromium
from benchmarks.made_up import weights
from benchmarks.timing import Row

HERE = Path(__file__).parent
PAINTED = (HERE / "painted.js").read_text(encoding="utf-8")

CASES = ((3, 8, 30), (12, 12, 128), (12, 12, 512), (6, 8, 1000), (1, 1, 4096))
"""Layers, heads and tokens."""

ONCE = 10.0
"""Seconds above which a turn is not repeated."""


@dataclass(frozen=True)
class Shown:
    """One turn.

    Attributes:
        python: seconds from the weights in memory to what is served.
        browser: seconds from the navigation to the last change of the page.
        megabytes: what the page is made of, its scripts left out.
    """

    python: float
    browser: float
    megabytes: float

    @property
    def seconds(self) -> float:
        """Both together."""
        return self.python + self.browser


Turn = Callable[[Browser], Shown]


def measure(repeats: int) -> Iterator[Row]:
    """Every alternative on every case, in turns; what takes long, once. The first alternative, ours, is the baseline of ratios.

    Raises:
        NoBrowser: there is no Chromium here.
        NoPeers: the peers cannot be installed here.
    """
    peers.install()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder, serving_files(Path(folder)) as address:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            for layers, heads, tokens in CASES:
                case = f"{layers} × {heads} × {tokens}"
                turns = _alternatives(layers, heads, tokens, Path(folder), address)
                yield from _rows(case, _in_turns(turns, browser, repeats))
        finally:
            browser.close()


def _in_turns(turns: dict[str, Turn], browser: Browser, repeats: int) -> dict[str, list[Shown] | str]:
    """What each alternative showed, turn by turn, or why it could not."""
    shown: dict[str, list[Shown] | str] = {name: [] for name in turns}
    for turn in range(repeats):
        for name, once in turns.items():
            before = shown[name]
            if isinstance(before, str) or (turn and before[0].seconds > ONCE):
                continue
            try:
                before.append(once(browser))
            except peers.TooMuch as error:
                shown[name] = str(error)
    return shown


def _rows(case: str, shown: dict[str, list[Shown] | str]) -> Iterator[Row]:
    ours = next(iter(shown.values()))
    for name, turns in shown.items():
        if isinstance(turns, str):
            yield Row(f"{case}: {name}", float("nan"), note=turns)
            continue
        milliseconds = 1000 * statistics.median(turn.seconds for turn in turns)
        ratio = (
            None if turns is ours or isinstance(ours, str) else milliseconds / (1000 * statistics.median(t.seconds for t in ours))
        )
        python, megabytes = statistics.median(t.python for t in turns), statistics.median(t.megabytes for t in turns)
        yield Row(f"{case}: {name}", milliseconds, ratio, f"{megabytes:.1f} MB, {1000 * python:.0f} ms of it in Python")


# --- The alternatives ---------------------------------------------------------------------------------------------------


def _alternatives(layers: int, heads: int, tokens: int, folder: Path, address: str) -> dict[str, Turn]:
    """What draws such attention, by name."""
    bare = partial(_bare_canvas, layers * heads, heads, tokens, folder, address)
    subplots = partial(_subplots, layers * heads, heads, tokens, folder, address)
    others = {name: partial(_peer, peer, layers, heads, tokens, folder, address) for peer, name in peers.NAMES.items()}
    return {"a bare canvas page": bare, "plotly, a subplot a head": subplots, **others}


def _bare_canvas(maps: int, heads: int, tokens: int, folder: Path, address: str, browser: Browser) -> Shown:
    """round(255 · sqrt(w)) of every head and a page of a few lines."""
    made = weights(maps // heads, heads, tokens)
    began = time.perf_counter()
    blob = np.rint(255 * np.sqrt(made)).astype(np.uint8).tobytes()
    (folder / "weights.bin").write_bytes(blob)
    python = time.perf_counter() - began
    (folder / "bare_canvas.html").write_bytes((HERE / "bare_canvas.html").read_bytes())
    return Shown(python, _open(browser, f"{address}/bare_canvas.html#{heads},{tokens}"), len(blob) / 1e6)


def _subplots(maps: int, heads: int, tokens: int, folder: Path, address: str, browser: Browser) -> Shown:
    """A heatmap a head, float32, as `plotly` writes a page."""
    made = weights(maps // heads, heads, tokens)
    page = folder / "subplots.html"
    began = time.perf_counter()
    figure = make_subplots(maps // heads, heads)
    for index, one in enumerate(made):
        figure.add_trace(go.Heatmap(z=one, showscale=False), index // heads + 1, index % heads + 1)
    figure.write_html(page, include_plotlyjs=True)
    python = time.perf_counter() - began
    return Shown(python, _open(browser, f"{address}/{page.name}"), page.stat().st_size / 1e6)


def _peer(peer: str, layers: int, heads: int, tokens: int, folder: Path, address: str, browser: Browser) -> Shown:
    page = peers.make(peer, layers, heads, tokens, folder / f"{peer}.html")
    size = page.html.stat().st_size / 1e6
    seconds = _open(browser, f"{address}/{page.html.name}")
    page.html.unlink()
    return Shown(page.seconds, seconds, size)


# --- The browser --------------------------------------------------------------------------------------------------------


def _open(browser: Browser, address: str) -> float:
    """Seconds from the navigation of a fresh tab to the frame after its last change.

    Raises:
        TooMuch: it takes more than a peer may, or the tab gives up.
    """
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.add_init_script(PAINTED)
    peers.answer_for_the_network(page)
    try:
        page.goto(address, wait_until="commit", timeout=1000 * peers.SECONDS)
        page.wait_for_function("window.painted !== null", timeout=1000 * peers.SECONDS, polling=250)
        return float(page.evaluate("window.painted")) / 1000
    except Error as error:
        raise peers.TooMuch(f"> {peers.SECONDS} s" if "Timeout" in error.message else "the tab gave up") from error
    finally:
        context.close()


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
