"""Weights over an image, in a real browser: the patch under pointer and keys is that of its token, in the color of its weight."""

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page

from model.trace.types import Site
from tests import traces
from tests.browser.patience import expect
from tests.browser.visits import drawing, hovered_weight, middle, rest, tiles
from viz.figures.theme import DARK

pytestmark = pytest.mark.browser

Open = Callable[[str], Page]
SITE, QUERY, HEAD, ADDED = "encoder.0.1.self", "show=overlay&case=image&site=encoder.0.1.self", 1, 2
TRUE = traces.of_an_image(gray=100).at(Site.parse(SITE)).head(HEAD)
COLOR = """(canvas, [across, down]) => {
  const ratio = canvas.width / canvas.clientWidth;
  return [...canvas.getContext("2d").getImageData(across * ratio, down * ratio, 1, 1).data].slice(0, 3);
}"""


def test_the_patch_under_the_pointer_is_that_of_its_token(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}&query=9")
    (place,) = tiles(page, "overlay")
    readout = drawing(page, "overlay").locator(".readout")
    for row, column in ((0, 0), (0, 4), (2, 3), (3, 0), (3, 4)):
        key = ADDED + 5 * row + column
        page.mouse.move(*middle(place, row, column))
        expect(readout).to_have_attribute("data-key", str(key))
        assert float(readout.get_attribute("data-weight") or "nan") == pytest.approx(TRUE[9, key], abs=5e-8)
        expect(readout).to_contain_text(f"“2,3” attends to “{row + 1},{column + 1}”")


def test_a_patch_has_the_color_of_its_weight(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}&query=0")
    (place,) = tiles(page, "overlay")
    canvas = drawing(page, "overlay").locator("canvas.image")
    tint, gray = np.array([int(DARK.accent[at : at + 2], 16) for at in (1, 3, 5)]), 28 + 0.78 * 100
    patches = TRUE[0, ADDED:].reshape(4, 5)
    side = place["width"] / 5
    for (row, column), weight in np.ndenumerate(patches):
        if ADDED + 5 * row + column in (7, 8):
            continue  # hidden: covered
        opacity = 0.88 * weight / patches.max()
        found = canvas.evaluate(COLOR, [(column + 0.5) * side, (row + 0.25) * side])
        assert found == pytest.approx(gray + opacity * (tint - gray), abs=2.5), (row, column)


def test_a_click_selects_the_patch_and_the_column_is_what_looks_at_it(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}")
    (place,) = tiles(page, "overlay")
    page.mouse.click(*middle(place, 1, 2))
    expect(page.get_by_text(f"head {HEAD} query 9 ")).to_be_visible()
    best = int(TRUE[9].argmax())
    name = traces.of_an_image().tokens["source"].texts[best]
    page.mouse.move(5, 5)
    expect(drawing(page, "overlay").locator(".readout")).to_contain_text(f"“2,3” attends most to “{name}”")
    page.get_by_role("button", name="What attends to it").click()
    rest(page)
    (place,) = tiles(page, "overlay")
    page.mouse.move(*middle(place, 3, 1))
    readout = drawing(page, "overlay").locator(".readout")
    expect(readout).to_have_attribute("data-query", str(ADDED + 16))
    assert float(readout.get_attribute("data-weight") or "nan") == pytest.approx(TRUE[ADDED + 16, 9], abs=5e-8)
    page.get_by_role("button", name="[CLS]").click()
    expect(page.get_by_text(f"head {HEAD} query 0 ")).to_be_visible()


def test_keys_move_between_patches_and_select_one(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}&query=9")
    readout = drawing(page, "overlay").locator(".readout")
    drawing(page, "overlay").locator("canvas.image").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight"):  # the last one stays at the edge
        page.keyboard.press(key)
    expect(readout).to_have_attribute("data-key", str(ADDED + 14))
    page.keyboard.press("Enter")
    expect(page.get_by_text(f"head {HEAD} query {ADDED + 14} ")).to_be_visible()
    page.keyboard.press("Escape")
    expect(readout).to_contain_text("attends most to")


def test_smoothly_the_middles_keep_their_colors(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}&query=0")
    (place,) = tiles(page, "overlay")
    side = place["width"] / 5
    canvas = drawing(page, "overlay").locator("canvas.image")
    at = divmod(int(TRUE[0, ADDED:].argmax()), 5)
    border = [(at[1] + (1.0 if at[1] < 4 else 0.0)) * side, (at[0] + 0.25) * side]
    inside = [border[0] + (-3 if at[1] < 4 else 3), border[1]]
    sharp = canvas.evaluate(COLOR, inside)
    page.get_by_role("button", name="Smooth").click()
    expect(drawing(page, "overlay")).to_have_attribute("data-overlay", "smooth")
    rest(page)
    assert canvas.evaluate(COLOR, inside)[0] < sharp[0], "it fades towards its neighbor"


