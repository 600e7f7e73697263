"""R on Explore samples again: drawn by the live route, and then the page's script agrees."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from playwright.sync_api import Page, Request, expect

from model.engine.local import CHECKPOINTS, LocalEngine
from model.spec.request import Decoding, RunRequest
from tests.browser.conftest import ROOT
from tests.browser.visits import chips, has_parameters, opened, rest
from viz import labels

pytestmark = pytest.mark.browser

MODEL = "multi30k-de-en"


def test_another_seed_is_drawn_by_the_route_and_then_by_the_script(watched: Page, serve: Callable[[Path], str]) -> None:
    engine, asked = LocalEngine(CHECKPOINTS, torch.device("cpu")), list[dict[str, Any]]()
    watched.set_viewport_size({"width": 1440, "height": 1500})
    page = opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau&decode=sample&temperature=1.5&seed=3")

    def note(request: Request) -> None:
        if "/headlight/live/" in request.url:
            asked.append(json.loads(request.post_data or "{}")["change"])

    page.on("request", note)

    def shows(seed: int) -> None:
        decoding = Decoding(method="sample", temperature=1.5, seed=seed)
        trace = engine.run(RunRequest(MODEL, "eine frau", decoding=decoding))
        expect(chips(page, "target")).to_have_text(labels.strip(trace.tokens["target"]))

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
