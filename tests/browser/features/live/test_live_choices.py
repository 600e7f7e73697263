"""R, S and the temperature on Explore: drawn by the live route, and then the page's script agrees."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Request

from model.engine.api import Run
from model.requests.edits import Silence
from model.requests.request import Decoding, RunRequest
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import chips, drawing, has_parameters, hovered_weight, middle, opened, parameters, rest, tile_of, until
from tests.known import bundled_engine
from viz.labels import tokens

pytestmark = pytest.mark.browser

MODEL, SITE, BELOW = "multi30k-de-en", "decoder.0.0.cross", "decoder.0.2.cross"


def test_another_seed_temperature_and_head_are_drawn_by_the_route_and_then_by_the_script(
    watched: Page, serve: Callable[[Path], str]
) -> None:
    engine, asked = bundled_engine(), list[dict[str, Any]]()
    watched.set_viewport_size({"width": 1440, "height": 1500})
    page = opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau&decode=sample&temperature=1.5&seed=3")

    def note(request: Request) -> None:
        if "/headlight/live/" in request.url:
            asked.append(json.loads(request.post_data or "{}")["change"])

    page.on("request", note)

    def shows(seed: int, temperature: float = 1.5, *edits: Silence) -> None:
        decoding = Decoding(method="sample", temperature=temperature, seed=seed)
        trace = engine.ask(Run(RunRequest(MODEL, "eine frau", decoding=decoding, edits=edits)))
        expect(chips(page, "target")).to_have_text(tokens.strip(trace.tokens["target"]))
        steps = trace.steps[0].chosen.log_probability
        said = page.locator("[data-strip=target] .chip[data-probability]").first.get_attribute("data-probability")
        assert float(said or "nan") == pytest.approx(math.exp(steps), abs=1e-3)

    shows(3)
    page.keyboard.press("r")
    shows(4)
    has_parameters(page, seed="4")
    rest(page)
    for _ in range(3):
        page.keyboard.press("r")
    shows(7)
    has_parameters(page, seed="7")
    rest(page)
    assert {"seed": "7"} in asked
    shows(7)

    slider = page.locator(".st-key-widget-temperature input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    has_parameters(page, temperature="1.6")
    rest(page)
    assert {"temperature": "1.6"} in asked
    shows(7, 1.6)
    slider.blur()

    before = drawing(page, "strips").inner_text()
    page.mouse.move(*middle(tile_of(page, SITE, 5), 0, 0))
    page.keyboard.press("s")
    silent = Silence(site=SITE, head=(5,))
    until(page, lambda: drawing(page, "strips").inner_text() != before)
    shows(7, 1.6, silent)
    has_parameters(page, silence=f"{SITE}:5")
    rest(page)  # the page says now, above the drawings, what is silenced: another head is under the pointer
    assert any(change.get("silence") == f"{SITE}:5" for change in asked)
    shows(7, 1.6, silent)
    page.keyboard.press("s")
    until(page, lambda: "silence" not in parameters(page))
    rest(page)
    assert drawing(page, "strips").inner_text() == before
    shows(7, 1.6)
    trace = engine.ask(Run(RunRequest(MODEL, "eine frau", decoding=Decoding(method="sample", temperature=1.6, seed=7))))
    true = trace.at(BELOW).head(1)[1, 1]
    assert hovered_weight(page, tile_of(page, BELOW, 1), 1, 1) == pytest.approx(true, abs=0.004)
