"""The likeliest next tokens of a language model: bars that follow their knobs without a run, and continue the text on a click."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Page

from model.engine.api import Run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import drawing, has_parameters, overflow, rest
from tests.known import bundled_engine

pytestmark = pytest.mark.browser

MODEL, TEXT, MOST = "captions-lm", "a man in a blue shirt is", 6


def shares(logits: Array, temperature: float, top_k: int, top_p: float) -> Array:
    """The probability of each id when sampling, in float64, worked out anew from the definition."""
    scaled = np.exp((logits - logits.max()) / temperature)
    order = np.argsort(-scaled, kind="stable")
    kept = order[: top_k or None]
    whole = scaled[kept] / scaled[kept].sum()
    kept = kept[[sum(whole[:place]) < top_p for place in range(len(whole))]]
    found = np.zeros(len(logits))
    found[kept] = scaled[kept] / scaled[kept].sum()
    return found


def turn(page: Page, name: str, value: float) -> None:
    """Turns a knob without letting it go."""
    knob = drawing(page, "next").locator(f"input[name={name}]")
    knob.evaluate("(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }", value)


def shown(page: Page) -> dict[int, float]:
    """The share of each token that has a bar, by id; -1: all others."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    rows = drawing(page, "next").locator(".candidate")
    told = rows.evaluate_all("rows => rows.map(({ dataset }) => [Number(dataset.id ?? -1), Number(dataset.probability)])")
    return {int(id_): share for id_, share in told}


def test_bars_are_the_softmax_in_float64_whatever_the_knobs_say_and_a_click_continues_from_there(
    watched: Page, within: Callable[[str], Page], serve: Callable[[Path], str]
) -> None:
    watched.set_viewport_size({"width": 1440, "height": 1500})
    link = urlencode({"model": MODEL, "text": TEXT, "decode": "greedy", "max": MOST})
    page = within(f"{serve(ROOT / 'app.py')}/explore?{link}")
    asked = RunRequest(MODEL, TEXT, decoding=Decoding(max_length=MOST))
    trace = bundled_engine().ask(Run(asked))
    assert trace.logits is not None
    logits = trace.logits[trace.steps[0].computed[1] - 1].astype(np.float64)
    logits[list(trace.model["spec"]["suppressed"])] = -np.inf
    likeliest = np.argsort(-logits, kind="stable")[:10].tolist()
    drawing(page, "next").locator(".candidate").first.wait_for()
    sockets: list[object] = []
    page.on("request", lambda request: sockets.append(request.url))
    for temperature, top_k, top_p in ((1, 0, 1), (0.3, 0, 1), (2.5, 0, 1), (1, 4, 1), (1.5, 30, 0.6), (1, 0, 0.2)):
        for name, value in (("temperature", temperature), ("topK", top_k), ("topP", top_p)):
            turn(page, name, value)
        true, found = shares(logits, temperature, top_k, top_p), shown(page)
        assert list(found) == [*likeliest, -1]
        assert [found[id_] for id_ in likeliest] == pytest.approx(true[likeliest], abs=1e-9)
        assert found[-1] == pytest.approx(1 - true[likeliest].sum(), abs=1e-9)
    assert sockets == [], "nothing was asked of the server"
    assert "temperature" not in page.url, "and the run is the same"
    other = likeliest[1]
    drawing(page, "next").locator(f"button[data-id='{other}']").click()
    has_parameters(page, begin=str(other))
    rest(page)
    after = trace.tokens["source"].texts[trace.steps[0].computed[1] - 1]
    expect(page.locator(".st-key-card-next")).not_to_contain_text(f"after “{after}”")
    for width, height in ((1440, 900), (1024, 768), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        rest(page)
        assert overflow(page) <= 1
        names = drawing(page, "next").locator(".candidate bdi")
        assert names.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0, "a name was cut"
        bars = drawing(page, "next").locator(".candidate.others .number").bounding_box()
        assert bars is not None
        assert width < 1024 or bars["y"] + bars["height"] <= height, "the bars are seen without scrolling"
