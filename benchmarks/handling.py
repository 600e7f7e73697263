"""Interaction with the atlas: selecting another head, reading an exact weight, opening, moving and reading a large map."""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from typing import Any

import psutil
from playwright.sync_api import Page

from benchmarks import runs
from benchmarks.browsers import Browser, browsing
from benchmarks.servers import HERE, serving_atlas
from benchmarks.timing import Row
from benchmarks.visiting import ATLAS, rest, tab
from model.trace.types import Trace
from viz.figures.theme import LIGHT

TOUCHED = (HERE / "touched.js").read_text(encoding="utf-8")

KINDS, MEDIUM, PADDED, LARGE, MANY = "3 × 8 × 128, three kinds", "12 × 12 × 512", "6 × 8 × 1,000", "1 × 1 × 4,096", "1 × 6 × 4,096"
HEADS = "32 × 32 × 256"
ANOTHER = f"{HEADS}: a click on another head"
VALID = 890
SWITCH = {"head": ("encoder.0.1.self", 2), "layer": ("encoder.0.2.self", 2), "kind": ("decoder.0.2.cross", 2)}
"""Targets of clicks. Each follows the previous one, so that a click changes what its name says."""

MOVING_SECONDS = 2.0
EXACT = 1e-6
"""Largest difference between a weight on the page and in the run; the page computes it in blocks of another size."""

Tile = dict[str, Any]


def measure(repeats: int) -> Iterator[Row]:
    """Opens one tab for each size and measures medians of `repeats` turns, after a warm-up.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with browsing() as browser, serving_atlas(_traces()) as (served, addresses):
        process = psutil.Process(served.pid)
        for name, part in PARTS.items():
            with tab(browser, TOUCHED) as page:
                page.goto(addresses[name])
                page.wait_for_selector(ATLAS)
                rest(page)
                yield from part(page, repeats)
        yield from _memory(browser, addresses[MANY], process)


def _traces() -> Iterator[tuple[str, Trace]]:
    yield KINDS, runs.translation(3, 8, 128)
    yield MEDIUM, runs.encoder(12, 12, 512)
    yield HEADS, runs.encoder(32, 32, 256)
    yield PADDED, runs.encoder(6, 8, 1000, VALID)
    yield LARGE, runs.encoder(1, 1, 4096)
    yield MANY, runs.encoder(1, 6, 4096)


# --- Another head -------------------------------------------------------------------------------------------------------


def _switching(page: Page, repeats: int) -> Iterator[Row]:
    """Clicks on all targets in turn. The first round, which fetches data, does not count."""
    spans: dict[str, list[float]] = {name: [] for name in SWITCH}
    for place in SWITCH.values():
        _click(page, place)
    before = _fetched(page)
    for _, (name, place) in product(range(repeats), SWITCH.items()):
        spans[name].append(_click(page, place)["first"])
    fetched = _fetched(page) - before
    for name, own in spans.items():
        note = f"{fetched} bytes of weights fetched in {repeats * len(SWITCH)} clicks"
        yield Row(f"{KINDS}: a click on another {name}", statistics.median(own), note=note, megabytes=fetched / 1e6)


def _a_thousand(page: Page, repeats: int) -> Iterator[Row]:
    """Clicks on heads of a thousand that were not shown before."""
    seen = [tile for tile in tiles(page) if tile["width"] and _inside(page, tile)]
    spans = [_click(page, (tile["site"], tile["head"])) for tile in seen[5::7][:repeats]]
    first, last = (statistics.median(span[name] for span in spans) for name in ("first", "last"))
    yield Row(ANOTHER, first, note=f"the first frame; the last one after {last:.0f} ms")


def _inside(page: Page, tile: Tile) -> bool:
    """Whether the middle of a tile is in the window."""
    _x, y = _middle(page, tile)
    return 0 < y < float(page.evaluate("innerHeight"))


def _click(page: Page, place: tuple[str, int]) -> dict[str, float]:
    """Clicks on a head and waits until the page rests: the `first` and the `last` frame after the click, in ms."""
    tile = next(each for each in tiles(page) if (each["site"], each["head"]) == place)
    page.mouse.move(*_middle(page, tile))
    page.wait_for_timeout(100)
    page.mouse.down()
    page.mouse.up()
    return _settled(page)


def _settled(page: Page) -> dict[str, float]:
    page.wait_for_function("touched.first !== null")
    page.wait_for_timeout(300)
    rest(page)
    found: dict[str, float] = page.evaluate("({ ...touched })")
    return found


def _fetched(page: Page) -> int:
    """Bytes that the page has fetched over our route so far."""
    ours = 'performance.getEntriesByType("resource").filter(({ name }) => name.includes("/headlight/"))'
    return int(page.evaluate(f"{ours}.reduce((sum, {{ encodedBodySize }}) => sum + encodedBodySize, 0)"))


# --- An exact number ----------------------------------------------------------------------------------------------------


def _exact(name: str, trace: Callable[[], Trace]) -> Callable[[Page, int], Iterator[Row]]:
    """Clicks on heads that were not shown before, and points at a cell until its weight is exact."""

    def part(page: Page, repeats: int) -> Iterator[Row]:
        spans, far = [], 0.0
        for tile in tiles(page)[5::7][:repeats]:
            x, y = _middle(page, tile)
            page.mouse.move(x, y)
            page.wait_for_timeout(100)
            page.mouse.down()
            page.mouse.up()
            page.mouse.move(x + 1, y)
            spans.append(_exactly(page))
            far = max(far, _error(page, trace()))
        yield Row(f"{name}: a head exact, from the click", statistics.median(spans), note=f"read off: wrong by {far:.1e} at most")

    return part


def _exactly(page: Page) -> float:
    """Milliseconds until the weight under the pointer is exact."""
    page.evaluate("touched.read()")
    page.wait_for_function("touched.exact !== null")
    rest(page)
    return float(page.evaluate("touched.exact"))


def _error(page: Page, trace: Trace) -> float:
    """The difference between the weight on the page and in the run.

    Raises:
        ArithmeticError: it is too large: the page shows another number.
    """
    said = page.evaluate("touched.read()")
    true = trace.at(said["site"]).weights[int(said["head"]), int(said["query"]), int(said["key"])]
    if (error := abs(float(said["weight"]) - float(true))) > EXACT:
        raise ArithmeticError(f"the page says {said}, the run {true}")
    return error


# --- A large map --------------------------------------------------------------------------------------------------------


def _padding(page: Page, repeats: int) -> Iterator[Row]:
    """The share of a tile that has the color of masked keys."""
    shown = 'node => [...node.getContext("2d").getImageData(0, Math.floor(node.height / 8), node.width, 1).data]'
    row = page.locator(".card canvas").first.evaluate(shown)
    masked = [int(LIGHT.masked[at : at + 2], 16) for at in (1, 3, 5)]
    tile = tiles(page)[0]
    share = sum(row[at : at + 3] == masked for at in range(0, len(row), 4)) / 8 / tile["width"]
    yield Row(f"{PADDED}: padding in a tile", float("nan"), share / (1 - VALID / 1000), f"{share:.1%} of it")
    yield from _opening(PADDED, lambda: runs.encoder(6, 8, 1000, VALID))(page, repeats)


def _opening(name: str, trace: Callable[[], Trace]) -> Callable[[Page, int], Iterator[Row]]:
    """Opens a head as a large map, zooms, moves it and reads it."""

    def part(page: Page, repeats: int) -> Iterator[Row]:
        page.locator(".card header button").click()
        yield Row(f"{name}: opened large", _settled(page)["last"], note="from the click to the last tile")
        centre = _middle(page, tiles(page)[0])
        yield _reading(name, page, trace(), centre, repeats)
        page.mouse.move(*centre)
        yield frames(f"{name}: zooming", page, lambda turn: page.mouse.wheel(0, -120 if turn % 24 < 14 else 120))
        rest(page)
        page.mouse.down()
        yield frames(f"{name}: moving", page, lambda turn: page.mouse.move(*_around(centre, turn)))
        page.mouse.up()

    return part


def _around(centre: tuple[float, float], turn: int) -> tuple[float, float]:
    """The pointer's position in a turn: back and forth, 9 pixels at a time."""
    there = abs(turn % 40 - 20) * 9 - 90
    return centre[0] + there, centre[1] + there / 2


