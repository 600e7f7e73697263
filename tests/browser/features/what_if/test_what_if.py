"""The page What if in a real browser, by mouse, keyboard and touch, on every kind of model and on a Hugging Face folder.

tests/app/test_app_bundled.py draws it with every bundled model.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from model.engine.sent_files import opened_name
from tests import folders
from tests.browser.emulation import touch
from tests.browser.patience import expect
from tests.browser.servers import APP
from tests.browser.visits import (
    chips,
    drawing,
    has_parameters,
    hovered_weight,
    loud,
    middle,
    overflow,
    parameters,
    rest,
    tile_of,
    tiles,
    until,
)

pytestmark = pytest.mark.browser

TEXT, FIRST, SITE = "Im Park spielt ein alter Mann Gitarre.", "silence site=encoder.0.0.self head=1", "decoder.0.1.cross"
BRUSHED = f"{FIRST}; forbid site={SITE} head=3 query=1,2 key=2,3"


@pytest.fixture
def with_an_edit(within: Callable[[str], Page], serve: Callable[[Path], str]) -> Callable[[], Page]:
    """Opens the page with an edit."""
    link = {"model": "multi30k-de-en", "text": TEXT, "edit": FIRST}
    return lambda: within(f"{serve(APP)}/whatif?{urlencode(link)}")


def silence(page: Page, tile: dict[str, Any]) -> None:
    """Points at a head and presses S, once the page shows what it points at."""
    hovered_weight(page, tile, 0, 0)
    page.keyboard.press("s")


def edits_of(page: Page) -> tuple[str, str]:
    """The edits in the link, and those that are switched off."""
    return parameters(page).get("edit", ""), parameters(page).get("off", "")


def test_gestures_become_edits_and_undo_takes_them_back(watched: Page, with_an_edit: Callable[[], Page]) -> None:
    watched.set_viewport_size({"width": 1440, "height": 1900})
    page = with_an_edit()
    silence(page, tile_of(page, SITE, 3))
    has_parameters(page, edit=f"{FIRST}; silence site={SITE} head=3")
    rest(page)
    page.keyboard.press("Control+z")
    has_parameters(page, edit=FIRST)
    rest(page)
    chips(page, "source").nth(7).click()
    has_parameters(page, edit=f"{FIRST}; forbid key=gitarre")
    rest(page)
    expect(page.locator(".st-key-card-writes-now ins")).to_contain_text(["accordion"])
    chips(page, "source").nth(7).click()
    has_parameters(page, edit=FIRST)
    rest(page)
    page.mouse.dblclick(*middle(tile_of(page, SITE, 3), 2, 2))
    rest(page)
    large = drawing(page, "atlas").first
    large.locator("[data-tool=forbid]").click()
    open_head = tile_of(page, SITE, 3)
    page.mouse.move(*middle(open_head, 1, 2))
    page.mouse.down()
    page.mouse.move(*middle(open_head, 2, 3), steps=4)
    page.mouse.up()
    has_parameters(page, edit=BRUSHED)
    rest(page)
    expect(large.locator("[data-tool=forbid]")).to_have_attribute("aria-pressed", "true")
    large.locator("[data-tool=allow]").press("Enter")
    large.locator(".large canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "allow+site" in url)
    rest(page)
    page.set_viewport_size({"width": 390, "height": 844})
    rest(page)
    assert overflow(page) <= 1, "the tools of the open head did not fit onto a phone"


@pytest.mark.thorough
def test_a_finger_hides_a_token_and_brushes_cells(watched: Page, with_an_edit: Callable[[], Page]) -> None:
    watched.set_viewport_size({"width": 768, "height": 1900})
    page = with_an_edit()
    box = chips(page, "source").nth(7).bounding_box()
    assert box is not None
    touch(page, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2))
    has_parameters(page, edit=f"{FIRST}; forbid key=gitarre")
    rest(page)
    page.get_by_role("button", name="Undo").click()
    has_parameters(page, edit=FIRST)
    rest(page)
    page.mouse.dblclick(*middle(tile_of(page, SITE, 3), 2, 2))
    rest(page)
    drawing(page, "atlas").first.locator("[data-tool=forbid]").click()
    open_head = tile_of(page, SITE, 3)
    touch(page, middle(open_head, 1, 2), middle(open_head, 2, 2), middle(open_head, 2, 3))
    has_parameters(page, edit=BRUSHED)
    rest(page)


@pytest.mark.thorough
def test_every_kind_of_model_answers_what_if(
    watched: Page, within: Callable[[str], Page], serve: Callable[[Path], str], tmp_path: Path
) -> None:
    folders.save(tmp_path / "tiny-gpt2", "gpt2")  # of the transformers library; its network has random weights
    page = within(f"{serve(APP)}/checkpoint")
    page.set_viewport_size({"width": 1440, "height": 2600})
    path = page.get_by_role("textbox", name="Path, name or address of a model")
    path.fill(str(tmp_path / "tiny-gpt2"))
    path.press("Enter")
    expect(page.locator(".st-key-open-in-explore button")).to_be_visible()
    rest(page)
    for name in ("tatoeba-en-zh", "wikitext2-lm", tiny := opened_name(tmp_path / "tiny-gpt2")):
        link = {"model": name} | ({"text": "4 6 5 8 9"} if name == tiny else {})
        within(f"{serve(APP)}/whatif?{urlencode(link)}")
        before = edits_of(page)
        silence(page, tiles(page)[-1])
        until(page, lambda before=before: edits_of(page) != before)  # type: ignore[misc]
        rest(page)
        expect(page.locator(".st-key-card-likelihood")).to_be_visible()
        assert loud(page).all_inner_texts() == [], name
