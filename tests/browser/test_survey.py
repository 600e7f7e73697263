"""The page Survey on a telephone: a finger scrolls over its figures."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.emulation import a_phone
from tests.browser.visits import opened, rest, until

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
SCATTER = ".st-key-survey-scatter .nsewdrag"
TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def swipe(page: Page, up: int) -> None:
    """A finger that begins in the middle of the scatter moves up by so many pixels."""
    page.locator(SCATTER).first.evaluate("each => each.scrollIntoView({ block: 'center' })")
    box = page.locator(SCATTER).first.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for name, at in [("touchStart", y), *(("touchMove", y - moved) for moved in range(10, up + 1, 10))]:
        session.send("Input.dispatchTouchEvent", {"type": name, "touchPoints": [{"x": x, "y": at}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


def test_a_finger_on_the_scatter_scrolls_the_page(serve: Serve, watched: Page) -> None:
    with a_phone(watched):
        opened(watched, f"{serve(APP)}/survey?model=induction&text=fox+moon")
        watched.locator(SCATTER).first.wait_for()
        rest(watched)
        watched.locator(SCATTER).first.evaluate("each => each.scrollIntoView({ block: 'center' })")
        before = float(watched.evaluate(TOP))
        swipe(watched, 150)
        until(watched, lambda: float(watched.evaluate(TOP)) > before + 50)
