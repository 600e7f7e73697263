"""The atlas as a page of its own, opened from a disk by a browser that reaches nothing."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page

from model.trace.types import Site, Trace
from tests import traces
from tests.browser.canvas_harness import made
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.visits import drawing, hovered_weight, middle, tile_of, tiles
from viz.canvas import standalone
from viz.features.notebook.show import show
from viz.figures.theme import DARK, LIGHT

pytestmark = pytest.mark.browser

CROSS = Site("decoder", 0, 2, "cross")
Open = Callable[..., Page]


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Saves a run's page and opens the file, offline; nothing may be asked for, thrown or written to the console."""
    noise: list[str] = []
    contexts = []

    def go(trace: Trace, site: Site, head: int, before: str = "", **options: Any) -> Page:
        file = tmp_path / "page.html"
        file.write_bytes(standalone.page(trace, site, head, -1))
        context = browser.new_context(offline=True, **({"viewport": {"width": 1440, "height": 900}} | options))
        contexts.append(context)
        context.add_init_script(before)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: noise.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: noise.append(f"thrown: {error}"))
        page.on("dialog", lambda dialog: noise.append(dialog.message))
        page.on("request", lambda request: noise.append(request.url) if request.url != file.as_uri() else None)
        page.goto(file.as_uri())
        page.locator(".hl[data-drawing=atlas][data-layout]").wait_for()
        settle(page)
        return page

    yield go
    for context in contexts:
        context.close()
    assert noise == []


def settle(page: Page) -> None:
    """Waits until what was asked for is drawn."""
    page.evaluate("() => new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 100))")


def test_hovered_weights_of_every_head_are_those_of_the_trace(opened: Open) -> None:
    trace = traces.translation()
    page, rng = opened(trace, CROSS, 3), np.random.default_rng(3)
    drawn = tiles(page)
    for _ in range(20):
        tile = drawn[rng.integers(len(drawn))]
        query, key = int(rng.integers(tile["rows"])), int(rng.integers(tile["columns"]))
        true = trace.at(tile["site"]).head(tile["head"])[query, key]
        assert hovered_weight(page, tile, query, key) == pytest.approx(true, rel=1e-6)
        if trace.at(tile["site"]).mask[query, key]:
            decimals = min(max(4, 1 - math.floor(math.log10(true))), 7)  # two significant digits
            expect(drawing(page, "atlas").locator(".readout")).to_contain_text(f"with weight {true:.{decimals}f}")


def test_a_head_is_selected_and_opened_large_without_a_server(opened: Open) -> None:
    trace = traces.translation()
    page = opened(trace, CROSS, 3)
    tile = tile_of(page, "encoder.0.1.self", 5)
    page.mouse.dblclick(*middle(tile, 3, 3))
    expect(page.locator(".large h3")).to_have_text("Encoder self-attention, layer 2, head 6")
    settle(page)
    (large,) = tiles(page)
    assert large["width"] > 3 * tile["width"]
    assert hovered_weight(page, large, 2, 7) == pytest.approx(trace.at("encoder.0.1.self").head(5)[2, 7], rel=1e-6)
    page.mouse.click(*middle(large, 2, 7))
    expect(page.locator("[data-strip=source] .chip.selected")).to_have_text(trace.tokens["source"].texts[2])
    page.keyboard.press("Escape")
    expect(page.locator(".large")).to_be_hidden()


@pytest.mark.thorough
def test_a_page_opens_without_the_first_token_says_so_and_shows_all_weights_at_one_click(opened: Open) -> None:
    trace, site = traces.at_first(), Site("decoder", 0, 1, "self")
    page = opened(trace, site, 1)
    weights = trace.at(site).head(1).astype(float)
    rest = weights[7, 4] / weights[7, 1:].sum()
    said, readout = drawing(page, "atlas").locator(".first"), drawing(page, "atlas").locator(".readout")
    expect(said).to_contain_text("Shown without the first token, “<sos>”")
    assert hovered_weight(page, tile_of(page, str(site), 1), 7, 4) == pytest.approx(rest, rel=1e-6)
    page.mouse.move(*middle(tile_of(page, str(site), 1), 7, 0))
    expect(readout).to_contain_text(f"with weight {weights[7, 0]:.4f}, left out")
    page.mouse.dblclick(*middle(tile_of(page, str(site), 1), 7, 4))
    share = weights[1:, 0].mean()
    expect(page.locator(".large .axes")).to_contain_text(f"left out: {share:.0%}")
    page.keyboard.press("Escape")
    said.get_by_role("button", name="Show all weights").press("Enter")
    expect(said.get_by_role("button")).to_have_text("Leave out the first token")
    settle(page)
    assert hovered_weight(page, tile_of(page, str(site), 1), 7, 4) == pytest.approx(weights[7, 4], rel=1e-6)
    assert hovered_weight(page, tile_of(page, str(site), 1), 7, 0) == pytest.approx(weights[7, 0], rel=1e-6)


