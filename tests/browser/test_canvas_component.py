"""Our drawings in a real browser: what is shown is what ran, and nothing of it asks the server."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page

from model.trace.types import Site, Trace
from tests.browser.canvas_harness import HOSTILE, SIGNS, made
from tests.browser.emulation import another_screen
from tests.browser.patience import expect
from tests.browser.visits import drawing, middle, rest, tile_of, tiles, until
from viz.figures.theme import DARK, LIGHT, Scheme

pytestmark = pytest.mark.browser

CROSS = "decoder.0.2.cross"
WRITTEN = """() => {
  window.written = [];
  const pen = CanvasRenderingContext2D.prototype, { fillText } = pen;
  pen.fillText = function (text, x, y) {
    const drawing = this.canvas.closest(".hl")?.dataset.drawing;
    const { width } = this.measureText(text);
    const left = x - width * ({ right: 1, center: 0.5 }[this.textAlign] ?? 0);
    const size = parseFloat(this.font.match(/([\\d.]+)px/)[1]);
    written.push({ text, drawing, align: this.textAlign, left, right: left + width, y, size });
    return fillText.call(this, text, x, y);
  };
}"""
"""Notes what drawings write, where, and in which size."""

Open = Callable[[str], Page]


def read(page: Page, name: str = "atlas") -> dict[str, str]:
    """What a drawing's readout is about."""
    found: dict[str, str] = drawing(page, name).locator(".readout").evaluate("node => ({...node.dataset})")
    return found


def chosen(page: Page, expected: str) -> None:
    expect(page.get_by_text(re.compile(rf"^chosen {expected} "))).to_be_visible()


def runs(page: Page) -> int:
    return int(page.get_by_text(re.compile(r"^chosen .* runs")).inner_text().rsplit(" ", 1)[1])


def hovered(page: Page, trace: Trace, count: int, seed: int, only: str = "") -> list[tuple[float, float]]:
    """Points at `count` cells; what the page says, and the trace's number."""
    rng = np.random.default_rng(seed)
    places = [tile for tile in tiles(page) if not only or tile["site"] == only]
    pairs = []
    for _ in range(count):
        tile = places[rng.integers(len(places))]
        query, key = int(rng.integers(tile["rows"])), int(rng.integers(tile["columns"]))
        page.mouse.move(*middle(tile, query, key))
        said = read(page)
        assert (said["site"], int(said["head"]), int(said["query"]), int(said["key"])) == (tile["site"], tile["head"], query, key)
        pairs.append((float(said["weight"]), float(trace.at(tile["site"]).head(tile["head"])[query, key])))
    return pairs


def test_forty_hovered_cells_are_the_numbers_of_the_trace_rounded_but_for_the_selected_head(drawings: Open) -> None:
    page = drawings("show=atlas&head=5")
    before = runs(page)
    shown, true = np.array(hovered(page, made(""), 40, seed=1)).T
    np.testing.assert_allclose(shown, true, atol=0.004)
    assert runs(page) == before, "hovering asked the server"
    page.mouse.move(*middle(tile_of(page, CROSS, 5), 4, 7))
    exact = made("").at(CROSS).head(5)[4, 7]
    assert float(read(page)["weight"]) == pytest.approx(exact, abs=1e-6)
    assert drawing(page, "atlas").locator(".readout").inner_text().endswith(f"with weight {exact:.4f}")
    tile = tile_of(page, "decoder.0.1.self", 2)
    page.mouse.move(*middle(tile, 3, 2))
    assert "≈" in drawing(page, "atlas").locator(".readout").inner_text()
    page.mouse.move(*middle(tile, 3, 9))
    assert "masked" in drawing(page, "atlas").locator(".readout").inner_text()
    expect(page.locator(".tip.shown")).to_contain_text("dogs → play")


