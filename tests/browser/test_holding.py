"""The bundled lecture on the projector of a lecture room: its words stay inside the window beside every view."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Serve

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
WIDTH, HEIGHT = 1024, 768


def test_many_chapters_do_not_push_the_words_out_of_the_window(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en")
    words = watched.locator(".side .words").first
    for _step in range(3):
        expect(words).to_be_visible()
        box = words.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= WIDTH
        assert watched.evaluate("document.querySelector('main').getBoundingClientRect().width") <= WIDTH
        watched.keyboard.press("PageDown")
