"""Long inputs and many heads in a real browser: what is shown stays what ran, and what is away comes back."""

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, Route

from tests.browser.canvas_harness import made
from tests.browser.conftest import DRAWINGS
from tests.browser.emulation import another_screen
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.visits import drawing, middle, rest, tile_of, tiles, until

pytestmark = pytest.mark.browser

Open = Callable[[str], Page]


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str]) -> str:
    return serve(DRAWINGS)


@pytest.fixture
def visit(drawings: Open) -> Open:
    """Opens the overview of a case, and waits until it is drawn."""
    return lambda query: drawings(f"show=atlas&{query}")


@pytest.fixture
def unwatched(page: Page, address: str) -> Open:
    """The same where the browser is expected to write errors to the console: of answers that fail."""
    page.set_viewport_size({"width": 1200, "height": 900})
    page.set_default_timeout(PATIENCE_MS)
    return lambda query: drawn(page, f"{address}/?show=atlas&{query}")


def drawn(page: Page, url: str) -> Page:
    page.goto(url, wait_until="domcontentloaded")
    rest(page, drawn=".hl[data-layout]")
    return page


def open_large(page: Page) -> dict[str, Any]:
    """Opens the selected head; where it is."""
    page.locator(".card header button").click()
    expect(page.locator(".large")).to_be_visible()
    rest(page)
    return tiles(page)[0]


def exact_at(page: Page, tile: dict[str, Any], query: int, key: int) -> float:
    """Points at a cell of an open head and waits until its weight is exact."""
    page.mouse.move(*middle(tile, query, key))
    readout = drawing(page, "atlas").locator(".readout")
    expect(readout).to_have_attribute("data-query", str(query))
    expect(readout).to_have_attribute("data-key", str(key))
    expect(readout).to_have_attribute("data-weight", re.compile(r"."))
    return float(readout.get_attribute("data-weight") or "nan")


def test_the_overview_and_the_selected_head_are_fetched_together(page: Page, address: str) -> None:
    asked: list[Route] = []

    def answer_both(route: Route) -> None:
        """Answers nothing until both are asked for."""
        asked.append(route)
        for each in asked if len(asked) == 2 else []:
            each.continue_()

    page.route("**/headlight/*/whole", answer_both)
    drawn(page, f"{address}/?show=atlas&case=2x2x512")
    assert len({route.request.url for route in asked}) == len(asked) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "zoom"), [("2x2x128", 0), ("2x2x512", 0), ("1x1x4096", 0), ("1x1x4096", 9)])