def frames(name: str, page: Page, move: Callable[[int], None]) -> Row:
    """Frames per second and their durations, while events arrive as fast as they can be sent."""
    page.evaluate("Object.assign(touched, { frames: [], recording: true })")
    until, turn = time.perf_counter() + MOVING_SECONDS, 0
    while time.perf_counter() < until:
        move(turn)
        turn += 1
    frames = page.evaluate("((touched.recording = false), touched.frames)")
    spans = [after - before for before, after in pairwise(frames)]
    rate, slow = 1000 / statistics.mean(spans), statistics.quantiles(spans, n=20)[-1]
    events = turn / MOVING_SECONDS
    return Row(name, statistics.median(spans), rate, f"frames/s; {slow:.0f} ms of 20 one is longer; {events:.0f} events/s")


def _reading(name: str, page: Page, trace: Trace, centre: tuple[float, float], repeats: int) -> Row:
    """Points at cells of the whole map that are far from each other."""
    spans, far = [], 0.0
    for turn in range(repeats):
        page.evaluate("touched.atNextMove()")
        page.mouse.move(centre[0] + 60 * (turn - repeats // 2), centre[1] - 50 * (turn - repeats // 2))
        spans.append(_exactly(page))
        far = max(far, _error(page, trace))
    return Row(f"{name}: hover, until exact", statistics.median(spans), note=f"wrong by {far:.1e} at most")


PARTS: dict[str, Callable[[Page, int], Iterator[Row]]] = {
    KINDS: _switching,
    MEDIUM: _exact(MEDIUM, lambda: runs.encoder(12, 12, 512)),
    HEADS: _a_thousand,
    PADDED: _padding,
    LARGE: _opening(LARGE, lambda: runs.encoder(1, 1, 4096)),
}


# --- Memory -------------------------------------------------------------------------------------------------------------


def _memory(browser: Browser, address: str, process: psutil.Process) -> Iterator[Row]:
    """Resident memory of the server before and after six large heads are shown, one after the other."""
    sizes = [process.memory_info().rss]
    with tab(browser, TOUCHED) as page:
        page.goto(address)
        page.wait_for_selector(ATLAS)
        rest(page)
        sizes.append(process.memory_info().rss)  # the first one is selected from the start
        for tile in tiles(page)[1:]:
            _click(page, (tile["site"], tile["head"]))
            sizes.append(process.memory_info().rss)
    told = ", ".join(f"{size / 1e6:.0f}" for size in sizes)
    yield Row(f"{MANY}: memory after 6 heads", float("nan"), sizes[6] / sizes[3], f"of that after 3; MB by head: {told}")


def tiles(page: Page) -> list[Tile]:
    """The tiles of the heads, in CSS pixels of the drawing."""
    found: list[Tile] = json.loads(page.locator(ATLAS).get_attribute("data-layout") or "[]")
    return found


def _middle(page: Page, tile: Tile) -> tuple[float, float]:
    """The middle of a tile, in CSS pixels of the window."""
    box = page.locator(ATLAS).bounding_box()
    assert box is not None
    return box["x"] + tile["x"] + tile["width"] / 2, box["y"] + tile["y"] + tile["height"] / 2
