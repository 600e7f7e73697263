"""A sound in a real browser: it plays, a line moves with it, and what is pointed at is the number of the trace."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from tests import traces
from tests.browser.patience import expect
from tests.browser.visits import drawing, middle, tile_of, until

pytestmark = pytest.mark.browser

CROSS = "decoder.0.1.cross"


def now(page: Page) -> float:
    """The second that plays."""
    return float(drawing(page, "sound").get_attribute("data-now") or 0)


def line(page: Page) -> float:
    """How far to the right the line stands, in pixels of the page."""
    found: float = drawing(page, "sound").locator(".now").evaluate("node => node.getBoundingClientRect().x + 1")
    return found


def test_a_moment_reads_its_weight_and_a_click_plays_from_there_with_the_line(drawings: Callable[[str], Page]) -> None:
    page = drawings(f"show=sound&case=heard&site={CROSS}&head=2")
    tile = tile_of(page, CROSS, 2, "sound")
    trace = traces.heard()
    page.mouse.move(*middle(tile | {"row": 0, "column": 0}, 5, 30))
    said = drawing(page, "sound").locator(".readout")
    expect(said).to_have_attribute("data-key", "30")
    weight = float(said.get_attribute("data-weight") or "nan")
    assert weight == pytest.approx(float(trace.at(CROSS).head(2)[5, 30]), rel=1e-6)
    page.mouse.click(*middle(tile | {"row": 0, "column": 0}, 5, 30))
    until(page, lambda: now(page) >= 0.6)
    assert line(page) >= tile["x"] + 0.6 / 1.3 * tile["width"] - 1
    expect(page.get_by_text("chosen decoder.0.1.cross head 2 query 5 ")).to_be_visible()
    until(page, lambda: now(page) > 0.75)  # it plays on
    assert line(page) == pytest.approx(tile["x"] + now(page) / 1.3 * tile["width"], abs=0.1 * tile["width"])


def test_keys_choose_a_row_and_a_moment(drawings: Callable[[str], Page]) -> None:
    page = drawings(f"show=sound&case=heard&site={CROSS}&head=1")
    canvas = drawing(page, "sound").locator("canvas")
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown", "End", "ArrowLeft", "ArrowLeft"):
        page.keyboard.press(key)
    said = drawing(page, "sound").locator(".readout")
    expect(said).to_have_attribute("data-query", "1")
    expect(said).to_have_attribute("data-key", "63")