OLDER = """
  for (const name of ["popover", "showPopover", "hidePopover"]) delete HTMLElement.prototype[name];
  delete Element.prototype.checkVisibility;
  const { matches } = Element.prototype;
  Element.prototype.matches = function (selector) {
    if (selector.includes(":popover-open")) throw new SyntaxError(selector);
    return matches.call(this, selector);
  };
"""
"""A browser of 2023 knows neither popovers nor whether an element is seen, and throws at a selector that it does not know."""


@pytest.mark.thorough
def test_a_browser_of_2023_shows_weights_and_takes_keys(opened: Open) -> None:
    trace = traces.translation()
    page = opened(trace, CROSS, 3, before=OLDER)
    tile = tile_of(page, "encoder.0.1.self", 5)
    assert hovered_weight(page, tile, 2, 1) == pytest.approx(trace.at("encoder.0.1.self").head(5)[2, 1], rel=1e-6)
    expect(page.locator(".tip.shown")).to_be_visible()
    page.mouse.move(1, 1)
    expect(page.locator(".tip.shown")).to_have_count(0)
    page.mouse.dblclick(*middle(tile, 3, 3))
    expect(page.locator(".large h3")).to_have_text("Encoder self-attention, layer 2, head 6")
    page.keyboard.press("Escape")
    expect(page.locator(".large")).to_be_hidden()


@pytest.mark.thorough
def test_heads_that_share_a_key_head_are_seen_and_read(opened: Open) -> None:
    run = traces.at_first()
    spec = {"decoder": {"attention": {"heads": 4, "key_heads": 2}}}
    page = opened(replace(run, model={**run.model, "spec": spec, "fingerprint": "grouped"}), Site("decoder", 0, 1, "self"), 3)
    page.mouse.move(*middle(tile_of(page, "decoder.0.1.self", 2), 7, 4))
    expect(page.locator(".tip.shown")).to_contain_text("key head 2")
    expect(page.locator(".tip.shown")).to_contain_text("H3, H4")
    page.locator(".card canvas").focus()
    page.keyboard.press("ArrowLeft")
    expect(drawing(page, "atlas").locator(".readout")).to_contain_text("key head 2, shared by H3, H4.")
    page.keyboard.press(" ")
    expect(page.locator(".large .axes")).to_contain_text("key head 2, shared by H3, H4")


@pytest.mark.thorough
def test_the_keyboard_selects_and_opens(opened: Open) -> None:
    page = opened(traces.translation(), CROSS, 0)
    page.locator("[data-strip=target] .chip").nth(4).click()
    expect(page.locator("[data-strip=target] .chip.selected")).to_have_count(1)
    page.keyboard.press("Tab")
    page.locator(".card canvas").nth(2).focus()
    for key in ("ArrowRight", "ArrowRight", " "):
        page.keyboard.press(key)
    expect(page.locator(".large h3")).to_have_text("Cross-attention, layer 3, head 3")


@pytest.mark.thorough
def test_what_is_known_from_the_overview_alone_is_said_so(opened: Open) -> None:
    trace = made("12x12x128")
    page = opened(trace, Site("encoder", 0, 4, "self"), 7)
    readout = drawing(page, "atlas").locator(".readout")
    for site, head, exact in (("encoder.0.4.self", 7, True), ("encoder.0.9.self", 2, False)):
        tile = tile_of(page, site, head)
        page.mouse.click(*middle(tile, 64, 60))
        settle(page)
        page.mouse.move(*middle(tile, 66, 50))
        said = readout.evaluate("node => ({...node.dataset})")
        true = trace.at(site).head(head)[int(said["query"]), int(said["key"])]
        assert float(said["weight"]) == pytest.approx(true, abs=1e-7 if exact else 0.004)
        assert ("≈" in readout.inner_text()) is not exact


