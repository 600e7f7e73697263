"""An opened trace by Tab, arrow keys, Enter and Escape alone: from the file to the picture to the dialog of figures and back."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests import opened
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import drawing, rest, until

pytestmark = pytest.mark.browser

MOST = 70
FOCUSED = """() => {
  let here = document.activeElement;
  while (here?.shadowRoot?.activeElement) here = here.shadowRoot.activeElement;
  return here?.matches("a,button") ? (here.getAttribute("aria-label") || here.innerText).replace(/\\s+/g, " ") : "";
}"""
UNREACHABLE = """() => {
  const found = [];
  const pointed = (node) => node && getComputedStyle(node).cursor === "pointer";
  const walk = (root) => root.querySelectorAll("*").forEach((node) => {
    if (node.shadowRoot) walk(node.shadowRoot);
    const { width, height } = node.getBoundingClientRect();
    if (!width || !height || node.disabled || node.closest("label") || getComputedStyle(node).visibility === "hidden") return;
    const control = node.matches("button,a[href],input,select,textarea,summary,[role=button]");
    if (!control && !(pointed(node) && !pointed(node.parentElement))) return;
    const inner = [...node.querySelectorAll("a,button,input,[tabindex]")].some(({ tabIndex }) => tabIndex >= 0);
    // of radio buttons and of chips one is in the order of Tab, and arrow keys move between them
    if (node.tabIndex < 0 && !inner && !node.closest('[tabindex="0"],a[href],[role=radiogroup],[role=group]'))
      found.push(node.outerHTML.slice(0, 120));
  });
  walk(document);
  return found;
}"""


def reach(page: Page, name: str, key: str = "Tab") -> None:
    """Presses a key until what `name` is part of has the focus."""
    seen = []
    for _ in range(MOST):
        page.keyboard.press(key)
        seen.append(page.evaluate(FOCUSED))
        if name in seen[-1]:
            return
    pytest.fail(f"{key} never comes to {name}: {seen}")


def test_a_recorded_run_is_opened_seen_and_taken_away_without_a_mouse(
    watched: Page, serve: Callable[[Path], str], tmp_path: Path
) -> None:
    page, file = watched, tmp_path / "vit.trace.safetensors"
    file.write_bytes(opened.file(opened.program()))
    page.set_viewport_size({"width": 1280, "height": 1200})
    page.goto(f"{serve(ROOT / 'app.py')}/checkpoint", wait_until="domcontentloaded")
    page.locator("input[type=file]").first.set_input_files(file)
    expect(page.get_by_text("Recording of the program")).to_be_visible()
    rest(page)
    reach(page, "Open in Explore")
    page.keyboard.press("Enter")
    expect(drawing(page, "atlas")).to_be_visible()
    rest(page)
    assert page.evaluate(UNREACHABLE) == []
    reach(page, "Explore")
    reach(page, "Masks", "ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Figure …").first).to_be_visible()
    rest(page)
    assert page.evaluate(UNREACHABLE) == []
    reach(page, "Figure …")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Download as PDF")).to_be_visible()
    rest(page)
    reach(page, "Download as SVG")
    reach(page, "Download as PDF", "ArrowRight")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    until(page, lambda: "Figure …" in page.evaluate(FOCUSED))
