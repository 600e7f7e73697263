"""A page that is opened by its link appears whole, and what has appeared stays where it is."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.servers import APP
from tests.browser.visits import opened

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

PAGES = "explore step compare whatif positions masks circuit training survey checkpoint lecture".split()
SIZES = ((1440, 900), (1024, 768))
MOST = 0.1
"""What is good by the measure of the web, Cumulative Layout Shift."""

SHIFT = """() => new Promise((done) => {
  const isCounted = ({ hadRecentInput }) => !hadRecentInput;
  const total = (entries) => entries.filter(isCounted).reduce((sum, { value }) => sum + value, 0);
  const observer = new PerformanceObserver((list) => done(total(list.getEntries())));
  observer.observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(total(observer.takeRecords())), 500); // of a page without any the observer is never called
})"""
"""All shifts of a page since it was opened: not less than those of its worst five seconds, which the measure counts."""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opened_by_its_link_moves_nothing_that_has_appeared(watched: Page, serve: Serve, path: str) -> None:
    for width, height in SIZES:
        watched.set_viewport_size({"width": width, "height": height})
        page = opened(watched, f"{serve(APP)}/{path}?text=Ein+Hund.")
        assert page.evaluate(SHIFT) <= MOST, (width, height)


def test_the_measure_sees_a_page_that_moves(watched: Page, serve: Serve) -> None:
    page = opened(watched, f"{serve(APP)}/masks?text=Ein+Hund.")
    page.evaluate("document.querySelector('.stMainBlockContainer').style.paddingTop = '300px'")
    assert page.evaluate(SHIFT) > MOST
