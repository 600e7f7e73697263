"""The overview of many heads: it fills the width, nothing of it is cut, and each head can be reached with every device."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page

from model.trace.types import Attention, Trace
from tests.browser.canvas_harness import made
from tests.browser.emulation import a_phone, another_screen
from tests.browser.patience import expect
from tests.browser.visits import drawing, hovered_weight, overflow, rest, tile_of, tiles
from tests.plain_measures import by_loop

pytestmark = pytest.mark.browser

Open = Callable[[str], Page]
SCREENS = [(1440, 900), (1024, 768), (390, 844)]
INSIDE = """(card) => {
  const { left, right, bottom } = card.getBoundingClientRect();
  return [...card.querySelectorAll("canvas, button, input, select")].filter((node) => node.checkVisibility()).every((node) => {
    const box = node.getBoundingClientRect();
    return box.left >= left - 1 && box.right <= right + 1 && box.bottom <= bottom + 1;
  });
}"""


@pytest.fixture
def visit(drawings: Open) -> Open:
    """Opens the overview of a case, and waits until it is drawn."""
    return lambda query: drawings(f"show=atlas&{query}")


def folds(page: Page) -> Locator:
    """The buttons of the bands."""
    return drawing(page, "atlas").locator(".fold")


def tap(page: Page, node: Locator) -> None:
    """A short touch in the middle of an element that can be seen."""
    node.scroll_into_view_if_needed()
    box = node.bounding_box()
    assert box is not None
    touch(page, box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def touch(page: Page, x: float, y: float) -> None:
    """A short touch at a point of the window."""
    session = page.context.new_cdp_session(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def fills_the_width(page: Page) -> None:
    """Each card holds its tiles, and they reach from one side of it to the other."""
    for card in drawing(page, "atlas").locator(".card").all():
        assert card.evaluate(INSIDE), "something was cut"
    box = drawing(page, "atlas").locator(".card canvas").first.bounding_box()
    assert box is not None
    placed = tiles(page)
    assert max(tile["x"] + tile["width"] for tile in placed) <= box["x"] + box["width"] + 1
    left, right = min(tile["x"] for tile in placed), max(tile["x"] + tile["width"] for tile in placed)
    assert right - left > 0.87 * box["width"], "a part of the card was empty"
    assert overflow(page) <= 0
    for one in placed:
        assert one["width"] >= 16


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["30x9x12", "32x32x4", "80x64x2", "2x2x8", "6x12x12"])
def test_the_grid_fills_the_width_and_nothing_is_cut(visit: Open, watched: Page, case: str) -> None:
    page = visit(f"case={case}")
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        rest(page)
        fills_the_width(page)


def test_all_heads_of_a_real_model_are_seen_at_once(visit: Open, watched: Page) -> None:
    """Thirty layers of nine heads on a laptop's screen."""
    watched.set_viewport_size({"width": 1440, "height": 900})
    page = visit("case=30x9x12")
    assert len(tiles(page)) == 270
    expect(folds(page)).to_have_count(0)
    assert max(tile["y"] + tile["height"] for tile in tiles(page)) < 900
    tile = tile_of(page, "encoder.0.17.self", 4)
    assert hovered_weight(page, tile, 5, 3) == pytest.approx(made("30x9x12").at("encoder.0.17.self").head(4)[5, 3], abs=0.004)


@pytest.mark.thorough
def test_the_keyboard_reaches_every_head_and_opens_its_band(visit: Open, watched: Page) -> None:
    with another_screen(watched, 700, 800, 1):
        page = visit("case=40x20x2")
        shown = {tile["site"] for tile in tiles(page)}
        assert 0 < len(shown) < 40
        assert "encoder.0.39.self" in shown, "the selected layer is open"
        page.locator(".card canvas").focus()
        page.keyboard.press("ArrowLeft")  # whoever uses the keyboard sees where it is
        seen = set()
        readout = drawing(page, "atlas").locator(".readout")
        for layer in range(39, -1, -1):
            expect(readout).to_have_attribute("data-site", f"encoder.0.{layer}.self")
            seen.add(layer)
            page.keyboard.press("ArrowUp")
        assert seen == set(range(40))
        for head in range(20):
            expect(readout).to_have_attribute("data-head", str(head))
            page.keyboard.press("ArrowRight")
        rest(page)
        tile = tile_of(page, "encoder.0.0.self", 19)
        assert 0 <= tile["y"] < 800, "the head under the keyboard is on the screen"
        page.keyboard.press("Enter")
        expect(page.get_by_text("chosen encoder.0.0.self head 19")).to_be_visible()