def test_hovered_weights_are_those_of_the_trace(visit: Open, case: str, zoom: int) -> None:
    page, tokens = visit(f"case={case}"), int(case.rpartition("x")[2])
    tile = open_large(page)
    true = made(case).at(tile["site"]).head(0)
    assert (tile["rows"], tile["columns"]) == (tokens, tokens)
    for _ in range(zoom):
        page.keyboard.press("+")
    rest(page)
    tile = tiles(page)[0]
    for share in (0.07, 0.4, 0.93):
        row, column = int(tile["row"] + share * tile["rows"]), int(tile["column"] + (1 - share) * tile["columns"])
        if not zoom and tile["width"] < tokens:  # a cell is less than a pixel: the one that the page says it is
            page.mouse.move(*middle(tile, row, column))
            said = drawing(page, "atlas").locator(".readout").evaluate("node => ({...node.dataset})")
            assert abs(int(said["query"]) - row) < tokens / tile["height"] + 1
            assert abs(int(said["key"]) - column) < tokens / tile["width"] + 1
            row, column = int(said["query"]), int(said["key"])
        assert exact_at(page, tile, row, column) == pytest.approx(true[row, column], rel=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("case", ["2x2x512", "3x4x1000"])
def test_an_overview_says_what_its_weights_are_at_most(visit: Open, case: str) -> None:
    page = visit(f"case={case}")
    trace, block = made(case), -(-int(case.rpartition("x")[2]) // 128)
    tile = tile_of(page, "encoder.0.0.self", 1)
    for share in (0.2, 0.5, 0.8):
        page.mouse.move(tile["x"] + share * tile["width"], tile["y"] + share * tile["height"])
        said = drawing(page, "atlas").locator(".readout").evaluate("node => ({...node.dataset})")
        row, column = int(said["query"]) // block * block, int(said["key"]) // block * block
        largest = trace.at(said["site"]).head(1)[row : row + block, column : column + block].max()
        assert float(said["most"]) == pytest.approx(largest, abs=0.004)
        assert "weight" not in said


def pixels(page: Page, where: str) -> np.ndarray:
    """Distinct colors along the middle row of a canvas, left to right."""
    script = """node => [...node.getContext("2d").getImageData(0, Math.floor(node.height / 2), node.width, 1).data]"""
    return np.array(page.locator(where).evaluate(script)).reshape(-1, 4)[:, :3]


@pytest.mark.thorough
def test_padding_is_seen_in_the_overview_and_in_a_large_head(visit: Open) -> None:
    page = visit("case=3x4x1000")
    grey = np.array([0xEC, 0xEA, 0xE6])
    whole = (pixels(page, ".card canvas") == grey).all(axis=-1)
    canvas = page.locator(".card canvas").bounding_box()
    assert canvas is not None
    middle_row = canvas["y"] + canvas["height"] / 2
    crossed = [tile["width"] for tile in tiles(page) if tile["y"] <= middle_row < tile["y"] + tile["height"]]
    assert len(crossed) >= 4
    assert whole.sum() == pytest.approx(sum(crossed) * 111 / 1000, abs=2 * len(crossed))
    large = open_large(page)
    shown = (pixels(page, ".large canvas") == grey).all(axis=-1)
    assert shown.sum() == pytest.approx(large["width"] * 111 / 1000, abs=4)


@pytest.mark.thorough
def test_the_mean_of_cells_smaller_than_pixels_can_be_shown(visit: Open) -> None:
    page = visit("case=1x1x1200")
    open_large(page)
    largest = pixels(page, ".large canvas").sum()
    page.get_by_role("button", name="mean").click()
    rest(page)
    expect(page.get_by_role("button", name="mean")).to_have_attribute("aria-pressed", "true")
    until(page, lambda: pixels(page, ".large canvas").sum() > largest)  # a mean is no larger than a maximum, so it is lighter


@pytest.mark.thorough
def test_what_the_server_has_put_away_is_asked_for_again(unwatched: Open, address: str) -> None:
    page = unwatched("case=2x2x300")
    answers: list[int] = []

    def forget_first(route: Route) -> None:
        if not answers:
            urllib.request.urlopen(f"{address}/forget").close()
        route.continue_()

    page.on("response", lambda answer: answers.append(answer.status) if "/headlight/" in answer.url else None)
    page.route("**/headlight/**", forget_first)
    tile = tile_of(page, "encoder.0.0.self", 1)
    page.mouse.click(*middle(tile, 20, 20))
    readout = drawing(page, "atlas").locator(".readout")
    expect(readout).to_have_attribute("data-weight", re.compile("."), timeout=PATIENCE_MS)
    assert (answers[0], answers[-1]) == (404, 200)
    said = readout.evaluate("node => ({...node.dataset})")
    true = made("2x2x300").at("encoder.0.0.self").head(1)[int(said["query"]), int(said["key"])]
    assert float(said["weight"]) == pytest.approx(true, rel=1e-6)


@pytest.mark.thorough
def test_a_part_that_the_server_never_has_ends_in_a_sentence_and_not_in_endless_script_runs(unwatched: Open) -> None:
    page = unwatched("case=2x2x300")
    answers: list[int] = []
    page.on("response", lambda answer: answers.append(answer.status) if "/headlight/" in answer.url else None)
    page.route("**/headlight/**", lambda route: route.fulfill(status=404))
    before = script_runs(page)
    page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", 1), 20, 20))
    lost = drawing(page, "atlas").get_by_role("alert")
    expect(lost).to_contain_text("The server no longer has the numbers of this picture")
    rest(page)
    assert answers == [404] * 4
    assert script_runs(page) == before + 4, "the choice and three tries"
    page.unroute("**/headlight/**")
    lost.get_by_role("button").click()
    expect(lost).to_have_count(0)
    page.mouse.move(0, 0)
    page.mouse.move(*middle(tile_of(page, "encoder.0.1.self", 1), 20, 20))
    expect(drawing(page, "atlas").locator(".readout")).to_have_attribute("data-weight", re.compile("."))


def script_runs(page: Page) -> int:
    """How often the script has run so far."""
    return int(page.get_by_text(re.compile("^chosen ")).inner_text().rpartition(" ")[2])


@pytest.mark.thorough
def test_what_is_there_already_is_not_fetched_again(visit: Open) -> None:
    page = visit("case=2x2x300")
    with page.expect_response("**/headlight/**"):
        page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", 1), 20, 20))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/headlight/" in request.url else None)
    for head in (0, 1):
        page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", head), 20, 20))
        expect(page.get_by_text(re.compile(rf"^chosen encoder\.0\.1\.self head {head}"))).to_be_visible()
        rest(page)
        page.mouse.move(*middle(tile_of(page, "encoder.0.1.self", head), 30, 20))
        expect(drawing(page, "atlas").locator(".readout")).to_have_attribute("data-weight", re.compile("."))
    assert asked == []


@pytest.mark.thorough
@pytest.mark.parametrize(("ratio", "width"), [(0.1, 6000), (1.5, 1200), (3, 800), (4, 360)])
def test_other_screens_and_zooms_are_sharp_and_right(visit: Open, watched: Page, ratio: float, width: int) -> None:
    with another_screen(watched, width, 900, ratio):
        page = visit("case=3x4x1000")
        tile = open_large(page)
        wide, shown = page.locator(".large canvas").evaluate("node => [node.width, node.getBoundingClientRect().width]")
        assert wide == pytest.approx(shown * ratio, abs=1)
        page.mouse.move(*middle(tile, 500, 300))
        readout = drawing(page, "atlas").locator(".readout")
        expect(readout).to_have_attribute("data-weight", re.compile("."))
        said = json.loads(readout.evaluate("node => JSON.stringify(node.dataset)"))
        true = made("3x4x1000").at(said["site"]).head(int(said["head"]))[int(said["query"]), int(said["key"])]
        assert float(said["weight"]) == pytest.approx(true, rel=1e-6)


@pytest.mark.thorough
def test_a_lost_connection_is_waited_for(unwatched: Open) -> None:
    page = unwatched("case=1x1x2000")
    tile = open_large(page)
    page.context.set_offline(True)
    with page.expect_event("requestfailed"):
        page.mouse.move(*middle(tile, 1500, 900))
    readout = drawing(page, "atlas").locator(".readout")
    expect(readout).to_have_attribute("data-most", re.compile("."))
    page.context.set_offline(False)
    expect(readout).to_have_attribute("data-weight", re.compile("."))
    said = readout.evaluate("node => ({...node.dataset})")
    true = made("1x1x2000").at(said["site"]).head(0)[int(said["query"]), int(said["key"])]
    assert float(said["weight"]) == pytest.approx(true, rel=1e-6)
