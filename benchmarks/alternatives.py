"""Alternatives that draw the same attention: our component, and pages that other libraries make of the weights."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from benchmarks import made_up, peers, runs
from benchmarks.browsers import Browser
from benchmarks.servers import HERE
from benchmarks.visiting import ATLAS, visit
from model.inference import inputs
from model.trace.types import Trace
from viz.canvas import standalone
from viz.canvas.wire.transport import PART_CACHE

OURS, WRITTEN, AGAIN = "ours", "ours, of weights", "ours, drawn before"
PAGE, PAGE_WRITTEN = "ours, as a page of its own", "ours, as a page of its own, of weights"
EMPTY, BARE, SUBPLOTS = "an empty Streamlit app", "a bare canvas page", "plotly, a subplot a head"


@dataclass(frozen=True)
class Case:
    """The size of the attention to draw; `valid` as in `made_up.weights`."""

    layers: int
    heads: int
    tokens: int
    valid: int | None = None

    def __str__(self) -> str:
        """The case as layers × heads × tokens."""
        return f"{self.layers} × {self.heads} × {self.tokens:,}"

    @property
    def cells(self) -> int:
        """Number of weights in all maps."""
        return self.layers * self.heads * self.tokens**2


@lru_cache(1)
def weights(case: Case) -> made_up.Array:
    """The case's weights, [layer · head, query, key]; those of the last case are cached."""
    return made_up.weights(case.layers, case.heads, case.tokens, case.valid)


@dataclass(frozen=True)
class Shown:
    """The measurements of one turn.

    Attributes:
        python: seconds to make the page; 0 where a server makes it on request.
        browser: seconds in the browser's tab.
        megabytes: size of the drawing; ours without the scripts of Streamlit.
    """

    python: float
    browser: float
    megabytes: float

    @property
    def seconds(self) -> float:
        """Seconds in Python and in the browser together."""
        return self.python + self.browser


Turn = Callable[[Browser], Shown]


_NEW = count()


def ours(addresses: Mapping[tuple[Case, str], str], case: Case) -> dict[str, Turn]:
    """Turns of our component: a new run of the case, and a run that was drawn before.

    Args:
        addresses: addresses of the case's runs, by OURS and WRITTEN; each has been visited once.
    """
    found = {name: addresses[case, name] for name in (OURS, WRITTEN) if (case, name) in addresses}
    new = {name: partial(_new_run, address) for name, address in found.items()}
    return {**new, AGAIN: partial(streamlit, found[OURS], ATLAS)}


def recorded(cases: Iterable[Case]) -> Iterator[tuple[tuple[Case, str], Trace]]:
    """The runs of the cases as the app records them; where it records queries and keys, also a run with weights."""
    for case in cases:
        make = partial(runs.encoder, case.layers, case.heads, case.tokens, case.valid)
        yield (case, OURS), make()
        if case.tokens > inputs.LONG:
            yield (case, WRITTEN), make(written=True)


def streamlit(address: str, there: str, browser: Browser) -> Shown:
    """Visits a page of a Streamlit server that is already running."""
    seen = visit(browser, address, there)
    return Shown(0, seen.seconds, seen.data / 1e6)


def _new_run(address: str, browser: Browser) -> Shown:
    return streamlit(f"{address}&run={next(_NEW)}", ATLAS, browser)


def others(case: Case, folder: Path, address: str) -> dict[str, Turn]:
    """Turns of the other alternatives, by name; the first is our own standalone page."""
    own = {PAGE: partial(our_page, case, None, folder, address)}
    if case.tokens > inputs.LONG:
        own[PAGE_WRITTEN] = partial(our_page, case, True, folder, address)
    pages = {name: partial(_peer, peer, case, folder, address) for peer, name in peers.NAMES.items()}
    return {**own, BARE: partial(bare_canvas, case, folder, address), SUBPLOTS: partial(subplots, case, folder, address), **pages}


@lru_cache(4)  # as recorded, with weights, and the small run before each
def _run(case: Case, written: bool | None) -> Trace:
    return runs.encoder(case.layers, case.heads, case.tokens, case.valid, written)


def our_page(case: Case, written: bool | None, folder: Path, address: str, browser: Browser) -> Shown:
    """Our standalone page, made from a run in memory that was not drawn before.

    Args:
        written: as in `runs.encoder`.
    """
    once, trace = (replace(_run(one, written), request={"run": next(_NEW)}) for one in (Case(1, 1, 2), case))
    _page(once)  # loads files into memory, so that loading does not count
    PART_CACHE.clear()
    page = folder / "ours.html"
    began = time.perf_counter()
    page.write_bytes(_page(trace))
    python = time.perf_counter() - began
    return Shown(python, visit(browser, f"{address}/{page.name}", ATLAS).seconds, page.stat().st_size / 1e6)


def _page(trace: Trace) -> bytes:
    return standalone.page(trace, next(iter(trace.attention)), 0, -1)


def bare_canvas(case: Case, folder: Path, address: str, browser: Browser) -> Shown:
    """The smallest alternative: round(255 · sqrt(w)) of every weight, painted by a page of a few lines."""
    made = weights(case)
    began = time.perf_counter()
    blob = np.rint(255 * np.sqrt(made)).astype(np.uint8).tobytes()
    (folder / "weights.bin").write_bytes(blob)
    python = time.perf_counter() - began
    (folder / "bare_canvas.html").write_bytes((HERE / "bare_canvas.html").read_bytes())
    seen = visit(browser, f"{address}/bare_canvas.html#{case.heads},{case.tokens}", "canvas")
    return Shown(python, seen.seconds, len(blob) / 1e6)


def subplots(case: Case, folder: Path, address: str, browser: Browser) -> Shown:
    """A page of Plotly with one heatmap for each head, in float32."""
    made = weights(case)
    page = folder / "subplots.html"
    began = time.perf_counter()
    figure = make_subplots(case.layers, case.heads)
    for index, one in enumerate(made):
        figure.add_trace(go.Heatmap(z=one, showscale=False), index // case.heads + 1, index % case.heads + 1)
    figure.write_html(page, include_plotlyjs=True)
    python = time.perf_counter() - began
    return Shown(python, visit(browser, f"{address}/{page.name}", ".heatmaplayer").seconds, page.stat().st_size / 1e6)


def _peer(peer: str, case: Case, folder: Path, address: str, browser: Browser) -> Shown:
    page = peers.make(peer, (case.layers, case.heads, case.tokens, case.valid or case.tokens), folder / f"{peer}.html")
    size = page.html.stat().st_size / 1e6
    try:
        return Shown(page.seconds, visit(browser, f"{address}/{page.html.name}").seconds, size)
    finally:
        page.html.unlink()