@pytest.mark.thorough
def test_bands_fold_by_touch_and_by_keys(visit: Open, watched: Page) -> None:
    with a_phone(watched):
        page = visit("case=32x32x4")
        band = folds(page).first
        expect(band).to_have_attribute("aria-expanded", "false")
        expect(band).to_contain_text("L1")
        assert not [tile for tile in tiles(page) if tile["site"] == "encoder.0.0.self"]
        tap(page, band)
        expect(band).to_have_attribute("aria-expanded", "true")
        rest(page)
        page.mouse.wheel(0, -5000)
        tile = tile_of(page, "encoder.0.0.self", 31)
        touch(page, tile["x"] + tile["width"] / 2, tile["y"] + tile["height"] / 2)
        expect(page.get_by_text("chosen encoder.0.0.self head 31")).to_be_visible()
        band.press("Enter")
        expect(band).to_have_attribute("aria-expanded", "false")
        height = folds(page).last.bounding_box()
        assert height is not None
        assert height["height"] >= 24, "a finger finds the button"


@pytest.mark.thorough
def test_heads_are_sorted_by_what_was_measured_and_shown_line_by_line(visit: Open, watched: Page) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    page, trace = visit("case=30x9x12"), made("30x9x12")
    measured = {
        (str(site), head): by_loop("first", trace, own, head) for site, own in trace.attention.items() for head in range(own.heads)
    }
    page.get_by_label("Order of the heads").select_option(label="least on the first token")
    rest(page)
    shown = [(tile["site"], tile["head"]) for tile in tiles(page)]
    assert [measured[place] for place in shown] == sorted(measured[place] for place in shown)
    assert measured[shown[0]] == min(measured.values())
    fills_the_width(page)
    page.get_by_label("How many of the heads are omitted").fill("90")
    expect(page.locator(".finder output")).to_contain_text("heads: 27 of 270")
    rest(page)
    assert {(tile["site"], tile["head"]) for tile in tiles(page)} == set(sorted(measured, key=measured.__getitem__)[:27])
    tile = tiles(page)[3]
    value = trace.at(tile["site"]).head(tile["head"])[6, 2]
    assert hovered_weight(page, tile, 6, 2) == pytest.approx(value, abs=0.004)


@pytest.mark.thorough
def test_heads_are_found_by_name_and_kind_with_the_keyboard_alone(visit: Open, watched: Page) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    page, trace = visit("case=30x9x12"), made("30x9x12")
    search = page.get_by_label("Find heads by layer, number or kind")
    search.fill("L12")
    rest(page)
    assert {tile["site"] for tile in tiles(page)} == {"encoder.0.11.self"}
    search.fill("l12 h4")
    expect(page.locator(".finder output")).to_contain_text("heads: 1 of 270")
    search.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_text("chosen encoder.0.11.self head 3")).to_be_visible()
    search.fill("nothing like this")
    expect(page.locator(".finder output")).to_contain_text("heads: 0 of 270")
    search.fill("")
    kind = page.get_by_label("Where most of the weight is")
    found: dict[str, list[tuple[str, int]]] = {}
    for site, one in trace.attention.items():
        for head in range(one.heads):
            found.setdefault(kind_by_hand(trace, one, head), []).append((str(site), head))
    assert len(found) > 1
    for name, own in found.items():
        kind.select_option(label=f"{name} ({len(own)})")
        expect(page.locator(".finder output")).to_contain_text(f"heads: {len(own)} of 270")
        rest(page)
        shown = [(tile["site"], tile["head"]) for tile in tiles(page)]
        assert shown == own[: len(shown)]


def kind_by_hand(trace: Trace, attention: Attention, head: int) -> str:
    """Where a head has more than half of its weight, by loops over its rows."""
    names = {
        "previous": "mostly on the previous token",
        "same": "mostly on the own token",
        "next": "mostly on the next token",
        "first": "mostly on the first token",
    }
    return next((title for name, title in names.items() if by_loop(name, trace, attention, head) > 0.5), "other heads")


@pytest.mark.thorough
def test_the_keyboard_goes_on_beyond_the_lines_that_are_shown(visit: Open, watched: Page) -> None:
    with a_phone(watched):
        page = visit("case=30x9x12")
        page.get_by_label("Order of the heads").select_option(label="sharpest")
        rest(page)
        before = len(tiles(page))
        assert before < 270
        fills_the_width(page)
        tap(page, page.locator(".more"))
        rest(page)
        assert before < len(tiles(page))
        page.locator(".card canvas").focus()
        for _ in range(60):
            page.keyboard.press("ArrowDown")
        rest(page)
        assert len(tiles(page)) == 270
