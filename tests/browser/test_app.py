"""The app as people use it: a real browser, the bundled model, and the numbers of the same run computed here."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Page, WebSocket

from model.engine.api import Describe, Engine, Run
from model.requests.request import Decoding, RunRequest
from model.tokenizers.bpe import CONTINUING
from model.trace.types import Trace
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.servers import ROOT
from tests.browser.tabs import forget
from tests.browser.visits import (
    chips,
    drawing,
    has_parameters,
    hovered_weight,
    middle,
    opened,
    overflow,
    parameters,
    rest,
    tile_of,
    tiles,
    type_sentence,
)
from viz.figures.theme import DARK, LIGHT
from viz.labels import tokens

pytestmark = pytest.mark.browser

MODEL = "multi30k-de-en"
SIX = "Zwei junge Hunde spielen im Schnee."
LONGER = "Ein Mann in einem blauen Hemd steht auf einer hohen Leiter und putzt ein Fenster."
CROSS = "decoder.0.2.cross"
HOSTILE = "</script><img src=x onerror=alert(1)> $x$ **b** :red[x] <script>alert(2)</script> [a](https://example.org) مرحبا"

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def address(serve: Callable[[Path], str]) -> str:
    return serve(ROOT / "app.py")


@pytest.fixture
def visit(watched: Page, within: Callable[[str], Page], address: str) -> Open:
    """Opens a page of the app by its link, and waits until it is drawn."""
    watched.set_viewport_size({"width": 1440, "height": 1500})
    return lambda path="", **query: within(f"{address}/{path}?{urlencode({'model': MODEL} | query)}")


def run_of(engine: Engine, text: str, **decoding: Any) -> Trace:
    return engine.ask(Run(RunRequest(MODEL, text, decoding=Decoding(**decoding))))


def test_a_typed_sentence_is_translated_and_an_example_is_one_click_away(visit: Open, engine: Engine) -> None:
    page, trace = visit(), run_of(engine, SIX)
    type_sentence(page, SIX)
    has_parameters(page, text=SIX)
    expect(chips(page, "source")).to_have_text(tokens.strip(trace.tokens["source"]))
    expect(chips(page, "target")).to_have_text(tokens.strip(trace.tokens["target"]))
    assert len(trace.tokens["target"]) > 5
    shown = page.locator("[data-strip=target] .chip[data-probability]").evaluate_all("all => all.map(n => +n.dataset.probability)")
    assert shown == pytest.approx([np.exp(step.chosen.log_probability) for step in trace.steps], abs=1e-4)
    rest(page)
    example = engine.ask(Describe("multi30k-de-en")).examples[1]
    page.get_by_role("button", name="Examples").click()
    page.get_by_role("button", name=example).click()
    expect(chips(page, "target")).to_have_text(tokens.strip(run_of(engine, example).tokens["target"]))
    has_parameters(page, text=example)


def test_forty_hovered_cells_are_the_numbers_of_the_run_and_ask_no_server(watched: Page, visit: Open, engine: Engine) -> None:
    sent: list[Any] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda payload: sent.append(payload))

    forget(watched)  # the connection is made anew
    watched.on("websocket", listen)
    page, trace = visit(text=SIX, site=CROSS, head="5"), run_of(engine, SIX)
    places, rng = tiles(page), np.random.default_rng(4)
    assert {tile["site"] for tile in places} == {str(site) for site in trace.attention}
    asked_before = len(sent)
    for tile in [places[i] for i in rng.choice(len(places), 30, replace=False)] + [tile_of(page, CROSS, 5)] * 10:
        query, key = int(rng.integers(tile["rows"])), int(rng.integers(tile["columns"]))
        true = trace.at(tile["site"]).head(tile["head"])[query, key]
        exact = (tile["site"], tile["head"]) == (CROSS, 5)
        assert hovered_weight(page, tile, query, key) == pytest.approx(true, abs=5e-5 if exact else 0.004)
    assert asked_before > 0
    assert len(sent) == asked_before, "hovering asked the server"


def test_a_click_on_a_head_selects_it_everywhere(visit: Open, engine: Engine) -> None:
    page, trace = visit(text=SIX), run_of(engine, SIX)
    page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", 3), 2, 2))
    expect(page.locator(".st-key-card-heat")).to_contain_text("Encoder self-attention, layer 2, head 4")
    has_parameters(page, site="encoder.0.1.self", head="3", text=SIX)
    rest(page)
    true = trace.at("encoder.0.1.self").head(3)
    place = tiles(page, "cells")[0]
    for query, key in np.ndindex(*true.shape):
        assert hovered_weight(page, place, query, key, "cells") == pytest.approx(true[query, key], abs=5e-5)
    mean_maximum = true.max(axis=1).mean()
    expect(page.locator(".st-key-card-facts")).to_contain_text(f"{mean_maximum:.2f}")
    spot = next(spot for spot in tiles(page, "lines") if (spot["side"], spot["index"]) == ("query", 4))
    page.mouse.move(spot["x"], spot["y"])
    readout = drawing(page, "lines").locator(".readout")
    expect(readout).to_have_attribute("data-key", str(true[4].argmax()))
    assert float(readout.get_attribute("data-weight") or "nan") == pytest.approx(true[4].max(), abs=5e-5)


def test_ten_quick_presses_are_ten_steps_and_rows_appear_and_the_decode_plays_by_itself_to_its_end(
    visit: Open, engine: Engine
) -> None:
    page, trace = visit("step", text=LONGER), run_of(engine, LONGER)
    last, written = len(trace.steps) - 1, page.locator("[data-strip=target] .chip:not(.unwritten)")
    assert last > 11
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    expect(drawing(page, "player")).to_have_attribute("data-step", "10")
    expect(written).to_have_count(12)
    has_parameters(page, step="10")
    rest(page)
    expect(drawing(page, "player")).to_have_attribute("data-step", "10")
    place = tiles(page, "player")[0]
    true = trace.at(CROSS).head(0)
    for query, key in [(0, 1), (10, 3), (7, 8)]:
        assert hovered_weight(page, place, query, key, "player") == pytest.approx(true[query, key], abs=5e-5)
    page.mouse.move(0, 0)
    page.keyboard.press("ArrowLeft")
    expect(drawing(page, "player")).to_have_attribute("data-step", "9")
    expect(written).to_have_count(11)
    page.keyboard.press("End")
    expect(drawing(page, "player")).to_have_attribute("data-step", str(last))
    page.keyboard.press("Home")
    expect(drawing(page, "player")).to_have_attribute("data-step", "0")
    expect(written).to_have_count(2)
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    has_parameters(page, step=str(last - 2))
    rest(page)
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(drawing(page, "player")).to_have_attribute("data-step", str(last))
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    has_parameters(page, step=str(last))


def test_a_copied_link_opens_the_same_view_elsewhere(visit: Open, engine: Engine) -> None:
    page = visit(text=SIX, decode="beam", beam="3")
    page.mouse.click(*middle(tile_of(page, CROSS, 6), 2, 2))
    has_parameters(page, head="6")
    rest(page)
    page.locator("[data-strip=target] .chip").nth(3).click()
    has_parameters(page, query="2")
    trace = run_of(engine, SIX, method="beam", beam_size=3)
    copied = parameters(page)
    elsewhere(page)
    expect(page.get_by_role("textbox", name="Input sentence")).to_have_value(SIX)
    expect(chips(page, "target")).to_have_text(tokens.strip(trace.tokens["target"]))
    expect(page.locator("[data-strip=target] .chip.selected")).to_have_attribute("data-row", "2")
    expect(page.locator(".st-key-card-heat")).to_contain_text("Cross-attention, layer 3, head 7")
    expect(page.get_by_role("combobox", name="Decoding")).to_have_value("Beam search")
    assert parameters(page) == copied


def elsewhere(page: Page) -> None:
    """Opens the page's link in a browser that was never here, as far as cookies, storage and the server's session go."""
    link = page.url
    forget(page)
    opened(page, link)


def test_a_copied_link_to_a_step_opens_that_step_elsewhere(visit: Open) -> None:
    page = visit("step", text=SIX, site="decoder.0.1.self", head="2")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    has_parameters(page, step="3")
    copied = parameters(page)
    elsewhere(page)
    expect(drawing(page, "player")).to_have_attribute("data-step", "3")
    expect(drawing(page, "player")).to_have_attribute("data-head", "2")
    expect(drawing(page, "player")).to_contain_text("Decoder self-attention, layer 2, head 3")
    assert parameters(page) == copied


def test_the_state_goes_along_from_page_to_page(visit: Open) -> None:
    page = visit(text=SIX, site="decoder.0.1.self", head="2")
    for name, path in (("Masks", "/masks"), ("Positions", "/positions"), ("Step through", "/step"), ("Explore", "/")):
        page.get_by_test_id("stSidebarNav").get_by_role("link", name=name).click()
        page.wait_for_url(re.compile(rf":\d+{path}\?"))
        has_parameters(page, text=SIX, site="decoder.0.1.self", head="2")
        rest(page)


def css(colour: str) -> str:
    """#rrggbb as a browser tells it."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