def colour(scheme: Scheme, weight: float) -> np.ndarray:
    """The color of a weight, worked out anew: linear between evenly spaced stops."""
    stops = np.array([[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in scheme.weights])
    return np.array([np.interp(weight * (len(stops) - 1), range(len(stops)), stops[:, channel]) for channel in range(3)])


def pixel(page: Page, canvas: int, x: float, y: float) -> np.ndarray:
    """The color that a card's canvas has at a point of the window."""
    script = """(node, [x, y]) => {
        const box = node.getBoundingClientRect();
        const scale = node.width / box.width;
        return [...node.getContext("2d").getImageData(Math.floor((x - box.x) * scale), Math.floor((y - box.y) * scale), 1, 1).data];
    }"""
    return np.array(page.locator(".card canvas").nth(canvas).evaluate(script, [x, y])[:3])


@pytest.mark.parametrize(("mode", "scheme"), [("light", LIGHT), ("dark", DARK)])
def test_cells_have_the_colours_of_their_weights(drawings: Open, watched: Page, mode: Any, scheme: Scheme) -> None:
    watched.emulate_media(color_scheme=mode)
    page = drawings("show=atlas")
    trace = made("")
    for query, key in [(0, 0), (3, 8), (7, 2), (11, 11), (5, 5)]:
        tile = tile_of(page, "encoder.0.1.self", 3)
        true = colour(scheme, trace.at("encoder.0.1.self").head(3)[query, key])
        np.testing.assert_allclose(pixel(page, 0, *middle(tile, query, key)), true, atol=3)
    masked = tile_of(page, "decoder.0.0.self", 6)
    grey = [int(scheme.masked[i : i + 2], 16) for i in (1, 3, 5)]
    np.testing.assert_array_equal(pixel(page, 1, *middle(masked, 2, 8)), grey)


def test_a_flip_to_dark_repaints_and_keeps_what_is_open(drawings: Open) -> None:
    page = drawings("show=atlas")
    page.mouse.dblclick(*middle(tile_of(page, "encoder.0.0.self", 1), 5, 5))
    expect(page.locator(".large")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    card = "node => node.style.getPropertyValue('--hl-card')"
    until(page, lambda: drawing(page, "atlas").evaluate(card) == DARK.card)
    expect(page.locator(".large")).to_be_visible()


def test_a_cell_smaller_than_a_pixel_is_the_largest_of_its_neighbours(drawings: Open) -> None:
    page = drawings("show=atlas&case=long")
    tile = tile_of(page, "encoder.0.2.self", 0)
    weights = made("long").at("encoder.0.2.self").head(0)
    side = round(tile["width"])
    assert side < 42, "the tiles have become larger than this test expects"
    for across, down in [(3, 5), (20, 11), (30, 28)]:
        parts = [slice(int(at * 42 / side), int(np.ceil((at + 1) * 42 / side))) for at in (down, across)]
        true = colour(LIGHT, weights[parts[0], parts[1]].max())
        found = pixel(page, 0, tile["x"] + across + 0.5, tile["y"] + down + 0.5)
        np.testing.assert_allclose(found, true, atol=3)


def test_a_click_selects_a_head_a_pinch_of_the_trackpad_opens_it_and_the_wheel_alone_scrolls(drawings: Open) -> None:
    page = drawings("show=atlas")
    page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", 3), 2, 2))
    chosen(page, r"encoder\.0\.1\.self head 3 query -1")
    rest(page)
    page.mouse.move(*middle(tile_of(page, "encoder.0.1.self", 3), 2, 2))
    true = made("").at("encoder.0.1.self").head(3)[2, 2]
    assert float(read(page)["weight"]) == pytest.approx(true, abs=1e-6)
    page.mouse.move(*middle(tile_of(page, "encoder.0.0.self", 1), 5, 5))
    page.mouse.wheel(0, -100)
    expect(page.locator(".large")).to_be_hidden()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    expect(page.locator(".large")).to_be_visible()


def test_the_keyboard_moves_among_heads_and_selects(drawings: Open) -> None:
    page = drawings("show=atlas&site=decoder.0.0.self")
    page.locator(".card").nth(1).locator("button").focus()
    page.keyboard.press("Tab")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert (read(page)["site"], read(page)["head"]) == ("decoder.0.1.self", "2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    chosen(page, r"decoder\.0\.2\.self head 2")
    rest(page)
    page.keyboard.press("ArrowLeft")
    assert read(page)["head"] == "1", "a script run took the keyboard away"


def test_a_head_opens_large_and_is_read_by_keys(drawings: Open) -> None:
    page = drawings(f"show=atlas&site={CROSS}&head=4")
    page.locator(".card").nth(2).locator("button").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(page.locator(".large")).to_be_visible()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
    assert (read(page)["query"], read(page)["key"]) == ("2", "1")
    assert float(read(page)["weight"]) == pytest.approx(made("").at(CROSS).head(4)[2, 1], abs=1e-6)
    page.keyboard.press("Enter")
    chosen(page, r"decoder\.0\.2\.cross head 4 query 2")
    page.keyboard.press("Escape")
    expect(page.locator(".large")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    assert read(page)["head"] == "3", "the keyboard did not come back to the overview"


def test_zooming_in_shows_fewer_cells_and_hovering_stays_true_and_survives_a_script_run(drawings: Open) -> None:
    page = drawings("show=atlas&case=long")
    trace = made("long")
    page.mouse.dblclick(*middle(tile_of(page, "encoder.0.1.self", 6), 20, 20))
    expect(page.locator(".large")).to_be_visible()
    rest(page)
    whole = tiles(page)[0]
    assert (whole["rows"], whole["columns"]) == (42, 42)
    page.mouse.move(*middle(whole, 30, 12))
    page.mouse.wheel(0, -500)
    until(page, lambda: bool(tiles(page)[0]["rows"] < 30))
    zoomed = tiles(page)[0]
    for query, key in [(30, 12), (29, 11), (31, 13)]:
        page.mouse.move(*middle(zoomed, query, key))
        said = read(page)
        assert (said["query"], said["key"]) == (str(query), str(key))
        assert float(said["weight"]) == pytest.approx(trace.at("encoder.0.1.self").head(6)[query, key], abs=1e-6)
    page.keyboard.press("+")
    page.keyboard.press("+")
    until(page, lambda: bool(tiles(page)[0]["rows"] < 20))
    before, count = tiles(page)[0], runs(page)
    page.get_by_label("a text field").fill("something else")
    page.get_by_label("a text field").press("Enter")
    expect(page.get_by_text(re.compile(rf"runs {count + 1}$"))).to_be_visible()
    rest(page)
    assert tiles(page)[0]["rows"] == before["rows"], "a script run undid the zoom"
    drawing(page, "atlas").locator(".large canvas").focus()
    for _ in range(12):
        page.keyboard.press("-")
    expect(page.locator(".large")).to_be_hidden()


def test_pointing_at_a_token_lights_its_row_everywhere(drawings: Open) -> None:
    page = drawings("show=strips,atlas,lines")
    page.mouse.move(*middle(tile_of(page, CROSS, 1), 2, 3))
    expect(page.locator("[data-strip=target] .chip.lit bdi")).to_have_text("dogs")
    expect(page.locator("[data-strip=target] .chip.reads bdi")).to_have_text("young")
    expect(page.locator("[data-strip=source] .chip.key bdi")).to_have_text("hunde")
    page.mouse.move(0, 0)
    expect(page.locator(".chip.lit")).to_have_count(0)


def test_a_chip_shows_what_else_could_have_been_written_and_chips_are_moved_through_by_keys(drawings: Open) -> None:
    page = drawings("show=strips")
    step = made("").steps[2]
    page.locator("[data-strip=target] .chip").nth(3).hover()
    rows = page.locator(".tip.shown .candidate")
    expect(rows).to_have_count(6)
    numbers = rows.locator(".number").all_inner_texts()
    assert numbers[:5] == [f"{np.exp(candidate.log_probability):.4f}" for candidate in step.candidates]
    expect(page.locator(".tip.shown .candidate.chosen bdi")).to_have_text("dogs")
    page.mouse.move(0, 0)
    page.locator("[data-strip=target] .chip").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "“dogs” was generated with probability" in page.locator(".hl[data-drawing=strips] .readout").inner_text()
    page.keyboard.press("Enter")
    chosen(page, r".* query 2")
    expect(page.locator("[data-strip=target] .chip").nth(3)).to_be_focused()


def test_a_chip_explains_the_sign_of_its_vocabulary(drawings: Open) -> None:
    page = drawings("show=strips&case=signs")
    blank = "“␣” is a space: the token begins a word. Its vocabulary writes the space as “▁” or “Ġ”."
    sentences = [
        "",
        "“##” marks a piece that continues the word before it.",
        *[blank] * 3,
        "“\\xNN” is one byte. A character in several bytes may be cut: its other bytes are in the tokens beside it.",
        "“↵” is a line break.",
    ]
    for token, sentence in zip(SIGNS, sentences, strict=True):
        page.locator("[data-strip=source] .chip").nth(1 + SIGNS.index(token)).hover()
        expect(page.locator(".tip.shown p")).to_have_text([sentence] if sentence else [])


def test_a_chip_selects_the_row_that_wrote_it(drawings: Open) -> None:
    page = drawings("show=strips,lines")
    page.locator("[data-strip=target] .chip").nth(3).click()
    chosen(page, r"decoder\.0\.2\.cross head 0 query 2")
    expect(page.locator(".chip.selected bdi")).to_have_text("dogs")
    count = runs(page)
    page.locator("[data-strip=source] .chip").nth(3).click()
    page.locator("[data-strip=target] .chip").first.click()
    rest(page)
    assert runs(page) == count, "a token that is no query of this site selected something"


def test_lines_say_where_a_token_looks_most(drawings: Open) -> None:
    page = drawings("show=lines&head=2")
    weights = made("").at(CROSS).head(2)
    spots = tiles(page, "lines")
    query = next(spot for spot in spots if (spot["side"], spot["index"]) == ("query", 4))
    page.mouse.move(query["x"], query["y"])
    said = read(page, "lines")
    assert (int(said["query"]), int(said["key"])) == (4, int(weights[4].argmax()))
    assert float(said["weight"]) == pytest.approx(weights[4].max(), abs=1e-6)
    key = next(spot for spot in spots if (spot["side"], spot["index"]) == ("key", 7))
    page.mouse.move(key["x"], key["y"])
    assert (int(read(page, "lines")["query"]), read(page, "lines")["key"]) == (int(weights[:, 7].argmax()), "7")
    page.mouse.click(query["x"], query["y"])
    chosen(page, r".* query 4")


def test_lines_are_read_by_keys(drawings: Open) -> None:
    page = drawings("show=lines&query=2")
    weights = made("").at(CROSS).head(0)
    page.locator(".hl[data-drawing=lines] canvas").focus()
    page.keyboard.press("ArrowDown")
    assert read(page, "lines")["query"] == "3"
    page.keyboard.press("ArrowRight")
    assert (read(page, "lines")["key"], int(read(page, "lines")["query"])) == ("3", int(weights[:, 3].argmax()))
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    chosen(page, r".* query 3")


def test_many_lines_are_no_higher_than_two_windows_and_none_of_their_labels_touch(drawings: Open) -> None:
    page = drawings("show=lines&case=1x1x200")
    box = drawing(page, "lines").locator("canvas").bounding_box()
    assert box is not None
    assert box["height"] < 1300, "200 rows of the height of a label are 3,600 pixels"
    page.evaluate(WRITTEN)
    for place in ((box["x"] + 5, box["y"] + 300), (0, 0)):  # a token is emphasized, then none
        page.evaluate("written.length = 0")
        page.mouse.move(*place)
        until(page, lambda: page.evaluate("written.length > 40"))
        rest(page)
        lefts = page.evaluate("written.filter(({ align }) => align === 'right').map(({ y }) => y)")
        assert min(below - above for above, below in pairwise(sorted(set(lefts))[1:])) >= 11.5  # the first is the title


def test_a_tree_whose_numbers_differ_in_their_last_digits_keeps_the_focus(drawings: Open) -> None:
    """Runs of one search that were batched with different others do: their trees are drawn anew."""
    page = drawings("show=lines,tree")
    third = drawing(page, "tree").locator('.node[data-rank="2"]')
    before, total = runs(page), third.get_attribute("data-total")
    third.focus()
    page.keyboard.press("Enter")
    expect(third).to_have_attribute("aria-current", "true")
    until(page, lambda: runs(page) > before)
    rest(page)
    assert third.get_attribute("data-total") != total
    expect(third).to_be_focused()


def step_of(page: Page) -> str | None:
    return drawing(page, "player").get_attribute("data-step")


def test_no_line_of_tokens_is_cut_at_the_top_where_they_scroll(drawings: Open, watched: Page) -> None:
    """The chip of the step is scrolled into view, and the first line that is seen above it is whole."""
    cut = """all => all.filter((box) => box.scrollTop > 0).map((box) => [...box.children].filter(
      ({ offsetTop, offsetHeight }) => offsetTop < box.scrollTop && offsetTop + offsetHeight > box.scrollTop + 1).length)"""
    with another_screen(watched, 420, 800, 1):
        page = drawings("show=player&case=long&step=30")
        assert drawing(page, "player").locator(".chips").evaluate_all(cut) == [0]


def test_ten_quick_presses_are_ten_steps_and_keys_step_from_anywhere_but_a_text_field(drawings: Open) -> None:
    page = drawings("show=player")
    before = runs(page)
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(drawing(page, "player")).to_have_attribute("data-step", "10")
    chosen(page, r".* step 10")
    rest(page)
    assert runs(page) - before < 10, "the steps were asked of the server one by one"
    assert step_of(page) == "10"
    page.keyboard.press("End")
    expect(drawing(page, "player")).to_have_attribute("data-step", "11")
    page.keyboard.press("Home")
    expect(drawing(page, "player")).to_have_attribute("data-step", "0")
    field = page.get_by_label("a text field")
    field.focus()
    for key in ("ArrowRight", "End", "Space", "ArrowLeft"):
        page.keyboard.press(key)
    rest(page)
    assert step_of(page) == "0"
    assert field.input_value() == " "
    page.goto("about:blank")  # the next test loads its page: reports of the last steps and of the field are still on their way


def test_the_player_shows_the_numbers_of_the_step_and_of_another_head_at_once(drawings: Open) -> None:
    page = drawings("show=player&step=3&head=6")
    trace = made("")
    step = trace.steps[3]
    expect(page.locator(".transport output")).to_have_text("step 4 of 12")
    found = [
        float(value or "") for value in page.locator(".candidate").evaluate_all("all => all.map(one => one.dataset.probability)")
    ]
    assert found[:5] == pytest.approx([np.exp(candidate.log_probability) for candidate in step.candidates])
    expect(page.locator("[data-strip=target] .chip.selected bdi")).to_have_text("play")
    expect(page.locator("[data-strip=target] .chip:visible")).to_have_count(5)
    place = tiles(page, "player")[0]
    for query, key in [(0, 0), (3, 9), (1, 5)]:
        page.mouse.move(*middle(place, query, key))
        assert float(read(page, "player")["weight"]) == pytest.approx(trace.at(CROSS).head(6)[query, key], abs=1e-6)
    page.mouse.move(*middle(place, 0, 0))
    page.mouse.move(*middle(place, 8, 3))
    expect(page.locator(".tip.shown")).to_have_count(0)
    page.locator(".tile").nth(3).click()
    expect(drawing(page, "player")).to_have_attribute("data-head", "3")
    page.mouse.move(*middle(tiles(page, "player")[0], 3, 1))
    assert float(read(page, "player")["weight"]) == pytest.approx(trace.at(CROSS).head(3)[3, 1], abs=1e-6)
    chosen(page, r".* head 3 .*")


def test_an_encoder_is_shown_whole_and_the_page_says_why(drawings: Open) -> None:
    page = drawings("show=player&site=encoder.0.0.self")
    expect(page.locator(".note")).to_contain_text("The encoder reads the whole source at once")
    page.mouse.move(*middle(tiles(page, "player")[0], 11, 3))
    true = made("").at(Site.parse("encoder.0.0.self")).head(0)[11, 3]
    assert float(read(page, "player")["weight"]) == pytest.approx(true, abs=1e-6)


@pytest.mark.parametrize("case", ["language", "encoder", "single", "twice"])
def test_other_kinds_of_runs_are_drawn(drawings: Open, case: str) -> None:
    page = drawings(f"case={case}")
    trace = made(case)
    assert {tile["site"] for tile in tiles(page)} == {str(site) for site in trace.attention}
    shown, true = np.array(hovered(page, trace, 8, seed=3)).T
    np.testing.assert_allclose(shown, true, atol=0.004)


def test_hostile_text_stays_text(drawings: Open) -> None:
    page = drawings("case=hostile")
    assert page.locator(".hl img, .hl script, .tip img").count() == 0
    page.locator("[data-strip=target] .chip").nth(1).first.hover()
    expect(page.locator(".tip.shown b").first).to_have_text(HOSTILE[0].replace(" ", "␣"))
    page.mouse.move(*middle(tile_of(page, CROSS, 0), 1, 1))
    assert HOSTILE[0][:12] in drawing(page, "atlas").locator(".readout").inner_text()
    assert page.locator(".tip img, .readout img").count() == 0


@pytest.mark.parametrize("case", ["", "long", "hostile"])
def test_nothing_is_wider_than_the_window(drawings: Open, watched: Page, case: str) -> None:
    watched.set_viewport_size({"width": 390, "height": 800})
    page = drawings(f"case={case}")
    fits(page)
    page.set_viewport_size({"width": 1024, "height": 800})
    rest(page)
    fits(page)


def fits(page: Page) -> None:
    """Neither the page nor a drawing is wider than its room."""
    assert page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth") == 0
    for name in ("strips", "atlas", "lines", "player"):
        assert drawing(page, name).evaluate("node => node.scrollWidth - node.clientWidth") <= 0


@pytest.mark.parametrize("ratio", [1, 1.5, 2, 3])
def test_canvases_are_as_sharp_as_the_screen(drawings: Open, watched: Page, ratio: float) -> None:
    with another_screen(watched, 1200, 800, ratio):
        page = drawings("show=atlas,lines")
        for canvas in page.locator(".hl canvas:visible").all():
            wide, shown = canvas.evaluate("node => [node.width, node.getBoundingClientRect().width]")
            assert wide == pytest.approx(shown * ratio, abs=1)
        shown, true = np.array(hovered(page, made(""), 6, seed=5)).T
        np.testing.assert_allclose(shown, true, atol=0.004)
