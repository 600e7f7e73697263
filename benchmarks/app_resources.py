"""CPU and memory of the app's process: CPU of a click that selects a head, memory after many different sentences."""

import json
from collections.abc import Iterator

import psutil
from playwright.sync_api import Page

from benchmarks.browsers import browsing
from benchmarks.enter import SENTENCE
from benchmarks.servers import ROOT, serving
from benchmarks.timing import Row

CLICKS = 20
FEW, MANY = 50, 500
"""Number of different sentences between the two measurements of memory."""

MEMORY_MIB = 64
"""The byte budget of the app here: it is used up by the fewer sentences, so that more of them need no more memory."""

AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"


def measure(repeats: int) -> Iterator[Row]:
    """Clicks on heads of the atlas, then types 500 sentences; once, since the memory of a process cannot be measured in turns.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with browsing() as browser, serving(ROOT / "app.py", HEADLIGHT_MEMORY=str(MEMORY_MIB)) as app:
        page = browser.context().new_page()
        page.goto(f"{app.address}?model=multi30k-de-en")
        page.wait_for_selector(".hl[data-drawing=atlas][data-layout]", timeout=60_000)
        process = psutil.Process(app.pid)
        seconds = _click_heads(page, process, CLICKS * repeats)
        yield Row(f"server CPU of a click that selects a head, mean of {CLICKS}", 1000 * seconds)
        yield from _memory(page, process)


def _click_heads(page: Page, process: psutil.Process, clicks: int) -> float:
    """Mean CPU seconds of a click, without the first few."""
    atlas = page.locator(".hl[data-drawing=atlas]")
    tiles = json.loads(atlas.get_attribute("data-layout") or "[]")
    before = 0.0
    for click in range(-5, clicks):
        if click == 0:
            before = cpu(process)
        tile = tiles[click % len(tiles)]
        atlas.click(position={"x": tile["x"] + tile["width"] / 2, "y": tile["y"] + tile["height"] / 2})
        page.wait_for_timeout(150)
        page.wait_for_selector(AT_REST)
    return (cpu(process) - before) / clicks


def _memory(page: Page, process: psutil.Process) -> Iterator[Row]:
    words = SENTENCE.split()
    field = page.locator("[data-testid=stTextInput] input").last
    sizes: dict[int, int] = {}
    for turn in range(1, MANY + 1):
        text = " ".join(words[(turn * step) % len(words)] for step in range(1, 9)) + f" {turn}"
        field.fill(text)
        field.press("Enter")
        page.wait_for_timeout(50)
        page.wait_for_selector(AT_REST)
        sizes[turn] = process.memory_info().rss
    ratio = sizes[MANY] / sizes[FEW]
    yield Row(f"memory after {FEW} sentences", float("nan"), note=f"{sizes[FEW] / 1e6:.0f} MB")
    yield Row(f"memory after {MANY} sentences", float("nan"), ratio, f"{sizes[MANY] / 1e6:.0f} MB, ratio to {FEW}")


def cpu(process: psutil.Process) -> float:
    """CPU seconds of the process so far."""
    times = process.cpu_times()
    return float(times.user + times.system)
