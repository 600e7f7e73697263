"""The page Survey: a finger scrolls over its figures, and the picture of queries and keys moves without being drawn anew."""

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


PLANE = ".st-key-survey-plane-chart"
COUNT = """() => {
  const { drawArrays } = WebGLRenderingContext.prototype;
  globalThis.strokes = 0;
  WebGLRenderingContext.prototype.drawArrays = function (...all) { strokes += 1; return drawArrays.apply(this, all); };
}"""
RANGES = f"""() => {{
  const {{ xaxis, yaxis }} = document.querySelector("{PLANE} .js-plotly-plot")._fullLayout;
  return [...xaxis.range, ...yaxis.range, xaxis._length, yaxis._length];
}}"""


def test_queries_and_keys_move_as_a_copy_and_are_drawn_once_at_the_end(serve: Serve, watched: Page) -> None:
    opened(watched, f"{serve(APP)}/survey?model=induction&text=fox+moon&site=decoder.0.1.self&head=1")
    assert watched.get_by_role("heading", name="All heads", level=2).count() == 1
    watched.locator(".st-key-survey-read-start button").click()
    area = watched.locator(f"{PLANE} .nsewdrag").first
    area.wait_for()
    rest(watched)
    watched.locator(f"{PLANE} .modebar-btn[data-val=pan]").first.click()
    area.scroll_into_view_if_needed()
    box, before = area.bounding_box(), watched.evaluate(RANGES)
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    watched.evaluate(COUNT)
    watched.mouse.move(x, y)
    watched.mouse.down()
    for moved in range(10, 61, 10):
        watched.mouse.move(x + moved, y - moved / 2)
    copy = watched.locator(f"{PLANE} .moving-dots canvas")
    assert copy.evaluate("each => each.style.transform") == "translate(60px, -30px)"
    inked = "each => each.getContext('2d').getImageData(0, 0, each.width, each.height).data.some(Boolean)"
    assert copy.evaluate(inked), "the copy has the dots"
    assert watched.evaluate("strokes") == 0
    watched.mouse.up()
    until(watched, lambda: int(watched.evaluate("strokes")) > 0)
    assert copy.count() == 0
    after = watched.evaluate(RANGES)
    across, down = ((before[side + 1] - before[side]) / before[4 + side // 2] for side in (0, 2))
    expected = [before[0] - 60 * across, before[1] - 60 * across, before[2] - 30 * down, before[3] - 30 * down]
    assert after[:4] == pytest.approx(expected, abs=1e-6 * abs(before[1] - before[0]))
