"""The bundled lecture on the projector of a lecture room: its words stay inside the window beside every view."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.patience import expect

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
WIDTH, HEIGHT = 1024, 768


PRESS = """() => {
  const before = document.querySelector(".sheet:not([inert])");
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true, cancelable: true }));
  const shown = document.querySelector(".sheet:not([inert])");
  const canvases = [...shown.querySelectorAll(".drawing")].flatMap(({ shadowRoot }) => [...shadowRoot.querySelectorAll("canvas")]);
  return [before !== shown, canvases.filter((each) => each.checkVisibility()).map(({ width }) => width)];
}"""
"""Presses a key and looks before anything else can happen: whether another sheet is shown, and the widths of its canvases."""


def test_the_next_step_is_drawn_before_its_key_and_shown_within_the_key_itself(serve: Serve, watched: Page) -> None:
    watched.goto(f"{serve(APP)}/hold/attention.en#6")
    watched.locator("body[data-ahead='7']").wait_for()
    watched.keyboard.press("PageUp")
    watched.locator("body[data-shown^='5/']").wait_for()
    watched.locator("body[data-ahead='6']").wait_for()
    other, widths = watched.evaluate(PRESS)
    assert other
    assert widths
    assert 300 not in widths, "a canvas that was not drawn yet is 300 wide"


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_chapter_is_named_whole_and_another_can_be_chosen(serve: Serve, watched: Page, width: int) -> None:
    watched.set_viewport_size({"width": width, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en")
    chapters = watched.locator("#chapters select")
    for at, chapter in enumerate(chapters.locator("option").all_inner_texts()):
        chapters.select_option(index=at)
        expect(chapters.locator("option:checked")).to_have_text(chapter)
        assert chapter.startswith(f"{at + 1} / 8 · ")
        for cut in ("#chapters", "footer"):
            assert watched.locator(cut).evaluate("(box) => box.scrollWidth <= box.clientWidth"), cut
    assert watched.evaluate("document.activeElement === document.body"), "the keys lead through the lecture again"
    assert watched.evaluate("[...document.fonts].map(({ family, status }) => family + status)") == ["Source Sansloaded"]


def test_the_heading_the_answer_and_the_text_are_in_sight_after_the_reveal(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en#14")  # eight heads, two of which have the same weight
    watched.locator("#question .option").first.wait_for()
    watched.keyboard.press("PageDown")
    expect(watched.locator("#question .right .mark")).to_have_count(2)
    for each in ("#title", "#question .right >> nth=0", "#question .right >> nth=1", "#words > :first-child"):
        expect(watched.locator(each)).to_be_in_viewport(ratio=1)


def test_many_chapters_do_not_push_the_words_out_of_the_window(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en")
    words = watched.locator("#title")
    for _step in range(3):
        expect(words).to_be_visible()
        box = words.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= WIDTH
        assert watched.evaluate("document.querySelector('main').getBoundingClientRect().width") <= WIDTH
        watched.keyboard.press("PageDown")
