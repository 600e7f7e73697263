"""The graph of a circuit in a real browser: its heads are those of the run, and pointer, keyboard and finger select them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.patience import expect
from tests.browser.visits import drawing, has_parameters, opened, rest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
TEXT = "fox moon tea harry potter rain key fox moon tea harry"


def test_a_head_is_selected_in_the_graph_by_pointer_and_keyboard(watched: Page, serve: Callable[[Path], str]) -> None:
    page = opened(watched, f"{serve(ROOT / 'app.py')}/circuit?model=induction&text={TEXT}&max=1&site=decoder.0.1.self&head=0")
    graph = drawing(page, "circuit")
    expect(graph.locator("canvas").first).to_be_visible()
    rest(page)
    page.wait_for_function("root => root.dataset.layout", arg=graph.element_handle())
    drawn = json.loads(graph.get_attribute("data-layout") or "[]")
    layers = {each["site"]: each for each in drawn if "head" not in each}
    places = {(each["site"], each["head"]): each for each in drawn if "head" in each}
    assert set(layers) == {"L1", "L2"}
    assert layers["L1"]["y"] == places["decoder.0.0.self", 0]["y"]
    assert layers["L1"]["x"] < places["decoder.0.0.self", 0]["x"] - 20, "a layer's name is at the left of its heads"
    assert set(places) == {(f"decoder.0.{layer}.self", head) for layer in (0, 1) for head in (0, 1)}
    assert places["decoder.0.0.self", 0]["y"] > places["decoder.0.1.self", 0]["y"], "later layers are above"
    box = graph.locator(".graph")
    around = box.bounding_box()
    assert around is not None
    there = places["decoder.0.0.self", 1]
    page.mouse.move(around["x"] + there["x"], around["y"] + there["y"])
    expect(graph.locator(".readout")).to_contain_text("Decoder self-attention, layer 1, head 2")
    expect(graph.locator(".readout")).to_contain_text("share 0.")
    page.mouse.click(around["x"] + there["x"], around["y"] + there["y"])
    has_parameters(page, site="decoder.0.0.self", head="1")
    rest(page)
    box.focus()
    page.keyboard.press("ArrowUp")
    expect(graph.locator(".readout")).to_have_attribute("data-site", "decoder.0.1.self")
    page.keyboard.press("Enter")
    has_parameters(page, site="decoder.0.1.self", head="1")
