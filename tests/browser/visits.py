"""What a visitor does and sees on pages of the app, for browser tests."""

import time
from collections.abc import Callable
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import Locator, Page

from tests.browser.patience import OFTEN_MS, PATIENCE_MS

STILL = """([mark, drawn, least]) => {
  const roots = [document];
  for (const root of roots) for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]);
  const ran = document.querySelector("[data-testid=stApp][data-test-script-state=notRunning]")?.checkVisibility();
  const { dataset } = document.documentElement;
  const ready = ran && !("headlightLive" in dataset) && !("headlightMoves" in dataset) && !all(".waiting").length;
  const shown = ready && (!drawn || all(drawn).some((node) => node.checkVisibility()));
  const places = shown && JSON.stringify(all(".hl").map((node) => [node.dataset.layout, node.getBoundingClientRect()]));
  const before = window.headlightStill;
  if (!shown || before?.mark !== mark || before.places !== places) {
    const now = window.headlightStill = { mark, places, since: performance.now(), frames: 0, answers: 0 };
    const frame = () => ++now.frames < 2 && requestAnimationFrame(frame);
    requestAnimationFrame(frame);
    const ask = () => fetch("/_stcore/health", { cache: "no-store" }).catch(() => {}).then(() => ++now.answers < 2 && ask());
    if (shown) ask();
    return false;
  }
  return before.frames > 1 && before.answers > 1 && performance.now() - before.since > least;
}"""
"""Whether the script has run and no drawing has moved for a while, in which no script began either.

The server has answered twice meanwhile: on a busy machine it takes longer than the while until it knows of a click.
"""

TILES = """(node) => {
  const { x, y } = node.getBoundingClientRect(), scale = parseFloat(getComputedStyle(node).fontSize) / 14;
  const moved = (tile) => {
    const sides = ["x", "y", "width", "height"].filter((side) => side in tile);
    const large = Object.fromEntries(sides.map((side) => [side, scale * tile[side]]));
    return { ...tile, ...large, x: large.x + x, y: large.y + y };
  };
  return JSON.parse(node.dataset.layout).map(moved);
}"""

PAINTED = """
globalThis.painted = new Set();
const { fillText } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  painted.add(text);
  return fillText.call(this, text, ...at);
};
"""
"""Notes each text on a canvas: Streamlit paints tables on one."""

A_WHILE_MS = 100
PICTURES = ", ".join(
    (
        *(".hl canvas", ".hl .node", ".hl .dot", ".js-plotly-plot", ".head-grid", "[data-testid=stAlert]"),
        *(".st-key-lecture-copies", ".st-key-model-list button"),
    )
)
"""What pages of the app draw, what they say instead, or the end of the page without pictures."""

A_WHILE = "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 100))"

_marks = count()


def rest(page: Page, drawn: str = "") -> None:
    """Waits until the script has run and no drawing moves any more: not for a while, in which no script begins either.

    The page itself looks; Playwright asks twice a second, which costs every test seconds.

    Args:
        drawn: a selector of which something must be seen, too.
    """
    page.wait_for_function(STILL, arg=[next(_marks), drawn, A_WHILE_MS], polling=OFTEN_MS, timeout=PATIENCE_MS)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Waits for what the page does in its own time: most comes with the next frame."""
    deadline, pause = time.monotonic() + PATIENCE_MS / 1000, 5
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail("What was waited for did not come about in time.")
        page.wait_for_timeout(pause)
        pause = min(2 * pause, 50)


def drawing(page: Page, name: str) -> Locator:
    return page.locator(f".hl[data-drawing={name}]")


def loud(page: Page) -> Locator:
    """Warnings and errors on a page; what it says in passing is neither."""
    return page.get_by_test_id("stAlertContentWarning").or_(page.get_by_test_id("stAlertContentError"))


def opened(page: Page, url: str) -> Page:
    """Opens a page by its link and waits for its pictures, or for what it says instead; it warns of nothing."""
    page.goto(url, wait_until="domcontentloaded")
    return drawn(page)


def drawn(page: Page) -> Page:
    """Waits for a page's pictures, or for what it says instead; it warns of nothing."""
    rest(page, drawn=PICTURES)
    assert loud(page).all_inner_texts() == []
    return page


def type_sentence(page: Page, text: str) -> None:
    """Types into the box of the sentence and presses Enter."""
    box = page.get_by_role("textbox", name="Input sentence")
    box.fill(text)
    box.press("Enter")


def chips(page: Page, strip: str) -> Locator:
    """The tokens of a strip: on Explore of its strips, on Step through of the player."""
    return page.locator(f"[data-strip={strip}] .chip bdi")


def tiles(page: Page, name: str = "atlas") -> list[dict[str, Any]]:
    """The rectangles of a drawing, moved to where they are in the window, and enlarged as big mode enlarges them."""
    found: list[dict[str, Any]] = drawing(page, name).evaluate(TILES)
    return found


def tile_of(page: Page, site: str, head: int, name: str = "atlas") -> dict[str, Any]:
    return next(tile for tile in tiles(page, name) if (tile["site"], tile["head"]) == (site, head))


def middle(tile: dict[str, Any], query: int, key: int) -> tuple[float, float]:
    """Where a cell is in the window."""
    return (
        tile["x"] + (key - tile["column"] + 0.5) * tile["width"] / tile["columns"],
        tile["y"] + (query - tile["row"] + 0.5) * tile["height"] / tile["rows"],
    )


def hovered_weight(page: Page, tile: dict[str, Any], query: int, key: int, name: str = "atlas") -> float:
    """Points at a cell; the weight that the page then says it has."""
    page.mouse.move(*middle(tile, query, key))
    readout, wanted = drawing(page, name).locator(".readout"), (tile["site"], *map(str, (tile["head"], query, key)))
    said: dict[str, str] = {}

    def is_of_the_cell() -> bool:
        said.update(readout.evaluate("node => ({...node.dataset})"))
        return tuple(said.get(each) for each in ("site", "head", "query", "key")) == wanted

    until(page, is_of_the_cell)
    return float(said.get("weight") or "nan")


def parameters(page: Page) -> dict[str, str]:
    """What the address bar says."""
    return dict(parse_qsl(urlparse(page.url).query, keep_blank_values=True))


def has_parameters(page: Page, **wanted: str) -> None:
    """Waits until the address bar says so."""
    page.wait_for_url(lambda url: wanted.items() <= dict(parse_qsl(urlparse(url).query, keep_blank_values=True)).items())


def overflow(page: Page) -> int:
    """By how many CSS pixels the page, or a part that should fit into it, is wider than its room."""
    parts = page.locator("html, [data-testid=stMain], .stMainBlockContainer")
    wider: list[int] = parts.evaluate_all("all => all.map(node => node.scrollWidth - node.clientWidth)")
    return max(wider)
