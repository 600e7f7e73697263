"""Keys of the page: rows of equal controls are one stop of Tab, a map is near its start, the focus comes back from a dialog."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.visits import opened, rest, until

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
MOST = 60
MOST_TO_A_CELL = 8

FOCUSED = """() => {
  let node = document.activeElement;
  while (node.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  const outside = node.getRootNode().host ?? node;
  const key = outside.closest("[class*=st-key-]")?.className.match(/st-key-([\\w-]+)/)[1] ?? "";
  return `${key} ${node.tagName} ${node.getAttribute("aria-label") || node.innerText || ""}`.replace(/\\s+/g, " ");
}"""
"""The key of the part of the page that has the focus, the focused element, and its name."""


def press(page: Page, *keys: str) -> list[str]:
    """What has the focus after each key."""
    seen = []
    for key in keys:
        page.keyboard.press(key)
        seen.append(page.evaluate(FOCUSED))
    return seen


def stops(page: Page) -> list[str]:
    """What Tab reaches, from the start of a page to its end."""
    page.evaluate("document.activeElement.blur()")
    seen = press(page, *["Tab"] * MOST)
    return seen[: next((at for at, each in enumerate(seen) if " BODY " in each), MOST)]


def test_pages_heads_and_lectures_are_one_stop_each_and_arrow_keys_move_within(watched: Page, serve: Serve) -> None:
    page = opened(watched, f"{serve(APP)}/?text=Ein+Hund.")
    seen = stops(page)
    assert len([each for each in seen if each.endswith((" Explore", " Masks"))]) == 1
    assert len([each for each in seen if each.startswith("atlas ")]) == 1
    page.get_by_test_id("stSidebarNavLink").first.focus()
    assert press(page, "ArrowDown", "ArrowDown", "ArrowUp")[2].endswith("Step through")
    press(page, *["ArrowDown"] * 9)
    assert page.evaluate(FOCUSED).endswith("Lecture")
    page.keyboard.press("Enter")
    expect(page.locator(".st-key-lecture-copies button").nth(3)).to_be_visible()
    expect(page.get_by_text("Start the lecture").nth(3)).to_be_visible()
    rest(page)
    lectures = page.get_by_text("Start the lecture").count()
    seen = stops(page)
    assert len([each for each in seen if each.startswith("lecture-")]) == lectures
    assert len([each for each in seen if each.startswith("copy-")]) == 1
    page.locator(".st-key-lecture-copies button").nth(1).focus()
    assert press(page, "Shift+Tab", "Tab")[1].startswith("copy-"), "the row is there again"


@pytest.mark.thorough
def test_a_cell_of_the_large_map_is_a_few_tabs_from_the_start_of_the_page(watched: Page, serve: Serve) -> None:
    page = opened(watched, f"{serve(APP)}/?text=Ein+Hund.")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("stSkipToContent")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Enter")
    assert page.evaluate(FOCUSED).startswith("atlas CANVAS Encoder self-attention")
    press(page, *["ArrowRight"] * 8)
    assert page.evaluate(FOCUSED).startswith("atlas CANVAS Decoder self-attention"), "the next card"
    seen = press(page, *["Tab"] * (MOST_TO_A_CELL - 1))
    assert any(each.startswith("heat-cells CANVAS") for each in seen), seen


@pytest.mark.thorough
def test_a_table_is_left_by_one_tab(watched: Page, serve: Serve) -> None:
    page = opened(watched, f"{serve(APP)}/survey?text=Ein+Hund.")
    expect(page.locator(".st-key-survey-heads canvas").first).to_be_visible()
    rest(page)
    assert len([each for each in stops(page) if each.startswith("survey-heads CANVAS")]) == 1


@pytest.mark.thorough
def test_the_focus_comes_back_from_the_dialog_of_models(within: Callable[[str], Page], serve: Serve) -> None:
    page = within(f"{serve(APP)}/?text=Ein+Hund.")
    dialog = page.get_by_role("dialog", name="Open a model")
    ways: tuple[Callable[[], object], ...] = (
        lambda: page.keyboard.press("Escape"),
        lambda: dialog.get_by_label("Close").click(),
        lambda: page.locator(".st-key-model-list").get_by_role("button", name="Reverse digits").press("Enter"),
    )
    for leave in ways:
        page.get_by_role("combobox", name="Model").press("ArrowDown")
        page.get_by_role("option", name="Open a model…").click()
        expect(dialog).to_be_visible()
        rest(page)
        assert not page.evaluate(FOCUSED).startswith("widget-model ")
        leave()
        expect(dialog).to_be_hidden()
        rest(page)
        until(page, lambda: page.evaluate(FOCUSED).startswith("widget-model INPUT"))
    expect(page.get_by_role("combobox", name="Model")).to_have_value("Reverse digits")


@pytest.mark.thorough
def test_escape_closes_a_dialog_whose_button_lost_the_focus_while_it_made_a_file(watched: Page, serve: Serve) -> None:
    page = opened(watched, f"{serve(APP)}/explore?text=Ein+Hund.")
    page.get_by_role("button", name="Export …").click()
    page.get_by_role("button", name="Figure …").click()
    button = page.get_by_role("button", name="Download as PNG")
    with page.expect_download():
        button.click()
    expect(button).to_be_enabled()
    page.evaluate(
        "document.activeElement.blur()"
    )  # on a slow machine it is lost to the disabled button; on a quick one it comes back
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
