"""Explore while somebody types, in a real browser: every picture is that of what was in the box, and the box stays the box."""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page

from model.engine.api import Engine, Run
from model.requests.request import RunRequest
from model.trace.types import Trace
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import chips, has_parameters, hovered_weight, opened, rest, tile_of, tiles, until
from viz.labels import tokens

pytestmark = pytest.mark.browser

MODEL, CROSS = "multi30k-de-en", "decoder.0.2.cross"
TYPED = "ein mann läuft"


def box(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Input sentence")


def shows(page: Page, trace: Trace) -> None:
    for strip in ("source", "target"):
        expect(chips(page, strip)).to_have_text(tokens.strip(trace.tokens[strip]))


def caret(page: Page) -> int:
    place: int = box(page).evaluate("box => box.selectionStart")
    return place


def test_a_sentence_typed_key_by_key_shows_every_beginning_as_its_own_run(
    watched: Page, serve: Callable[[Path], str], engine: Engine
) -> None:
    watched.set_viewport_size({"width": 1440, "height": 1500})
    page = opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau&site={CROSS}&head=5")
    field, rng, typed = box(page), np.random.default_rng(1), ""
    field.focus()
    field.select_text()
    for letter in TYPED:
        field.press_sequentially(letter)
        typed += letter
        if typed not in ("e", "ein", "ein m", "ein mann", TYPED):
            continue  # the next key comes before the pause is over
        trace = engine.ask(Run(RunRequest(MODEL, typed)))
        shows(page, trace)
        drawn = tiles(page)
        places = [drawn[i] for i in rng.choice(len(drawn), 6, replace=False)] + [tile_of(page, CROSS, 5)] * 2
        for tile in places:
            query, key = int(rng.integers(tile["rows"])), int(rng.integers(tile["columns"]))
            true = trace.at(tile["site"]).head(tile["head"])[query, key]
            exact = (tile["site"], tile["head"]) == (CROSS, 5)
            assert hovered_weight(page, tile, query, key) == pytest.approx(true, abs=5e-5 if exact else 0.004)
        assert caret(page) == len(typed)
    has_parameters(page, text=TYPED)  # after a longer pause the rest of the page follows
    rest(page)
    mean = trace.at(CROSS).head(5).max(axis=1).mean()
    expect(page.locator(".st-key-card-facts")).to_contain_text(f"{mean:.2f}")
    expect(page.locator("html[data-headlight-ahead]")).to_have_count(0)
    expect(field).to_be_focused()


def test_the_box_stays_the_box(watched: Page, serve: Callable[[Path], str], engine: Engine) -> None:
    page = opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau")
    field, asked = box(page), list[str]()
    page.on("request", lambda request: asked.append(request.post_data or "") if "/headlight/live/" in request.url else None)
    field.focus()
    page.keyboard.press("Home")
    field.press_sequentially("und ")
    shows(page, engine.ask(Run(RunRequest(MODEL, "und eine frau"))))
    assert caret(page) == 4, "the caret stays in the middle"
    has_parameters(page, text="und eine frau")
    rest(page)
    assert caret(page) == 4

    client, before = page.context.new_cdp_session(page), len(asked)
    client.send("Input.imeSetComposition", {"text": "に", "selectionStart": 1, "selectionEnd": 1})
    page.wait_for_timeout(400)
    assert len(asked) == before, "nothing runs while an input method composes"
    client.send("Input.insertText", {"text": "hunde "})
    until(page, lambda: len(asked) > before)
    shows(page, engine.ask(Run(RunRequest(MODEL, "und hunde eine frau"))))
    assert caret(page) == 10

    for sentence in ("ein hund", "zwei hunde"):
        field.fill(sentence)
        field.press("Enter")
        has_parameters(page, text=sentence)
    field.press("ArrowUp")
    field.press("ArrowUp")
    expect(field).to_have_value("ein hund")
    shows(page, engine.ask(Run(RunRequest(MODEL, "ein hund"))))

    page.get_by_role("switch", name="Live").click()
    rest(page)
    before = len(asked)
    field.fill("drei hunde")
    page.wait_for_timeout(1500)
    assert len(asked) == before, "switched off, typing runs nothing"
    field.press("Enter")
    shows(page, engine.ask(Run(RunRequest(MODEL, "drei hunde"))))
    page.get_by_role("switch", name="Live").click()
    cut = cycle([b"<html>not ours</html>", b"\x40\x00\x00\x00{", b""])  # a busy machine asks more than once for a sentence
    page.route("**/headlight/live/*", lambda route: route.fulfill(status=200, body=next(cut)))
    for sentence in ("ein mann", "eine frau", "ein kind"):  # the connection breaks: the page works as without the route
        field.fill(sentence)
        field.press("Enter")
        shows(page, engine.ask(Run(RunRequest(MODEL, sentence))))
    page.unroute("**/headlight/live/*")
    field.press_sequentially("er")
    shows(page, engine.ask(Run(RunRequest(MODEL, "ein kinder"))))
    has_parameters(page, text="ein kinder")
    rest(page)
