"""While a question is open, nothing in the pages of lecturer and student answers it: no words, no picture, no number of the run."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.features.lectures.test_class import code_of
from tests.browser.patience import expect

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
WHOLE = """() => {
  const roots = [document];
  for (const root of roots) for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
  const told = (node) => (node.localName === "style" ? "" : [...node.attributes].map(({ value }) => value).join(" "));
  const text = (root) => root.documentElement?.textContent ?? root.textContent;
  return roots.map((root) => [text(root), ...[...root.querySelectorAll("*")].map(told)].join("\\n")).join("\\n");
}"""
"""All texts and attributes of a page, also of what is not seen, with those of its scripts and drawings."""

DRAWN = ".sheet, canvas, #question :is(.right, .run, .answer, .verdict)"


def test_an_open_question_is_alone_on_projector_and_phone_until_it_is_revealed(watched: Page, phone: Page, serve: Serve) -> None:
    address = serve(APP)
    watched.goto(f"{address}/hold/masks.en")
    titles = watched.evaluate("JSON.parse(document.getElementById('page').textContent).slides.map(({ title }) => title)")
    phone.goto(f"{address}/class")
    phone.fill("input[name=code]", code_of(watched).lower())
    phone.click("button[type=submit]")
    pages, asked = (watched, phone), 0
    for step in reversed(range(len(titles))):  # backwards: what was shown before is a later step, often of the same run
        watched.evaluate("(step) => { location.hash = `#${step + 1}`; }", step)
        for page in pages:
            expect(page.locator("#title")).to_have_text(titles[step])
        if not watched.locator("body.asking").count():
            continue
        asked += 1
        for page in pages:
            expect(page.locator("#question .token").first).to_be_visible()
            expect(page.locator(DRAWN)).to_have_count(0)
        before = [page.evaluate(WHOLE) for page in pages]
        if asks_for_a_number := phone.locator("#question input").count():
            phone.fill("#question input", "0.5")
            phone.locator("#question form button").tap()
            expect(watched.locator("#question .note")).to_have_text("Answers: 1")
        watched.keyboard.press("PageDown")
        expect(watched.locator("#question .note")).to_contain_text("closed")
        if asks_for_a_number:
            expect(watched.locator("#question .bars .number")).to_have_text("1")
        for page in pages:
            expect(page.locator("#question :is(.right, .run, .answer)")).to_have_count(0)
            expect(page.locator("#words")).to_have_text("")
            expect(page.locator("#lead > *")).to_have_count(0)
        watched.keyboard.press("PageDown")
        for page, told in zip(pages, before, strict=True):
            paragraphs = page.locator(":is(#lead, #words) > *")
            expect(paragraphs.first).to_be_visible()
            assert [words for words in paragraphs.all_inner_texts() if words in told] == []
            answers = page.locator("#question .answer")
            assert [answer for answer in answers.all_inner_texts() if answer in told] == []
            expect(page.locator("#question :is(.right, .answer)")).to_have_count(1)
            expect(page.locator(".sheet:not([inert]) canvas").first).to_be_visible()
    assert asked == 4
