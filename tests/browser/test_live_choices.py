"""R, the temperature and a silenced head on Explore: drawn by the live route, and then the page's script agrees."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, Request, expect

from model.engine.local import CHECKPOINTS, LocalEngine
from model.spec.edits import Silence
from model.spec.request import Decoding, RunRequest
from tests.browser.conftest import ROOT
from tests.browser.visits import chips, has_parameters, middle, opened, parameters, rest, tile_of, until
from viz import labels

pytestmark = pytest.mark.browser

MODEL, SITE = "multi30k-de-en", "decoder.0.2.cross"


def test_another_seed_temperature_and_head_are_drawn_by_the_route_and_then_by_the_script(
    watched: Page, serve: Callable[[Path], str]
) -> None:
    engine, asked = LocalEngine(CHECKPOINTS, torch.device("cpu")), list[dict[str, Any]]()
    watched.set_viewport_size({"width": 1440, "height": 1500})
    page = opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau&decode=sample&temperature=1.5&seed=3")

    def note(request: Request) -> None:
        if "/headlight/live/" in request.url:
            asked.append(json.loads(request.post_data or "{}")["change"])

    page.on("request", note)

    def shows(seed: int, temperature: float, *edits: Silence) -> None:
        decoding = Decoding(method="sample", temperature=temperature, seed=seed)
        trace = engine.run(RunRequest(MODEL, "eine frau", decoding=decoding, edits=edits))
        expect(chips(page, "target")).to_have_text(labels.strip(trace.tokens["target"]))

    shows(3, 1.5)
    page.keyboard.press("r")
    shows(4, 1.5)
    has_parameters(page, seed="4")
    rest(page)
    for _ in range(3):
        page.keyboard.press("r")
    shows(7, 1.5)
    has_parameters(page, seed="7")
    rest(page)
    assert {"seed": "7"} in asked
    shows(7, 1.5)

    slider = page.locator(".st-key-widget-temperature input[type=range]")
    slider.focus()
    slider.press("ArrowRight")
    shows(7, 1.6)
    has_parameters(page, temperature="1.6")
    rest(page)
    assert {"temperature": "1.6"} in asked
    shows(7, 1.6)

    slider.blur()
    head = tile_of(page, SITE, 5)
    page.mouse.move(*middle(head, 0, 0))
    page.keyboard.press("s")
    shows(7, 1.6, Silence(site=SITE, head=(5,)))
    has_parameters(page, silence=f"{SITE}:5")
    rest(page)
    assert {"silence": f"{SITE}:5"} in asked
    shows(7, 1.6, Silence(site=SITE, head=(5,)))
    page.keyboard.press("s")
    shows(7, 1.6)
    until(page, lambda: "silence" not in parameters(page))
    rest(page)
    shows(7, 1.6)
