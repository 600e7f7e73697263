"""What a visitor does and sees on pages of the app, for browser tests."""

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlparse

import pytest
from playwright.sync_api import Locator, Page, expect

AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
PLACES = "all => all.map(node => [node.dataset.layout, JSON.stringify(node.getBoundingClientRect())])"
A_WHILE = "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 100))"


def rest(page: Page) -> None:
    """Waits until the script has run and no drawing moves any more: not for a while, in which no script begins either."""
    before = None
    while True:
        page.locator(AT_REST).wait_for()
        expect(page.locator(".waiting")).to_have_count(0)
        expect(page.locator("html[data-headlight-live]")).to_have_count(0)
        if (now := page.locator(".hl").evaluate_all(PLACES)) == before:
            return
        before = now
        page.evaluate(A_WHILE)


def until(page: Page, holds: Callable[[], bool]) -> None:
    """Waits for what the page does in its own time."""
    for _ in range(1200):
        if holds():
            return
        page.wait_for_timeout(50)
    pytest.fail("What was waited for did not come about within a minute.")


def drawing(page: Page, name: str) -> Locator:
    return page.locator(f".hl[data-drawing={name}]")


def loud(page: Page) -> Locator:
    """Warnings and errors on a page; what it says in passing is neither."""
    return page.get_by_test_id("stAlertContentWarning").or_(page.get_by_test_id("stAlertContentError"))


def opened(page: Page, url: str) -> Page:
    """Opens a page by its link and waits for its pictures, or for what it says instead; it warns of nothing."""
    page.goto(url, wait_until="domcontentloaded")
    page.locator(".hl canvas, .js-plotly-plot").or_(page.get_by_test_id("stAlert")).first.wait_for()
    assert loud(page).all_inner_texts() == []
    rest(page)
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
    box = drawing(page, name).bounding_box()
    assert box is not None
    zoom = float(drawing(page, name).evaluate("node => node.currentCSSZoom"))
    found = json.loads(drawing(page, name).get_attribute("data-layout") or "")
    enlarged = [tile | {side: zoom * tile[side] for side in ("x", "y", "width", "height") if side in tile} for tile in found]
    return [{**tile, "x": tile["x"] + box["x"], "y": tile["y"] + box["y"]} for tile in enlarged]


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
    readout = drawing(page, name).locator(".readout")
    for what, value in (("site", tile["site"]), ("head", tile["head"]), ("query", query), ("key", key)):
        expect(readout).to_have_attribute(f"data-{what}", str(value))
    return float(readout.get_attribute("data-weight") or "nan")


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
