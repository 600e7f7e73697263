"""Growth of bytes and times, with the tokens of one head and with the number of heads of 64 tokens, as exponents of a power law."""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import alternatives, runs
from benchmarks.alternatives import BARE, OURS, SUBPLOTS, Case
from benchmarks.browsers import Browser, browsing
from benchmarks.servers import serving_atlas, serving_files
from benchmarks.timing import Row
from benchmarks.visiting import ATLAS, visit
from model.trace.types import Trace
from viz.canvas.scenes import attention
from viz.canvas.wire.transport import PART_CACHE

TOKENS = tuple(Case(1, 1, 2**power) for power in range(5, 13))
HEADS = tuple(Case(2**power, 2**power, 64) for power in range(6))
CURVES = {"tokens": TOKENS, "heads": HEADS}

MOST_SUBPLOTS = 256
"""Most heads for which a page of subplots is made; with more heads it takes minutes."""

FITTED = 4
"""Number of sizes at each end of a curve to which a power law is fitted: the two ends may grow differently."""


@dataclass(frozen=True)
class Point:
    """The measurements of one size: `size` in tokens or heads, `megabytes` of the drawing, `server` and `browser` in seconds.

    For ours, `server` is Python's time for a run that was not drawn before, and `browser` the time from the last byte to the
    picture; for others, they are the time to make a page, and the time of the tab.
    """

    size: int
    megabytes: float
    server: float
    browser: float


MEASURES = ("megabytes", "server", "browser")


def measure(repeats: int) -> Iterator[Row]:
    """Rows for each size of each alternative, and rows with the exponents at each end of a curve. A point is a median of up to 3.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    turns = min(repeats, 3)
    with browsing() as browser, tempfile.TemporaryDirectory() as room, serving_files(Path(room)) as files:
        for of, cases in CURVES.items():
            yield from rows(OURS, of, _ours(of, cases, browser, turns))
            yield from rows(BARE, of, _others(of, cases, alternatives.bare_canvas, Path(room), files, browser, turns))
            few = [case for case in cases if case.layers * case.heads <= MOST_SUBPLOTS]
            yield from rows(SUBPLOTS, of, _others(of, few, alternatives.subplots, Path(room), files, browser, 1))


def rows(name: str, of: str, points: Sequence[Point]) -> Iterator[Row]:
    """The rows of a curve in the table."""
    for point in points:
        note = f"{point.megabytes:.3f} MB, server {1000 * point.server:.0f} ms, browser {1000 * point.browser:.0f} ms"
        total = 1000 * (point.server + point.browser)
        yield Row(f"{point.size:,} {of}: {name}", total, note=note, megabytes=point.megabytes)
    for ends in dict.fromkeys((tuple(points[:FITTED]), tuple(points[-FITTED:]))):
        found = ", ".join(f"{measure} {power(ends, measure):.2f}" for measure in MEASURES)
        yield Row(f"{name}: powers of {of}, {ends[0].size:,} … {ends[-1].size:,}", float("nan"), note=found)


def power(points: Sequence[Point], measure: str) -> float:
    """The exponent by which a measure grows with size: the slope of a line fitted to the logarithms."""
    sizes = np.log([point.size for point in points])
    return float(np.polyfit(sizes, np.log([getattr(point, measure) for point in points]), 1)[0])


def _size(of: str, case: Case) -> int:
    return case.tokens if of == "tokens" else case.layers * case.heads


def _ours(of: str, cases: Sequence[Case], browser: Browser, turns: int) -> list[Point]:
    points = []
    servers: dict[Case, float] = {}

    def traces() -> Iterator[tuple[Case, Trace]]:
        for case in cases:
            trace = runs.encoder(case.layers, case.heads, case.tokens)
            servers[case] = statistics.median(_making(trace) for _ in range(turns))
            yield case, trace

    with serving_atlas(traces()) as (_, addresses):
        for case, address in addresses.items():
            seen = [visit(browser, address, ATLAS) for _ in range(turns)]
            browsers, data = (statistics.median(values) for values in ([s.drawing for s in seen], [s.data for s in seen]))
            points.append(Point(_size(of, case), data / 1e6, servers[case], browsers))
    return points


def _making(trace: Trace) -> float:
    """Seconds that Python takes to make everything that a browser is sent of a run that was not drawn before."""
    PART_CACHE.clear()
    began = time.perf_counter()
    attention.atlas(trace, next(iter(trace.attention)), 0, -1)
    return time.perf_counter() - began


Making = Callable[[Case, Path, str, Browser], alternatives.Shown]


def _others(of: str, cases: Sequence[Case], make: Making, folder: Path, address: str, browser: Browser, turns: int) -> list[Point]:
    points = []
    for case in cases:
        shown = [make(case, folder, address, browser) for _ in range(turns)]
        python, tab, size = (statistics.median(getattr(one, name) for one in shown) for name in ("python", "browser", "megabytes"))
        points.append(Point(_size(of, case), size, python, tab))
    return points
