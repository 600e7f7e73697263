"""Every attention picture opens a cell to its arithmetic, by pointer and by keys, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.emulation import touch
from tests.browser.patience import expect
from tests.browser.visits import TILES, drawing, has_parameters, middle, opened, parameters, rest, tile_of, tiles

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
MODEL, TEXT, SITE = "multi30k-de-en", "Ein Hund spielt im Schnee.", "decoder.0.2.cross"
BADGE = re.compile(r"recomputed in float64, largest difference \d·10⁻[⁶⁷⁸]")

Open = Callable[[str], Page]


@pytest.fixture
def visit(within: Open, serve: Callable[[Path], str]) -> Open:
    """Opens a page of the app on the sentence."""
    address = serve(ROOT / "app.py")
    return lambda page: within(f"{address}/{page}?model={MODEL}&text={TEXT}&site={SITE}&head=3&query=1")


def is_open(page: Page, query: int, key: int) -> None:
    """The cell's arithmetic lies over the page; Escape closes it, and the link no longer opens it."""
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text(BADGE)).to_be_visible()
    has_parameters(page, head="3", query=str(query), key=str(key))
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.wait_for_url(lambda url: "key=" not in url)
    rest(page)
    expect(dialog).to_be_hidden()


def test_on_explore_the_lines_the_map_of_the_head_and_the_large_head_open_a_cell_by_pointer_and_by_keys(visit: Open) -> None:
    page = visit("explore")
    expect(page.locator(".st-key-card-heat").get_by_text("query: decoder")).to_have_count(1)
    drawing(page, "lines").locator("canvas").focus()
    for pressed in ("ArrowRight", "Home", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(pressed)
    is_open(page, 1, 2)
    assert parameters(page)["query"] == "1"
    drawing(page, "cells").scroll_into_view_if_needed()
    rest(page)
    page.mouse.click(*middle(tiles(page, "cells")[0], 2, 4))
    is_open(page, 2, 4)
    drawing(page, "cells").locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(drawing(page, "cells").locator(".readout")).to_have_attribute("data-key", "5")
    page.keyboard.press("Enter")
    is_open(page, 2, 5)
    of_the_large_head(page)


def of_the_large_head(page: Page) -> None:
    """The large head of the overview opens its cells."""
    drawing(page, "atlas").scroll_into_view_if_needed()
    rest(page)
    page.mouse.dblclick(*middle(tile_of(page, SITE, 3), 1, 1))
    expect(drawing(page, "atlas").locator(".large")).to_be_visible()
    rest(page)
    page.mouse.click(*middle(tiles(page)[0], 3, 4))
    is_open(page, 3, 4)
    drawing(page, "atlas").locator(".large canvas").focus()
    page.keyboard.press("ArrowRight")
    readout = drawing(page, "atlas").locator(".readout")
    query, key = (int(readout.get_attribute(f"data-{name}") or -1) for name in ("query", "key"))
    page.keyboard.press("Enter")
    is_open(page, query, key)


@pytest.mark.thorough
def test_the_player_opens_a_cell_that_was_revealed(visit: Open) -> None:
    page = visit("step")
    canvas = drawing(page, "player").locator(".map canvas")
    canvas.focus()
    for pressed in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(pressed)
    is_open(page, 2, 1)
    assert drawing(page, "player").get_attribute("data-step") == "2", "the step stays"


@pytest.mark.thorough
def test_what_a_cell_writes_is_said_under_the_pointer_by_keys_and_in_the_link(within: Open, serve: Callable[[Path], str]) -> None:
    text = "fox moon tea harry potter rain key fox moon tea harry"
    link = f"explore?model=induction&text={text}&max=1&reading=writes&site=decoder.0.1.self&head=0"
    page = within(f"{serve(ROOT / 'app.py')}/{link}")
    drawing(page, "cells").scroll_into_view_if_needed()
    rest(page)
    written = drawing(page, "cells").locator(".written")
    page.mouse.move(*middle(tiles(page, "cells")[0], 10, 4))  # the second “harry” reads “potter”
    expect(written).to_contain_text("pushes uppotter +")
    expect(written).to_have_attribute("data-key", "4")
    drawing(page, "cells").locator("canvas").focus()
    page.keyboard.press("ArrowDown")  # the first row is on the first cell
    expect(written).not_to_have_attribute("data-key", "4")
    page.mouse.click(*middle(tiles(page, "cells")[0], 10, 4))
    has_parameters(page, query="10", key="4", reading="writes")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(written).to_contain_text("pushes uppotter +")
    page.mouse.move(*middle(tiles(page, "cells")[0], 0, 3))
    expect(written).to_have_text(re.compile("so this cell adds nothing"))


def test_masks_need_no_plotly_and_say_their_cells_to_pointer_keys_and_fingers(watched: Page, serve: Callable[[Path], str]) -> None:
    asked: list[str] = []
    watched.on("request", lambda request: asked.append(request.url))
    page = opened(watched, f"{serve(ROOT / 'app.py')}/masks?model={MODEL}&text={TEXT}")
    drawn = page.locator(".hl[data-drawing=cells]")
    expect(drawn).to_have_count(3)
    assert any("/static/js/" in address for address in asked), "what the page asks for is seen"
    assert not [address for address in asked if "plotly" in address.lower()], "Plotly keeps the browser busy for seconds"
    causal, both, _padding = drawn.all()
    where = page.url
    for cell, sign in (((1, 3), "✗, masked"), ((3, 1), "✓")):
        place = middle(causal.evaluate(TILES)[0], *cell)
        page.mouse.click(*place) if sign != "✓" else touch(page, place)
        expect(causal.locator(".readout")).to_have_text(re.compile(rf": {sign}$"))
        expect(causal.locator(".readout")).to_have_attribute("data-key", str(cell[1]))
    both.locator("canvas").focus()
    for pressed in ("ArrowRight", "ArrowRight", "Enter"):
        page.keyboard.press(pressed)
    expect(both.locator(".readout")).to_have_text(re.compile(r"^“<sos>.*” attends to “a”: ✗, masked$"))
    rest(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url == where, "there is no calculation that a click could open"
