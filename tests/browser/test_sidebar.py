"""The sidebar put away, which is the first thing that a lecturer does."""

from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from tests.browser.conftest import Serve
from tests.browser.visits import opened, rest

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"


def box(locator: Locator) -> FloatRect:
    found = locator.bounding_box()
    assert found is not None
    return found


def overlap(one: FloatRect, other: FloatRect) -> bool:
    beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
    apart = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    return not (beside or apart)


@pytest.mark.parametrize(
    ("path", "first"), [("explore", ".st-key-widget-text"), ("checkpoint", ".stMainBlockContainer > .stVerticalBlock")]
)
def test_a_sidebar_that_is_put_away_covers_nothing(watched: Page, serve: Serve, path: str, first: str) -> None:
    watched.set_viewport_size({"width": 1440, "height": 800})
    opened(watched, f"{serve(APP)}/{path}") if path == "explore" else watched.goto(f"{serve(APP)}/{path}")
    line = watched.locator(first).first
    line.wait_for()
    watched.get_by_test_id("stSidebar").hover()
    watched.get_by_label("Collapse sidebar").click()
    back = watched.get_by_test_id("stExpandSidebarButton")
    expect(back).to_be_visible()
    for width in (720, 1000, 1024, 1440, 1920):  # 720: a laptop at 200 %
        watched.set_viewport_size({"width": width, "height": 768})
        rest(watched)
        for above in (back, watched.get_by_test_id("stHeaderLogo")):
            assert not overlap(box(above), box(line)), f"at {width} px"
