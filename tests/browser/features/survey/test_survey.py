"""The page Survey: a finger scrolls over its figures, and the picture of queries and keys moves without being drawn anew."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from model.features.survey import tables
from tests.browser.conftest import Serve
from tests.browser.emulation import a_phone
from tests.browser.patience import expect
from tests.browser.visits import has_parameters, rest, tiles, until

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[4] / "app.py"
MODELS = APP.parent / "checkpoints"
DOTS = ".hl[data-drawing=dots]"
PICTURE = f"{DOTS} svg[role=application]"
TOP = "document.querySelector('[data-testid=stMain]').scrollTop"


def swipe(page: Page, up: int) -> None:
    """A finger that begins in the middle of the dots moves up by so many pixels."""
    page.locator(PICTURE).evaluate("each => each.scrollIntoView({ block: 'center' })")
    box = page.locator(PICTURE).bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = page.context.new_cdp_session(page)
    for name, at in [("touchStart", y), *(("touchMove", y - moved) for moved in range(10, up + 1, 10))]:
        session.send("Input.dispatchTouchEvent", {"type": name, "touchPoints": [{"x": x, "y": at}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.detach()


@pytest.mark.thorough
def test_a_finger_on_the_dots_scrolls_the_page_or_draws_a_box(serve: Serve, watched: Page, within: Callable[[str], Page]) -> None:
    with a_phone(watched):
        within(f"{serve(APP)}/survey?model=induction&text=fox+moon")
        watched.locator(PICTURE).evaluate("each => each.scrollIntoView({ block: 'center' })")
        before = float(watched.evaluate(TOP))
        swipe(watched, 150)
        until(watched, lambda: float(watched.evaluate(TOP)) > before + 50)
        watched.get_by_role("button", name="Mark several heads").click()
        watched.locator(PICTURE).evaluate("each => each.scrollIntoView({ block: 'center' })")
        before = float(watched.evaluate(TOP))
        swipe(watched, 150)
        assert float(watched.evaluate(TOP)) == before
        expect(watched.get_by_role("button", name="Mark several heads")).to_have_attribute("aria-pressed", "false")


def places(page: Page) -> dict[int, tuple[float, float]]:
    """Where the dot of each head is in the window."""
    return {tile["head"]: (tile["x"], tile["y"]) for tile in tiles(page, "dots")}


def test_a_head_is_selected_by_a_click_and_by_keys_and_several_are_marked_by_a_box(
    serve: Serve, watched: Page, within: Callable[[str], Page]
) -> None:
    page = within(f"{serve(APP)}/survey?model=multi30k-de-en&text=Ein+Hund.")
    rest(page, drawn=".js-plotly-plot")  # the rest of the page comes once the dots are painted
    found = tables.read(MODELS / "multi30k-de-en" / "survey.parquet")
    heads, across, up = found.statistics.heads, found.of_heads("entropy"), found.of_heads("previous")
    page.locator(PICTURE).evaluate("each => each.scrollIntoView({ block: 'center' })")
    there = places(page)
    assert set(there) == set(np.flatnonzero(np.isfinite(across) & np.isfinite(up)).tolist())
    order = sorted(there, key=lambda head: across[head])
    assert [there[head][0] for head in order] == sorted(there[head][0] for head in order)
    assert sorted(there, key=lambda head: -there[head][1]) == sorted(there, key=lambda head: up[head])

    right = order[-1]
    page.mouse.move(*there[right])
    expect(page.locator(".tip.shown")).to_contain_text(f"{across[right]:.3f}")
    before = page.url
    page.mouse.click(*there[right], button="right")
    page.mouse.click(*there[order[0]], button="right")
    assert page.url == before, "the other button of the mouse selects nothing"
    page.mouse.click(*there[right])
    has_parameters(page, site=heads[right][0], head=str(heads[right][1]))
    rest(page)
    page.locator(PICTURE).focus()
    page.keyboard.press("ArrowLeft")
    walked = int(str(page.locator(f"{DOTS} .readout").get_attribute("data-head")))
    assert there[walked][0] < there[right][0]
    page.keyboard.press("Enter")
    has_parameters(page, site=heads[walked][0], head=str(heads[walked][1]))
    rest(page)

    left = there[order[0]]
    page.mouse.move(left[0] - 12, left[1] - 12)
    page.mouse.down()
    page.mouse.move(left[0] + 12, left[1] + 12, steps=4)
    page.mouse.up()
    expect(page.get_by_text("Only the heads that are marked in the picture: 1.")).to_have_count(1)
    assert page.locator(f"{DOTS} .dot:not(.aside)").count() == 1
    page.keyboard.press("Escape")
    expect(page.get_by_text("Only the heads that are marked")).to_have_count(0)


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


@pytest.mark.thorough
def test_queries_and_keys_move_as_a_copy_and_are_drawn_once_at_the_end(
    serve: Serve, watched: Page, within: Callable[[str], Page]
) -> None:
    within(f"{serve(APP)}/survey?model=induction&text=fox+moon&site=decoder.0.1.self&head=1")
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
