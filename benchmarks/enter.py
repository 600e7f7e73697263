"""From Enter to the painted picture: the app in a real Chromium, split into model, server and browser."""

import json
import re
import statistics
from collections.abc import Iterator

from playwright.sync_api import Page

from benchmarks.browsers import Browser, browsing
from benchmarks.servers import HERE, ROOT, serving
from benchmarks.timing import Row, ratio

WATCH = (HERE / "watch.js").read_text(encoding="utf-8")

SENTENCE = "zwei junge hunde spielen mit einem ball im schnee und eine frau mit einem roten hut sitzt auf einer bank"

STRIPS = ".hl[data-drawing=strips]"


def measure(repeats: int) -> Iterator[Row]:
    """Types new sentences of 12 words into a warm app, in turns with the app of one text line.

    Raises:
        NoBrowser: there is no Chromium here.
    """
    with browsing() as browser, serving(ROOT / "app.py") as app, serving(HERE / "one_line.py") as line:
        whole = f"{app.address}?model=multi30k-de-en"  # a turn is short, and its time varies
        yield from _rows(_turns(browser, whole, line.address, 4 * repeats))


def _turns(browser: Browser, app: str, line: str, repeats: int) -> list[dict[str, float]]:
    """Milliseconds of each turn, without the first two, which warm up."""
    pages = [browser.context().new_page() for _ in range(2)]
    for page, address in zip(pages, (app, line), strict=True):
        page.add_init_script(WATCH)
        page.goto(address)
        page.wait_for_selector("[data-testid=stTextInput] input", timeout=60_000)
    pages[0].wait_for_function(f"headlightWatch.text('{STRIPS}') !== ''", timeout=60_000)
    return [{**_app(pages[0], turn), "line": _line(pages[1], turn)} for turn in range(repeats + 2)][2:]


def _app(page: Page, turn: int) -> dict[str, float]:
    """Types one new sentence of 12 words: when the answer came, when it was painted, and the time of the model."""
    words = SENTENCE.split()
    rotated = words[turn % len(words) :] + words[: turn % len(words)]
    before = json.dumps(page.evaluate(f"headlightWatch.text('{STRIPS}')"))
    spans: dict[str, float] = _enter(page, " ".join(rotated[:12]), f"headlightWatch.text('{STRIPS}') !== {before}")
    shown = re.search(r"([\d.,]+) ms", page.inner_text("[data-testid=stSidebar]"))
    return {**spans, "model": float(shown[1].replace(",", "")) if shown else 0.0}


def line_of(browser: Browser, address: str, repeats: int) -> list[float]:
    """Milliseconds from Enter to the painted text in the app of one text line."""
    page = browser.context().new_page()
    page.add_init_script(WATCH)
    page.goto(address)
    page.wait_for_selector("[data-testid=stTextInput] input", timeout=60_000)
    return [_line(page, turn) for turn in range(repeats + 2)][2:]


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
