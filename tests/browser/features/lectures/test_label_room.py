"""`lecture check` computes which labels a lecturer's window cuts; the browser cuts the same ones."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.servers import APP
from tests.browser.visits import until
from tests.known import bundled_engine
from viz.claims.runs import StepRuns
from viz.features.lectures.presenter.label_room import WINDOWS, cut_labels
from viz.features.lectures.presenter.pictures import picture
from viz.features.lectures.presenter.questions import revealed_view
from viz.features.lectures.script import library

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

SPY = """
window.written = [];
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  window.written.push(text);
  return fillText.call(this, text, ...rest);
};
"""
STEP, MASKS, PADDING = 14, 16, 17
"""Steps of the bundled lecture: a long sentence, maps beside each other, and a mask with many columns."""


@pytest.mark.parametrize("size", [1.5, 2.6])
@pytest.mark.parametrize("window", WINDOWS)
def test_the_labels_that_are_cut_are_those_that_the_check_names(
    serve: Serve, watched: Page, window: tuple[int, int], size: float
) -> None:
    engine = bundled_engine()
    watched.set_viewport_size({"width": window[0], "height": window[1]})
    watched.add_init_script(f"localStorage.setItem('headlight-size', {size});{SPY}")
    for number in (STEP, MASKS):
        step = library.load("attention.en").steps[number]
        found = picture(engine, step.page, revealed_view(StepRuns(engine, step), step))
        named = set(cut_labels(found, window, size))
        watched.goto(f"{serve(APP)}/hold/attention.en#{number + 1}")
        watched.reload()
        watched.locator("#question .token").first.wait_for()
        watched.keyboard.press("PageDown")
        watched.locator(".sheet:not([inert]) canvas >> visible=true").first.wait_for()
        until(watched, lambda: watched.evaluate("[...document.fonts].every(({ status }) => status === 'loaded')"))
        watched.evaluate("() => { written.length = 0; dispatchEvent(new Event('resize')); }")
        until(watched, lambda: watched.evaluate("written.length > 20"))
        drawn = {text for text in watched.evaluate("written") if text.endswith("…")}
        assert {text for text in drawn if not any(label.startswith(text[:-1]) for label in named)} == set()
        assert bool(drawn) == bool(named) == (size > 2 and number == STEP)


def test_a_mask_says_in_each_cell_what_is_added_where_the_cells_are_narrow(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    watched.add_init_script(SPY)
    watched.goto(f"{serve(APP)}/hold/attention.en#{PADDING + 1}")
    watched.reload()
    watched.locator(".sheet:not([inert]) canvas >> visible=true").first.wait_for()
    until(watched, lambda: watched.evaluate("written.filter((text) => text === '<pad>').length > 0"))
    cells = "const from = written.indexOf('<pad>'); return written.filter((text) => ['0', '−∞'].includes(text)).length"
    until(watched, lambda: watched.evaluate(f"(() => {{ {cells} }})()") > 12 * 18)