def test_pointing_in_another_drawing_shows_that_row_on_the_image(drawings: Open) -> None:
    page = drawings(f"{QUERY.replace('overlay', 'atlas,overlay')}&head={HEAD}&query=0")
    place = next(tile for tile in tiles(page) if (tile["site"], tile["head"]) == (SITE, HEAD))
    hovered_weight(page, place, 12, 3)
    expect(drawing(page, "overlay")).to_have_attribute("data-token", "12")
    page.mouse.move(5, 5)
    expect(drawing(page, "overlay")).to_have_attribute("data-token", "0")


def test_a_drag_hides_patches_and_one_that_begins_on_a_hidden_one_shows_them(drawings: Open) -> None:
    page = drawings(f"{QUERY}&head={HEAD}&query=0&hides=1")
    (place,) = tiles(page, "overlay")
    page.mouse.move(*middle(place, 0, 1))
    page.mouse.down()
    page.mouse.move(*middle(place, 0, 4))
    page.mouse.move(*middle(place, 2, 4))
    page.mouse.up()
    expect(page.get_by_text("made Gesture")).to_contain_text("positions=(3, 4, 5, 6, 11, 16)")
    rest(page)
    page.mouse.move(*middle(place, 1, 0))  # 7 and 8 are hidden
    page.mouse.down()
    page.mouse.move(*middle(place, 1, 3))
    page.mouse.up()
    expect(page.get_by_text("made Gesture")).to_contain_text("positions=(7, 8)")
    page.mouse.move(5, 5)
    drawing(page, "overlay").locator("canvas.image").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_text("made Gesture")).to_contain_text("positions=(2,)")


def test_a_written_token_shows_where_its_head_looked(drawings: Open) -> None:
    site = Site("decoder", 0, 1, "cross")
    true = traces.of_a_caption(gray=100).at(site).head(HEAD)
    page = drawings(f"show=overlay&case=caption&site={site}&head={HEAD}&query=0")
    overlay = drawing(page, "overlay")
    canvas, readout = overlay.locator("canvas.image"), overlay.locator(".readout")
    assert overlay.locator(".chip[data-row]").all_inner_texts() == ["a", "house", "under", "trees", "<eos>"]
    assert page.get_by_role("button", name="What attends to it").count() == 0, "a patch attends to no word"
    tint, gray = np.array([int(DARK.accent[at : at + 2], 16) for at in (1, 3, 5)]), 28 + 0.78 * 100

    def shows(row: int) -> None:
        expect(overlay).to_have_attribute("data-token", str(row))
        (place,) = tiles(page, "overlay")
        side, patches = place["width"] / 5, true[row, ADDED:].reshape(4, 5)
        for (down, across), weight in np.ndenumerate(patches):
            if ADDED + 5 * down + across in (7, 8):
                continue  # hidden: covered
            opacity = 0.88 * weight / patches.max()
            found = canvas.evaluate(COLOR, [(across + 0.5) * side, (down + 0.25) * side])
            assert found == pytest.approx(gray + opacity * (tint - gray), abs=2.5), (row, down, across)
        best = traces.of_a_caption().tokens["source"].texts[int(true[row].argmax())]
        expect(readout).to_contain_text(f"attends most to “{best}”")

    shows(0)
    overlay.get_by_role("button", name="under").hover()
    shows(2)
    page.mouse.move(5, 5)
    shows(0)
    overlay.get_by_role("button", name="trees").focus()
    shows(3)
    overlay.get_by_role("button", name="house").click()
    expect(page.get_by_text(f"head {HEAD} query 1 ")).to_be_visible()
    page.mouse.move(5, 5)
    page.evaluate("document.activeElement.blur()")
    shows(1)
    (place,) = tiles(page, "overlay")
    page.mouse.move(*middle(place, 3, 1))
    expect(readout).to_have_attribute("data-key", str(ADDED + 16))
    assert float(readout.get_attribute("data-weight") or "nan") == pytest.approx(true[1, ADDED + 16], abs=5e-8)
    page.mouse.click(*middle(place, 0, 0))
    expect(page.get_by_text(f"head {HEAD} query 1 ")).to_be_visible()
