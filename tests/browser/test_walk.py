"""The computation clock in a real browser, on the bundled model: from the first stage to the last by keys, and a cell opened."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from model.engine.api import Explain, Run
from model.requests.request import KEEP, RunRequest
from model.trace import stages
from tests.browser.patience import expect
from tests.browser.visits import drawing, has_parameters, middle, rest, tiles
from tests.known import bundled_engine

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
MODEL, TEXT = "multi30k-de-en", "Ein Hund spielt im Schnee."
SMALL = {"model": "reverse-digits", "text": "2718"}
"""A model of one layer, whose walk has all kinds of stages."""

MAP = ".hl[data-drawing=network]"


@pytest.fixture(scope="module")
def order() -> list[str]:
    """The walk of the sentence, worked out here."""
    engine = bundled_engine()
    return [str(stage) for stage in stages.walk(engine.ask(Run(RunRequest(SMALL["model"], SMALL["text"], keep=KEEP))))]


Open = Callable[..., Page]


@pytest.fixture
def visit(watched: Page, within: Callable[[str], Page], serve: Callable[[Path], str]) -> Open:
    """Opens the computation clock of the app."""
    address = serve(ROOT / "app.py")

    def go(**query: str) -> Page:
        link = urlencode({"clock": "computation", "model": MODEL, "text": TEXT} | query)
        watched.emulate_media(reduced_motion="reduce")
        return within(f"{address}/step?{link}")

    return go


def at(page: Page, stage: str) -> None:
    """The map marks a stage, the page shows it, and the link leads to it."""
    expect(page.locator(MAP)).to_have_attribute("data-stage", stage)
    expect(page.locator(".st-key-card-stage")).to_contain_text(stage)


def test_keys_alone_lead_from_the_first_stage_to_the_last_and_the_map_jumps_and_play_goes_on(visit: Open, order: list[str]) -> None:
    page = visit(**SMALL)
    at(page, order[0])
    seen = [order[0]]
    for _ in order[1:]:
        page.keyboard.press("ArrowRight")
        seen.append(page.locator(MAP).get_attribute("data-stage") or "")
    assert seen == order, "each press is one stage, marked at once"
    at(page, order[-1])
    page.keyboard.press("ArrowLeft")
    at(page, order[-2])
    page.keyboard.press("Home")
    at(page, order[0])
    page.keyboard.press("End")
    at(page, order[-1])
    has_parameters(page, stage=order[-1])
    rest(page)
    the_map_jumps_and_play_goes_on(page, order)


def the_map_jumps_and_play_goes_on(page: Page, order: list[str]) -> None:
    page.locator('.segment[data-stage="decoder.0.0.cross/weights"]').click()
    at(page, "decoder.0.0.cross/weights")
    here = order.index("decoder.0.0.cross/weights")
    page.keyboard.press("Space")
    expect(page.locator(MAP)).not_to_have_attribute("data-stage", re.compile("weights|context|output"))
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    there = page.locator(MAP).get_attribute("data-stage") or ""
    assert order.index(there) >= here + 3
    at(page, there)


@pytest.mark.thorough
def test_a_cell_is_opened_by_keys_and_its_badge_is_read_and_by_a_click(visit: Open) -> None:
    page = visit(stage="decoder.0.2.cross/weights", head="3")
    cells = page.locator(".hl[data-drawing=cells] canvas")
    cells.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    readout = page.locator(".hl[data-drawing=cells] .readout")
    query, column = int(readout.get_attribute("data-query") or -1), int(readout.get_attribute("data-key") or -1)
    assert (query, column) == (1, 1)
    page.keyboard.press("Enter")
    card = page.locator(".st-key-card-arithmetic")
    expect(card.get_by_text(re.compile(r"recomputed in float64, largest difference \d·10⁻[⁶⁷⁸]"))).to_be_visible()
    cell = bundled_engine().ask(Explain(RunRequest(MODEL, TEXT), "decoder.0.2.cross", 3, query, column))
    expect(card).to_contain_text("The run recorded")
    recorded = re.search(r"The run recorded (\d\.\d+)", card.inner_text())
    assert recorded is not None
    assert float(recorded[1]) == pytest.approx(cell.ran, abs=1e-6)  # a run in another batch differs in its last digits
    expect(page.locator(MAP)).to_have_attribute("data-stage", "decoder.0.2.cross/weights")
    has_parameters(page, query="1", key="1")
    rest(page)
    held_ms = 150  # longer than a frame, as a person holds it: nothing scrolls under the pointer meanwhile
    page.locator('.segment[data-stage="encoder.0.0.self/scores"]').click(delay=held_ms)
    at(page, "encoder.0.0.self/scores")
    rest(page)
    a_click_opens_the_cell_under_the_pointer(page)


def a_click_opens_the_cell_under_the_pointer(page: Page) -> None:
    drawing(page, "cells").scroll_into_view_if_needed()
    rest(page)
    page.mouse.click(*middle(tiles(page, "cells")[0], 4, 2))
    expect(page.locator(".st-key-card-arithmetic")).to_contain_text("attends to “hund”")
    has_parameters(page, query="4", key="2")
