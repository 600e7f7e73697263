"""The tabs of the benchmarks: what a page does that never ends, and that the next page is measured all the same."""

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Playwright

from benchmarks import peers
from benchmarks.browsers import Browser
from benchmarks.servers import serving_files
from benchmarks.visiting import visit

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

NEVER_ENDS = {
    "while it is drawn": "for (;;);",
    "once it stands and is asked": "Array.prototype.reduce = () => { for (;;); };",
}


@pytest.fixture(scope="module")
def browser_of_ours(playwright: Playwright) -> Iterator[Browser]:
    browser = Browser(playwright.chromium)
    yield browser
    browser.close()


@pytest.mark.parametrize("script", NEVER_ENDS.values(), ids=NEVER_ENDS.keys())
def test_a_page_that_never_ends_is_cut_and_the_next_one_is_measured(
    script: str, browser_of_ours: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "SECONDS", 1)
    (tmp_path / "endless.html").write_text(f"<!doctype html><body>hello<script>{script}</script>", encoding="utf-8")
    (tmp_path / "plain.html").write_text("<!doctype html><body>hello", encoding="utf-8")
    with serving_files(tmp_path) as address:
        began = time.monotonic()
        with pytest.raises(peers.TooMuch, match=r"> 1 s"):
            visit(browser_of_ours, f"{address}/endless.html")
        assert time.monotonic() - began < 120
        monkeypatch.undo()
        assert 0 < visit(browser_of_ours, f"{address}/plain.html").seconds < peers.SECONDS


def test_a_browser_closes_though_a_page_of_it_never_ends(playwright: Playwright) -> None:
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    browser = Browser(playwright.chromium)
    page = browser.context().new_page()
    page.goto("data:text/html,<script>setTimeout(() => { for (;;); }, 100)</script>")
    page.wait_for_timeout(500)
    began = time.monotonic()
    browser.close()
    assert time.monotonic() - began < 120
    left = {child.pid for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE}
    assert left <= before
