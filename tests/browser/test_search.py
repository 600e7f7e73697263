"""The tree of a beam search in a real browser: a hypothesis is chosen by a click or by keys, and its attention is what is shown."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from model.engine.api import Engine, Run
from model.requests.request import Decoding, RunRequest
from model.trace.beam_tree import hypotheses
from model.trace.types import Trace
from tests.browser.patience import expect
from tests.browser.visits import drawing, has_parameters, hovered_weight, rest, tiles

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
MODEL, TEXT, SITE = "multi30k-de-en", "Ein Hund spielt im Schnee.", "decoder.0.2.cross"


def shown(engine: Engine, hypothesis: int) -> Trace:
    return engine.ask(Run(RunRequest(MODEL, TEXT, decoding=Decoding("beam", hypothesis=hypothesis))))


def test_a_click_or_keys_choose_a_hypothesis_and_its_rows_are_shown(
    within: Callable[[str], Page], serve: Callable[[Path], str], engine: Engine
) -> None:
    page = within(f"{serve(ROOT / 'app.py')}/step?model={MODEL}&text={TEXT}&decode=beam&site={SITE}")
    tree = shown(engine, 0).tree
    nodes = drawing(page, "tree").locator(".node")
    expect(nodes).to_have_count(len(tree))
    rest(page)  # a tree that is drawn again between press and release gets no click
    drawn = nodes.evaluate_all("all => all.map(node => [Number(node.dataset.place), Number(node.dataset.total)])")
    assert dict(drawn) == {place: pytest.approx(node.total) for place, node in enumerate(tree)}
    second = hypotheses(tree)[1]
    nodes.and_(page.locator(f'[data-place="{second}"]')).click()
    has_parameters(page, hypothesis="1")
    looks_like(page, shown(engine, 1), key=2)
    nodes.and_(page.locator(f'[data-place="{second}"]')).focus()
    page.keyboard.press("ArrowLeft")
    parent = tree[second].parent
    expect(nodes.and_(page.locator(f'[data-place="{parent}"]'))).to_be_focused()
    assert drawing(page, "player").get_attribute("data-step") == "0", "the tree's keys are its own"
    best = nodes.and_(page.locator('[data-rank="0"]'))
    best.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "hypothesis" not in url)
    looks_like(page, shown(engine, 0), key=3)
    expect(best).to_have_attribute("aria-current", "true")
    third = nodes.and_(page.locator('[data-rank="2"]'))
    third.focus()
    page.keyboard.press("Enter")  # its run is new: the page shows for a while that it waits, and draws the tree again
    has_parameters(page, hypothesis="2")
    rest(page)
    expect(third).to_be_focused()


def looks_like(page: Page, trace: Trace, key: int) -> None:
    """The player has the tokens of this hypothesis, and a cell of its last row holds the weight of its own row.

    It waits until the server knows each step: the page is drawn again then, and a key that is pressed meanwhile may find no focus.
    Each call reads another key: the readout still shows the cell that was pointed at before.
    """
    expect(page.locator("[data-strip=target] .chip bdi")).to_have_text(list(trace.tokens["target"].texts))
    rest(page)
    drawing(page, "player").locator(".icon.last").click()
    has_parameters(page, step=str(len(trace.steps) - 1))
    drawing(page, "player").locator("canvas").first.evaluate("node => node.scrollIntoView({block: 'center'})")
    rest(page)
    weights = trace.at(SITE).weights[0]
    place = tiles(page, "player")[0]
    assert json.loads(drawing(page, "player").get_attribute("data-layout") or "")[0]["rows"] == len(weights)
    found = hovered_weight(page, place, len(weights) - 1, key, "player")
    assert found == pytest.approx(float(weights[-1, key]), abs=1e-6)
    drawing(page, "player").locator(".icon.first").click()
    expect(drawing(page, "player")).to_have_attribute("data-step", "0")
    has_parameters(page, step="0")
    rest(page)
