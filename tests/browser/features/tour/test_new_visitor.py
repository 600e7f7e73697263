"""The path of a new visitor: open the app, understand, type, find the head that reads “alter”, open its arithmetic."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page

from model.engine.api import Run
from model.requests.request import RunRequest
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import chips, drawing, has_parameters, middle, opened, parameters, rest, tile_of, tiles, type_sentence
from tests.known import bundled_engine
from viz.labels import alt_text, tokens

pytestmark = pytest.mark.browser

MODEL, SITE = "multi30k-de-en", "decoder.0.2.cross"
TYPED = "Im Park spielt ein alter Hund."
MOST_ACTIONS = 6
"""Clicks and texts: at ten seconds each, reading included, they fit into a minute."""

QUICK = """async (player) => {
  player.querySelector(".icon.forward").click();
  await new Promise((done) => setTimeout(done, 370)); // the step is reported after 400 ms
  const another = player.querySelectorAll("button.candidate")[1];
  another.click();
  await new Promise((done) => setTimeout(done, 200));
  return [another.querySelector("bdi").innerText, another.dataset.id];
}"""
"""Goes a step on, and clicks on a candidate of this step just before the step is reported: its token and its id."""


@pytest.fixture
def page(watched: Page, serve: Callable[[Path], str]) -> Page:
    watched.emulate_media(reduced_motion="reduce")
    watched.set_viewport_size({"width": 1440, "height": 1500})
    return opened(watched, serve(ROOT / "app.py"))


def test_a_new_visitor_finds_the_head_that_reads_a_word_and_opens_its_arithmetic(page: Page) -> None:
    actions = 0
    engine = bundled_engine()
    understands(page)
    actions += 1  # the sentence and Enter
    type_sentence(page, TYPED)
    has_parameters(page, text=TYPED)
    expect(chips(page, "source")).to_have_text(["<sos>", *TYPED[:-1].lower().split(), ".", "<eos>"])
    rest(page)
    trace = engine.ask(Run(RunRequest(MODEL, TYPED)))
    key = trace.tokens["source"].texts.index("alter")
    attention = trace.at(SITE)
    query, head = reads(trace.at(SITE).weights[:, :, key])
    actions += 1  # a click on the head whose cell in that column is dark
    page.mouse.click(*middle(tile_of(page, SITE, head), query, key))
    actions += 1
    heat = drawing(page, "cells").first
    expect(heat.locator("canvas")).to_have_attribute("aria-label", re.compile(f"head {head + 1}"))
    rest(page)
    says(page, alt_text.head(trace, attention, head))
    heat.locator("canvas").evaluate("node => node.scrollIntoView({block: 'center'})")
    rest(page)
    page.mouse.click(*middle(tiles(page, "cells")[0], query, key))
    has_parameters(page, query=str(query), key=str(key))
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("recomputed in float64")
    expect(dialog).to_contain_text(f"{attention.head(head)[query, key]:.4f}"[:6])
    assert actions <= MOST_ACTIONS
    assert tokens.site(attention.site, head) in dialog.inner_text()


def understands(page: Page) -> None:
    """The first view says what the small squares are, until that is put away; a “?” explains a panel and links to the docs."""
    sentence = page.get_by_text("Each small square is one attention head.")
    expect(sentence).to_be_visible()
    page.get_by_role("button", name="Hide this sentence").click()
    expect(sentence).to_be_hidden()
    page.reload(wait_until="domcontentloaded")
    rest(page)
    expect(drawing(page, "atlas")).to_be_visible()
    expect(page.get_by_text("Each small square is one attention head.")).to_be_hidden()
    mark = page.locator(".st-key-card-lines .help summary")
    mark.focus()
    page.keyboard.press("Enter")
    link = page.locator(".st-key-card-lines .help a")
    expect(link).to_be_visible()
    answer = page.request.get(page.evaluate("node => node.href", link.element_handle()))
    assert answer.ok
    assert answer.text().startswith("# ")
    mark.press("Enter")


def reads(columns: np.ndarray) -> tuple[int, int]:
    """Query and head of the largest weight in a column, [head, query]."""
    head, query = np.unravel_index(int(columns.argmax()), columns.shape)
    return int(query), int(head)


def says(page: Page, told: str) -> None:
    """The selected head is described in words to who does not see it."""
    canvas = drawing(page, "cells").first.locator("canvas")
    described = canvas.evaluate("node => node.getRootNode().getElementById(node.getAttribute('aria-describedby'))?.textContent")
    assert described == told


@pytest.mark.thorough
def test_steps_are_announced_nothing_moves_for_who_wants_no_motion_and_a_click_on_a_candidate_continues_from_it(page: Page) -> None:
    page.goto(page.url.split("?")[0].rstrip("/") + "/step", wait_until="domcontentloaded")
    rest(page)
    player = drawing(page, "player")
    player.locator(".icon.forward").click()
    live = page.locator(".words [aria-live=polite]").filter(has_text=re.compile("Row “"))
    expect(live.first).to_contain_text(re.compile(r"Row “an → old”: \d+% on “alter”"))
    moving = page.evaluate(
        """() => {
            const inside = (node) => [node, ...(node.shadowRoot ? all(node.shadowRoot) : [])];
            const all = (root) => [...root.querySelectorAll("*")].flatMap(inside);
            const long = (text) => text.split(",").some((one) => parseFloat(one) > 0.01);
            const own = all(document).filter((node) => node.closest(".hl"));
            const moves = ({ transitionDuration, animationDuration }) => long(transitionDuration) || long(animationDuration);
            return own.filter((node) => moves(getComputedStyle(node))).length;
        }"""
    )
    assert moving == 0
    word, id_ = player.evaluate(QUICK)
    page.wait_for_url(re.compile(rf"[?&]begin=\d+(%2C|,)\d+(%2C|,){id_}(&|$)"))
    expect(chips(page, "target").nth(3)).to_have_text(word)
    expect(page.locator(".st-key-continued")).to_be_visible()
    rest(page)
    assert "step" not in parameters(page), "the step of the text before was reported after the choice, and replaced it"
