"""The page Compare in a real browser: its numbers are those of two runs computed here."""

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page

from model.engine.api import Run
from model.requests.edits import Silence
from model.requests.request import RunRequest
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.test_pages import box
from tests.browser.visits import drawing, has_parameters, hovered_weight, middle, opened, overflow, parameters, rest, tiles
from tests.known import bundled_engine

pytestmark = pytest.mark.browser

MODEL, TEXT, SITE, HEAD = "multi30k-de-en", "Zwei junge Hunde spielen im Schnee.", "encoder.0.2.self", 2
SILENCED = "silence=encoder.0.0.self:4"


@pytest.fixture
def visit(watched: Page, within: Callable[[str], Page], serve: Callable[[Path], str]) -> Page:
    watched.set_viewport_size({"width": 1440, "height": 3000})
    link = {"model": MODEL, "text": TEXT, "site": SITE, "head": str(HEAD), "against": SILENCED}
    return within(f"{serve(ROOT / 'app.py')}/compare?{urlencode(link)}")


def test_what_changed_is_the_difference_of_two_runs_a_click_selects_a_head_and_another_sentence_fits_a_phone(visit: Page) -> None:
    page, engine = visit, bundled_engine()
    first = engine.ask(Run(RunRequest(MODEL, TEXT)))
    second = engine.ask(Run(RunRequest(MODEL, TEXT, edits=(Silence("encoder.0.0.self", (4,)),))))
    drawing(page, "changes").scroll_into_view_if_needed()
    apart = second.at(SITE).head(HEAD).astype(float) - first.at(SITE).head(HEAD)
    places = tiles(page, "changes")
    assert {tile["site"] for tile in places} == {str(site) for site in first.attention}
    (selected,) = [tile for tile in places if (tile["site"], tile["head"]) == (SITE, HEAD)]
    for query, key in ((0, 4), (5, 6), (6, 6)):
        assert hovered_weight(page, selected, query, key, "changes") == pytest.approx(apart[query, key], abs=1e-5)
    shown = page.locator(".st-key-card-selected .js-plotly-plot").nth(2)
    expect(shown).to_be_visible()
    apart[abs(apart) <= 1e-5] = 0.0  # rounding is drawn as none
    cells = shown.evaluate("node => Array.from(node._fullData[0].z, (row) => Array.from(row))")
    assert cells == pytest.approx(apart, abs=1e-6)
    other = next(tile for tile in places if (tile["site"], tile["head"]) == ("decoder.0.1.cross", 3))
    page.mouse.click(*middle(other, 1, 1))
    has_parameters(page, site="decoder.0.1.cross", head="3", against=SILENCED)
    rest(page)
    expect(page.locator(".st-key-card-selected")).to_contain_text("Cross-attention, layer 2, head 4")
    ranking = page.locator(".st-key-card-ranking")
    expect(ranking.get_by_test_id("stDataFrame")).to_be_visible()
    another_sentence_is_typed_and_fits_a_phone(page)


def another_sentence_is_typed_and_fits_a_phone(page: Page) -> None:
    page.get_by_role("radio", name="another sentence").click()
    box = page.get_by_role("textbox", name="Sentence of side B")
    box.fill("Zwei alte Hunde spielen im Schnee.")
    box.press("Enter")
    has_parameters(page, against="text=Zwei alte Hunde spielen im Schnee.")
    rest(page)
    outputs = page.locator(".st-key-card-outputs")
    expect(outputs.locator("del").first).to_have_text("junge")
    expect(outputs.locator("strong", has_text="alte")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    rest(page)
    assert overflow(page) <= 1
    assert parameters(page)["site"] == "decoder.0.1.cross", "the selected head stays"
    the_example_comes_before_the_settings_which_say_what_it_silences(page)


def the_example_comes_before_the_settings_which_say_what_it_silences(page: Page) -> None:
    page.set_viewport_size({"width": 1024, "height": 768})
    opened(page, f"{page.url.partition('?')[0]}?{urlencode({'model': MODEL, 'text': TEXT})}")
    outputs, settings = page.locator(".st-key-card-outputs"), page.get_by_text("Settings of side B")
    assert box(outputs)["y"] < 768 / 2
    assert box(outputs.locator(".aligned").last)["y"] < 768
    settings.click()
    chosen = page.get_by_role("combobox", name="Heads silenced on side B")
    expect(chosen).to_have_attribute("placeholder", re.compile(r"layer \d, head \d"))
