"""Enlarged drawings: the same picture, only larger, by a number that every browser multiplies alike."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from playwright.sync_api import Page

from tests.browser.canvas_harness import made
from tests.browser.emulation import another_screen
from tests.browser.patience import expect
from tests.browser.visits import drawing, hovered_weight, middle, rest, tile_of, tiles, until

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

Open = Callable[[str], Page]
CROSS = "decoder.0.2.cross"
LETTERS = 14
MOST_PIXELS = 2**24
"""Of a canvas on an iPhone or iPad; a larger one stays blank there."""

SHARP = "all => all.filter(({ clientWidth }) => clientWidth).map((node) => node.width / node.getBoundingClientRect().width)"


@pytest.fixture
def enlarge(watched: Page) -> Iterator[Callable[[float], None]]:
    """Enlarges all drawings of the page, until the test ends."""

    def set_to(scale: float) -> None:
        watched.evaluate("scale => document.documentElement.style.setProperty('--headlight-scale', scale)", scale)
        watched.evaluate("dispatchEvent(new Event('resize'))")
        rest(watched)

    yield set_to
    watched.evaluate("document.documentElement.style.removeProperty('--headlight-scale')")


@pytest.mark.parametrize("scale", [1.5, 2.3])
def test_the_pointer_names_the_cell_below_it_and_the_tooltip_lies_beside_it(
    watched: Page, drawings: Open, enlarge: Callable[[float], None], scale: float
) -> None:
    watched.set_viewport_size({"width": 2000, "height": 1500})
    page = drawings("show=atlas&head=5")
    enlarge(scale)
    for site, head, query, key in [(CROSS, 5, 4, 7), (CROSS, 7, 0, 0), ("encoder.0.0.self", 0, 11, 11)]:
        tile = tile_of(page, site, head)
        page.mouse.move(*middle(tile, query, key))
        true = made("").at(site).head(head)[query, key]
        assert hovered_weight(page, tile, query, key) == pytest.approx(true, abs=0.004)
        tip = page.locator(".tip.shown").bounding_box()
        assert tip is not None
        x, y = middle(tile, query, key)
        assert -tip["width"] - 30 < tip["x"] - x < 30
        assert min(abs(tip["y"] - y), abs(tip["y"] + tip["height"] - y)) < 30
    page.mouse.click(*middle(tile_of(page, CROSS, 2), 3, 3))
    expect(page.get_by_text(f"chosen {CROSS} head 2")).to_be_visible()


def test_a_chip_has_its_tooltip_at_its_own_edge(watched: Page, drawings: Open, enlarge: Callable[[float], None]) -> None:
    watched.set_viewport_size({"width": 1200, "height": 1000})
    page = drawings("show=strips")
    enlarge(2)
    chip = page.locator("[data-strip=target] .chip").nth(3)
    chip.hover()
    box, tip = chip.bounding_box(), page.locator(".tip.shown").bounding_box()
    assert box is not None
    assert tip is not None
    assert tip["x"] == pytest.approx(box["x"], abs=1)
    assert tip["y"] - box["y"] - box["height"] == pytest.approx(6, abs=1)


def test_canvases_have_a_pixel_for_each_of_the_screen(drawings: Open, enlarge: Callable[[float], None]) -> None:
    page = drawings("show=atlas,lines,player&head=5")
    for scale in (1, 1.5, 2):
        enlarge(scale)
        assert page.locator(".hl canvas").evaluate_all(SHARP) == pytest.approx([1] * 13, abs=0.005)


def parts(page: Page, name: str) -> list[list[float]]:
    """Widths and sizes of letters of a drawing's columns; how long a text is, a browser rounds."""
    script = """(root) => [...root.querySelectorAll(".stage, .stage > *, .strip, .strip > *")].map((node) =>
      [node.getBoundingClientRect().width, parseFloat(getComputedStyle(node).fontSize)])"""
    found: list[list[float]] = drawing(page, name).evaluate(script)
    return found


@pytest.mark.parametrize(("width", "columns"), [(900, 2), (600, 1)])
def test_a_drawing_twice_as_wide_and_enlarged_twice_is_arranged_as_before(
    watched: Page, drawings: Open, enlarge: Callable[[float], None], width: int, columns: int
) -> None:
    """Its own narrower form begins at the same number of its own pixels."""
    page = drawings("show=player,strips")
    seen = []
    for scale in (1, 2):
        watched.add_style_tag(content=f".stMainBlockContainer {{ width: {width * scale}px; max-width: none; padding: 0; }}")
        watched.set_viewport_size({"width": width * scale + 20, "height": 800 * scale})
        enlarge(scale)
        seen.append({name: parts(page, name) for name in ("player", "strips")})
        stage = drawing(page, "player").locator(".stage")
        assert stage.evaluate("node => getComputedStyle(node).gridTemplateColumns.split(' ').length") == columns, scale
    for name, small in seen[0].items():
        assert small
        np.testing.assert_allclose(np.array(seen[1][name]) / 2, small, atol=0.5, err_msg=name)


def test_a_pinch_on_a_trackpad_that_a_browser_tells_by_gestures_opens_a_head_and_enlarges_it(drawings: Open) -> None:
    page = drawings("show=atlas&case=long")
    x, y = middle(tile_of(page, "encoder.0.1.self", 6), 20, 20)
    pinch = """(canvas, [x, y]) => ["gesturestart", "gesturechange", "gesturechange"].map((name, at) => {
      const event = new Event(name, { cancelable: true });
      return !canvas.dispatchEvent(Object.assign(event, { scale: [1, 1.5, 3][at], clientX: x, clientY: y }));
    })"""
    assert page.locator(".card canvas").first.evaluate(pinch, [x, y]) == [True, True, True], "Safari would enlarge the page, too"
    expect(page.locator(".large")).to_be_visible()
    rest(page)
    whole = tiles(page)[0]
    assert page.locator(".large canvas").evaluate(pinch, list(middle(whole, 30, 12))) == [True, True, True]
    until(page, lambda: bool(tiles(page)[0]["rows"] < 16))
    closer = tiles(page)[0]
    assert closer["rows"] == pytest.approx(42 / 3, abs=1.01)
    assert closer["row"] < 30 < closer["row"] + closer["rows"]


def test_no_canvas_has_more_pixels_than_a_phone_draws(watched: Page, drawings: Open) -> None:
    with another_screen(watched, 3000, 900, 4):
        page = drawings("show=atlas&case=2x2x300")
        page.mouse.dblclick(*middle(tile_of(page, "encoder.0.1.self", 1), 100, 100))
        expect(page.locator(".large")).to_be_visible()
        rest(page)
        sizes = page.locator(".large canvas, .card canvas").evaluate_all("all => all.map(({ width, height }) => width * height)")
        assert MOST_PIXELS / 2 < max(sizes) <= MOST_PIXELS
        tile = tiles(page)[0]
        true = made("2x2x300").at("encoder.0.1.self").head(1)[120, 40]
        assert hovered_weight(page, tile, 120, 40) == pytest.approx(true, rel=1e-5)