@pytest.mark.thorough
def test_a_head_too_large_to_come_along_is_shown_as_finely_as_it_did(opened: Open) -> None:
    trace = made("1x1x1300")
    page = opened(trace, Site("encoder", 0, 0, "self"), 0)
    page.locator(".card header button").click()
    settle(page)
    for _ in range(8):
        page.keyboard.press("+")
    settle(page)
    (tile,) = tiles(page)
    row, column = int(tile["row"] + tile["rows"] / 2), int(tile["column"] + tile["columns"] / 2)
    page.mouse.move(*middle(tile, row, column))
    page.wait_for_timeout(200)  # longer than a pointer has to rest where more can be had
    said = drawing(page, "atlas").locator(".readout").evaluate("node => ({...node.dataset})")
    top, left = int(said["query"]) // 2 * 2, int(said["key"]) // 2 * 2
    assert float(said["most"]) == pytest.approx(trace.at(tile["site"]).head(0)[top : top + 2, left : left + 2].max(), abs=0.004)


@pytest.mark.thorough
@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_it_follows_light_and_dark(opened: Open, colours: Any) -> None:
    page = opened(traces.translation(), CROSS, 0, color_scheme="light" if colours is DARK else "dark")
    page.emulate_media(color_scheme="dark" if colours is DARK else "light")
    settle(page)
    card = page.locator(".card").first.evaluate("node => getComputedStyle(node).backgroundColor")
    ground = page.locator("html").evaluate("node => getComputedStyle(node).backgroundColor")
    assert [card, ground] == [f"rgb{tuple(bytes.fromhex(colour[1:]))}" for colour in (colours.card, colours.background)]


def test_hostile_tokens_do_nothing_and_are_read(opened: Open) -> None:
    page = opened(made("hostile"), Site("decoder", 0, 0, "cross"), 0)
    expect(page.locator("[data-strip=source] .chip").nth(1)).to_contain_text("</script><img␣src=x")
    assert page.locator("img").count() == 0


@pytest.mark.thorough
def test_it_fits_a_telephone(opened: Open) -> None:
    page = opened(traces.translation(), CROSS, 0, viewport={"width": 390, "height": 844})
    assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0


@pytest.mark.thorough
def test_many_tokens_are_unfolded_on_request(opened: Open) -> None:
    page = opened(made("2x2x128"), Site("encoder", 0, 0, "self"), 0)
    assert page.locator(".chip").count() == 0
    page.get_by_text("Tokens", exact=True).click()
    expect(page.locator(".chip")).to_have_count(128)


@pytest.mark.thorough
def test_in_a_notebook_the_frame_fits_the_picture_and_follows_the_scheme(browser: Browser, tmp_path: Path) -> None:
    """A stand-in for JupyterLab: what it writes on its body, and two outputs of cells."""
    outputs = show(traces.translation())._repr_html_() * 2
    file = tmp_path / "notebook.html"
    file.write_text(f'<!doctype html><body data-jp-theme-light="true" style="background: white">{outputs}', encoding="utf-8")
    context = browser.new_context(offline=True, color_scheme="dark", viewport={"width": 1000, "height": 700})
    page, noise = context.new_page(), list[str]()
    page.on("console", lambda message: noise.append(message.text))
    page.on("pageerror", lambda error: noise.append(str(error)))
    page.goto(file.as_uri())
    for number in range(2):
        inside = page.frame_locator("iframe").nth(number)
        inside.locator(".hl[data-drawing=atlas][data-layout]").wait_for()
        expect(inside.locator("html")).to_have_attribute("data-scheme", "light")
        whole = inside.locator("main").evaluate("main => Math.ceil(main.getBoundingClientRect().height)")
        expect(page.locator("iframe").nth(number)).to_have_css("height", f"{whole}px")
    assert inside.locator("html").evaluate("root => getComputedStyle(root).backgroundColor") == rgb(LIGHT.background)
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")
    expect(inside.locator("html")).to_have_attribute("data-scheme", "dark")
    assert inside.locator("html").evaluate("root => getComputedStyle(root).backgroundColor") == rgb(DARK.background)
    canvas = inside.locator(".hl[data-drawing=atlas] canvas").first
    canvas.hover(position={"x": 80, "y": 60})
    expect(inside.locator(".hl[data-drawing=atlas] .readout")).to_contain_text("with weight")
    context.close()
    assert noise == []


def rgb(color: str) -> str:
    """A color of a scheme as browsers write it."""
    return f"rgb({', '.join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))})"