def test_a_flip_to_dark_reaches_every_picture_and_people_can_choose_it_and_are_shown_nothing_for_developers(
    visit: Open, watched: Page
) -> None:
    watched.emulate_media(color_scheme="light")
    page = visit(text=SIX, reading="mean")
    card = page.locator(".st-key-card-heat")
    for mode, scheme in (("dark", DARK), ("light", LIGHT)):
        page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]  # one of the two
        expect(card).to_have_css("background-color", css(scheme.card))
        expect(drawing(page, "atlas").locator(".card").first).to_have_css("background-color", css(scheme.card))
        expect(card.locator(".js-plotly-plot .ytick text").first).to_have_css("fill", css(scheme.text))
    rest(page)
    page.get_by_test_id("stMainMenu").get_by_role("button").click()
    menu = page.get_by_test_id("stMainMenuPopover")
    expect(menu.get_by_role("menuitemradio")).to_have_count(3)
    expect(menu).not_to_contain_text("Clear cache")
    expect(page.get_by_text("Deploy")).to_have_count(0)
    menu.get_by_role("menuitemradio", name="Dark").click()
    expect(drawing(page, "atlas").locator(".card").first).to_have_css("background-color", css(DARK.card))
    expect(page.locator(".st-key-card-heat")).to_have_css("background-color", css(DARK.card))
    forget(page)


