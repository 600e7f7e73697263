"""The calculation of a cell stands over no map, follows the cell in place, and gives the focus back; a map is few keys away."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from model.engine.api import Run
from model.requests.request import RunRequest
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.test_pages import box, overlap
from tests.browser.visits import drawing, has_parameters, hovered_weight, middle, rest, tile_of, tiles, until
from tests.known import bundled_engine

pytestmark = pytest.mark.browser

Serve = Callable[[Path], str]
Within = Callable[[str], Page]
MODEL, TEXT, SITE, HEAD = "multi30k-de-en", "Ein Hund spielt im Schnee.", "decoder.0.2.cross", 3
SIZES = [(1440, 900), (1024, 768), (390, 844)]
PLACES = {"explore": {}, "step": {"clock": "computation", "stage": f"{SITE}/weights"}}
MOST_TABS = 8

FOCUSED = """() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node.closest(".hl")?.dataset.drawing ?? node.closest("[role=dialog]")?.role ?? node.dataset.testid ?? node.tagName;
}"""
"""What has the focus: a drawing, the dialog, or something else."""


def visit(page: Page, within: Within, serve: Serve, path: str, size: tuple[int, int]) -> Locator:
    """Opens a page; its map with the cells of a head."""
    page.set_viewport_size({"width": size[0], "height": size[1]})
    link = {"model": MODEL, "text": TEXT, "site": SITE, "head": str(HEAD), "query": "1"}
    within(f"{serve(APP)}/{path}?{urlencode(link | PLACES[path])}")
    cells = drawing(page, "cells").locator("canvas")
    cells.scroll_into_view_if_needed()
    rest(page)
    return cells


def lies_over_none(page: Page, dialog: Locator, cells: Locator) -> None:
    """The dialog lies over no part of a map, whose rows are all in the window."""
    rest(page)
    until(page, lambda: not overlap(box(dialog), box(cells)))
    assert box(cells)["y"] >= 0
    assert box(cells)["x"] + box(cells)["width"] <= page.evaluate("innerWidth")


@pytest.mark.parametrize("path", PLACES)
def test_the_calculation_stands_beside_its_map_and_another_cell_changes_it_in_place(
    watched: Page, within: Within, serve: Serve, path: str
) -> None:
    cells, dialog = visit(watched, within, serve, path, SIZES[0]), watched.get_by_role("dialog")
    for width, height in SIZES:
        watched.set_viewport_size({"width": width, "height": height})
        rest(watched)
        cells.scroll_into_view_if_needed()
        rest(watched)
        watched.mouse.click(*middle(tiles(watched, "cells")[0], 2, 3))
        expect(dialog).to_contain_text("attends to “spielt”")
        lies_over_none(watched, dialog, cells)
        dialog.evaluate("node => { node.seen = true; }")
        bars = box(dialog.locator(".js-plotly-plot").first)
        watched.mouse.click(*middle(tiles(watched, "cells")[0], 2, 5))
        expect(dialog).to_contain_text("attends to “schnee”")
        has_parameters(watched, query="2", key="5")
        lies_over_none(watched, dialog, cells)
        assert dialog.evaluate("node => node.seen"), "another dialog was opened"
        assert box(dialog.locator(".js-plotly-plot").first) == bars, "the bars moved"
        watched.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        rest(watched)
        until(watched, lambda: watched.evaluate(FOCUSED) == "cells")


@pytest.mark.thorough
@pytest.mark.parametrize("path", PLACES)
def test_keys_lead_from_the_map_into_the_calculation_and_back(watched: Page, within: Within, serve: Serve, path: str) -> None:
    cells, dialog = visit(watched, within, serve, path, SIZES[0]), watched.get_by_role("dialog")
    cells.focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "Enter"):
        watched.keyboard.press(key)
    expect(dialog).to_contain_text("attends to “hund”")
    rest(watched)
    assert watched.evaluate(FOCUSED) == "cells", "the keyboard stays where the next cell is"
    watched.keyboard.press("ArrowRight")
    watched.keyboard.press("Enter")
    expect(dialog).to_contain_text("attends to “spielt”")
    rest(watched)
    watched.keyboard.press("Tab")
    assert watched.evaluate(FOCUSED) == "dialog"
    watched.keyboard.press("Shift+Tab")
    assert watched.evaluate(FOCUSED) == "cells"
    watched.keyboard.press("Tab")
    if path == "explore":
        watched.keyboard.press("Escape")
    else:
        watched.locator(".st-key-close-cell button").press("Enter")
    expect(dialog).to_be_hidden()
    rest(watched)
    until(watched, lambda: watched.evaluate(FOCUSED) == "cells")


@pytest.mark.thorough
def test_beside_the_large_head_too(watched: Page, within: Within, serve: Serve) -> None:
    visit(watched, within, serve, "explore", SIZES[0])
    drawing(watched, "atlas").scroll_into_view_if_needed()
    rest(watched)
    watched.mouse.dblclick(*middle(tile_of(watched, SITE, HEAD), 1, 1))
    large, dialog = drawing(watched, "atlas").locator(".large canvas"), watched.get_by_role("dialog")
    rest(watched)
    watched.mouse.click(*middle(tiles(watched)[0], 3, 4))
    expect(dialog).to_contain_text("attends to “im”")
    lies_over_none(watched, dialog, large)
    watched.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(large).to_be_visible()
    rest(watched)
    until(watched, lambda: watched.evaluate(FOCUSED) == "atlas")
    assert large.evaluate("node => node.getRootNode().activeElement === node")


@pytest.mark.thorough
@pytest.mark.parametrize("path", PLACES)
def test_a_cell_of_a_map_is_few_keys_from_the_start_of_the_page(watched: Page, within: Within, serve: Serve, path: str) -> None:
    visit(watched, within, serve, path, SIZES[0])
    watched.goto(watched.url, wait_until="domcontentloaded")
    rest(watched, drawn=".hl[data-drawing=cells][data-layout]")
    tabs = 0
    while watched.evaluate(FOCUSED) != "stSkipToContent":
        watched.keyboard.press("Tab")
        tabs += 1
        assert tabs <= MOST_TABS
    watched.keyboard.press("Enter")
    until(watched, lambda: watched.evaluate(FOCUSED) in ("atlas", "cells"))
    if path == "explore":
        watched.keyboard.press("Space")
        expect(drawing(watched, "atlas").locator(".large")).to_be_visible()
    watched.keyboard.press("ArrowDown")
    watched.keyboard.press("ArrowRight")
    readout = drawing(watched, "atlas" if path == "explore" else "cells").locator(".readout")
    expect(readout).to_have_attribute("data-weight", re.compile(r"^0\.\d+$"))


@pytest.mark.thorough
def test_a_small_weight_keeps_two_significant_digits(watched: Page, within: Within, serve: Serve) -> None:
    ran = bundled_engine().ask(Run(RunRequest(MODEL, TEXT))).at(SITE).weights[HEAD].astype(np.float64)
    query, key = map(int, np.unravel_index(np.where(ran > 2e-6, ran, 1).argmin(), ran.shape))
    assert ran[query, key] < 0.001
    visit(watched, within, serve, "explore", SIZES[0])
    assert hovered_weight(watched, tiles(watched, "cells")[0], query, key, "cells") == pytest.approx(ran[query, key], rel=1e-3)
    said = drawing(watched, "cells").locator(".readout").inner_text().rpartition(": ")[2]
    assert float(said) == pytest.approx(ran[query, key], rel=0.06)
    assert said.lstrip("0.")[:2].isdigit(), said
    watched.mouse.click(*middle(tiles(watched, "cells")[0], query, key))
    formula = watched.get_by_role("dialog").locator(".katex-mathml annotation").filter(has_text="frac")
    expect(formula).to_have_count(1)
    result = (formula.text_content() or "").rpartition("mathbf{")[2].rstrip("}").replace(" \\cdot 10^{", "e")
    assert float(result) == pytest.approx(ran[query, key], rel=6e-4), "four significant digits"