def test_hostile_text_is_shown_and_never_run(visit: Open) -> None:
    page = visit(text=SIX)
    type_sentence(page, HOSTILE)
    has_parameters(page, text=HOSTILE)
    expect(page.get_by_test_id("stMain")).to_contain_text("Not in the German vocabulary")
    rest(page)
    alone = [
        text.replace("\u2068", "").replace("\u2069", "") for text in chips(page, "source").all_inner_texts()
    ]  # isolates of what runs from right to left
    spelled = "".join(text.removeprefix(CONTINUING) for text in alone)
    assert "مرحبا" in spelled
    for path in ("explore", "step", "masks"):
        visit(path, text=HOSTILE, site="encoder.0.0.self")
        expect(page.locator("img[src=x], .katex, [data-testid=stMain] a[href*='//example']")).to_have_count(0)
        expect(page.locator("script").filter(has_text="alert(2)")).to_have_count(0)


def test_a_word_of_a_thousand_letters_is_shown_and_keeps_to_its_room(visit: Open) -> None:
    page = visit(model="tatoeba-en-zh", text="a" * 1000)  # whose words are known whole or not at all
    expect(chips(page, "source")).to_have_count(3)
    for width in (1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        rest(page)
        assert overflow(page) <= 0


def test_as_many_words_as_the_model_has_positions_can_be_read_and_one_more_is_refused(visit: Open, engine: Engine) -> None:
    words = (LONGER.replace(".", "").split() * 8)[:99]
    page, trace = visit(text=" ".join(words[:98])), run_of(engine, " ".join(words[:98]))
    expect(chips(page, "source")).to_have_count(100)
    place = tile_of(page, CROSS, 0)
    assert place["width"] >= 24
    page.mouse.dblclick(*middle(place, 1, 50))
    expect(drawing(page, "atlas").locator(".large")).to_be_visible()
    rest(page)
    large = tiles(page)[0]
    assert large["width"] / large["columns"] >= 3
    assert hovered_weight(page, large, 2, 97) == pytest.approx(trace.at(CROSS).head(0)[2, 97], abs=5e-5)
    type_sentence(page, " ".join(words))
    expect(page.get_by_test_id("stAlert")).to_contain_text("The source text has 101 tokens, but the limit is 100")
    type_sentence(page, SIX)
    expect(chips(page, "target")).to_have_text(tokens.strip(run_of(engine, SIX).tokens["target"]))


def test_an_unforeseen_error_shows_a_sentence_and_nothing_of_the_server(page: Page, serve: Callable[[Path], str]) -> None:
    page.set_default_timeout(PATIENCE_MS)
    address = serve(Path(__file__).with_name("canvas_app.py"))
    page.goto(f"{address}/?fails=yes")
    alert = page.get_by_test_id("stAlert")
    expect(alert).to_have_text(re.compile(r"Something went wrong inside Headlight .*incident [0-9a-f]{6}.*or reload the page\."))
    expect(alert).to_have_count(1)
    assert "secret" not in page.content()
    assert "Traceback" not in page.content()
    page.goto(f"{address}/?show=strips&number=well")
    expect(page.get_by_text("page well", exact=True)).to_be_visible()
