"""A lecture held with a clicker's keys, a phone that follows it, and the file to take home, in a real browser."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page

from model.engine.api import Run
from model.requests.request import RunRequest
from tests.browser.conftest import Serve
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.servers import ROOT
from tests.known import bundled_engine
from viz.features.lectures.presenter import html_pages
from viz.features.lectures.presenter.deck import LectureDeck
from viz.features.lectures.script import parser

pytestmark = pytest.mark.browser

EXACT = """---
title: Exact
language: en
minutes: 1
models: multi30k-de-en
---
view: /explore?text=Ein+Hund.&site=decoder.0.2.cross&head=4
"""


def code_of(page: Page) -> str:
    """Opens a class and returns its code."""
    page.keyboard.press("c")
    page.locator("#class[open]").wait_for()
    code = page.inner_text("#code")
    page.keyboard.press("Escape")
    page.locator("#class").wait_for(state="hidden")  # a key that comes before belongs to the dialog
    return code


def shown(page: Page, step: int) -> None:
    page.wait_for_function(f"document.body.dataset.shown?.startsWith('{step}/') && document.body.dataset.shown.length > 9")


def assert_in_sight(page: Page, selector: str) -> None:
    """Nothing else of a lecturer scrolls: a clicker has no wheel."""
    side, inner = (page.locator(each).bounding_box() for each in ("aside.side", selector))
    assert side is not None
    assert inner is not None
    assert side["y"] - 1 <= inner["y"]
    assert inner["y"] + inner["height"] <= side["y"] + side["height"] + 1


def assert_counts_are_hidden_until_asked_for_or_closed(page: Page) -> None:
    """The projector of a class that has answered a question; at the end the question is closed."""
    expect(page.locator("#question .number")).to_have_count(0)
    page.keyboard.press("a")
    expect(page.locator("#question .number").first).to_be_visible()
    page.get_by_role("button", name="Show the answers so far").click()
    expect(page.locator("#question .number")).to_have_count(0)
    page.keyboard.press("PageDown")
    expect(page.locator("#question .note")).to_have_text("The question is closed. Answers: 1")
    expect(page.locator("#question .number").first).to_be_visible()
    expect(page.get_by_role("button", name="Show the answers so far")).to_have_count(0)


@pytest.mark.thorough
def test_the_class_dialog_is_closed_by_a_button_that_has_the_focus(watched: Page, serve: Serve) -> None:
    watched.goto(f"{serve(ROOT / 'app.py')}/hold/masks.en")
    watched.keyboard.press("c")
    expect(watched.locator("#class").get_by_role("button", name="Close")).to_be_focused()
    watched.keyboard.press("Space")
    expect(watched.locator("#class")).to_be_hidden()
    watched.keyboard.press("c")
    expect(watched.locator("#class")).to_be_visible()
    watched.evaluate(
        """() => {
            document.querySelector("#class").close();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
        }"""
    )  # before the browser takes the focus away from what is no longer seen
    expect(watched.locator("#class")).to_be_visible()
    assert watched.locator("body").get_attribute("data-shown") is not None


@pytest.mark.thorough
def test_the_class_dialog_warns_of_an_address_that_phones_cannot_reach_and_offers_others(watched: Page, serve: Serve) -> None:
    watched.goto(f"{serve(ROOT / 'app.py')}/hold/masks.en")
    watched.keyboard.press("c")
    dialog = watched.locator("#class[open]")
    expect(dialog.locator("#loopback")).to_be_visible()  # the server of the tests listens to loopback alone
    expect(dialog.locator("#origins")).to_be_hidden()
    watched.keyboard.press("Escape")
    expect(watched.locator("#class")).to_be_hidden()  # a key that comes before belongs to the dialog
    watched.route("**/addresses", lambda route: route.fulfill(json={"addresses": ["192.168.7.5", "10.2.0.3"]}))
    watched.keyboard.press("c")
    expect(dialog.locator("#loopback")).to_be_hidden()
    port = watched.evaluate("location.port")
    expect(dialog.locator("#address")).to_have_text(f"192.168.7.5:{port}/class")
    dialog.locator("#origins").select_option(index=1)
    expect(dialog.locator("#address")).to_have_text(f"10.2.0.3:{port}/class")
    picture = dialog.locator("#qr")
    assert f"origin=http%3A%2F%2F10.2.0.3%3A{port}" in (picture.get_attribute("src") or "")
    expect(picture).to_have_attribute("alt", re.compile(f"^http://10.2.0.3:{port}/class/"))
    for width, height in ((1024, 768), (390, 844)):
        watched.set_viewport_size({"width": width, "height": height})
        assert dialog.evaluate("({ scrollWidth, clientWidth }) => scrollWidth <= clientWidth")


@pytest.mark.thorough
def test_nobody_has_answered_where_there_is_no_class(watched: Page, serve: Serve) -> None:
    watched.goto(f"{serve(ROOT / 'app.py')}/hold/attention.en#2")
    watched.locator("#question .option").first.wait_for()
    expect(watched.locator("#question .number")).to_have_count(0)
    watched.keyboard.press("PageDown")
    expect(watched.locator("#question .right")).to_have_count(1)
    expect(watched.locator("#question .number:not(.run)")).to_have_count(0)


@pytest.mark.thorough
def test_an_address_leads_to_its_step_also_while_a_class_runs(watched: Page, serve: Serve) -> None:
    address = f"{serve(ROOT / 'app.py')}/hold/attention.en"
    watched.goto(address)
    code_of(watched)
    watched.evaluate("location.hash = '#8'")
    expect(watched.locator("#title")).to_have_text(title_of(watched, 7))
    watched.goto("about:blank")
    watched.goto(f"{address}#5")
    speaker = watched.context.new_page()
    code = watched.evaluate("JSON.parse(sessionStorage.getItem('headlight-class-attention.en')).code")
    speaker.goto(f"{address.removesuffix('/hold/attention.en')}/class/{code}/speaker")
    expect(speaker.locator("#title")).to_have_text(title_of(watched, 4))
    expect(watched.locator("#title")).to_have_text(title_of(watched, 4))
    speaker.close()


def title_of(page: Page, step: int) -> str:
    """The title of a step of the lecture that a page holds."""
    title: str = page.evaluate("(step) => JSON.parse(document.getElementById('page').textContent).slides[step].title", step)
    return title


def test_a_phone_follows_the_keys_answers_looks_around_and_returns(watched: Page, phone: Page, serve: Serve) -> None:
    address = serve(ROOT / "app.py")
    watched.goto(f"{address}/hold/attention.en#2")
    watched.locator("#question .option").first.wait_for()  # this step asks something; its options come from the run
    phone.goto(f"{address}/class")
    phone.fill("input[name=code]", code_of(watched).lower())
    phone.click("button[type=submit]")
    phone.locator(".option:enabled").first.tap()
    expect(phone.locator("#question .note")).to_contain_text("counted")
    expect(watched.locator("#question .note")).to_contain_text("Answers: 1")
    assert phone.locator("#stage").is_hidden(), "a question hides its view"
    assert_counts_are_hidden_until_asked_for_or_closed(watched)
    watched.keyboard.press("PageDown")
    shown(watched, 1)
    expect(watched.locator("#question .right")).to_have_count(1)
    for selector in ("#title", "#question .right", "#words > :first-child"):
        assert_in_sight(watched, selector)
    phone.locator("#stage .hl[data-layout]").first.wait_for()
    order = ("#title", "#lead", "#own .verdict", "#stage", "#question", "#words")
    places = [phone.locator(each).bounding_box() for each in order]
    ys = [place["y"] for place in places if place]
    assert len(ys) == len(order), "all of it is there"
    assert ys == sorted(ys), "title, one sentence, the own answer, then the picture; the rest below it"
    assert ys[3] < 300, "the picture begins in the upper third of the screen"
    phone.locator(".hl[data-drawing=strips] .chip[data-selectable]").nth(2).tap()
    expect(phone.locator("#back")).to_be_visible()
    phone.locator("#back").tap()
    expect(phone.locator("#back")).to_be_hidden()
    watched.keyboard.press("PageDown")
    expect(phone.locator("#title")).to_have_text(watched.inner_text("#title"))
    watched.keyboard.press("b")
    expect(phone.locator("body")).to_have_class("student black")
    watched.keyboard.press("b")
    watched.reload()  # a laptop that slept, or a tab that was thrown away: the class goes on with its lecturer
    watched.locator("#followers:not(:empty)").wait_for()
    expect(watched.locator("#title")).to_have_text(phone.inner_text("#title"))
    watched.keyboard.press("PageUp")
    expect(phone.locator("#title")).to_have_text("Whose bike?")
    speaker = watched.context.new_page()
    speaker.goto(f"{phone.url}/speaker")
    expect(speaker.locator("#title")).to_have_text("Whose bike?")
    watched.keyboard.press("l")
    watched.keyboard.press("l")  # an order of this window just before that of the other one
    speaker.keyboard.press("PageDown")
    speaker.keyboard.press("b")
    expect(watched.locator("#title")).to_have_text(title_of(watched, 2))
    expect(watched.locator("body")).to_have_class(re.compile("black"))
    speaker.keyboard.press("b")
    expect(watched.locator("body")).not_to_have_class(re.compile("black"))
    assert phone.evaluate("fetch(location.pathname + '/steer', {method: 'POST', body: '{\"step\": 0}',"
                          " headers: {'Content-Type': 'application/json'}}).then((reply) => reply.status)") == 403  # fmt: skip


SEEN = """() => {
  const texts = [];
  const roots = [document.body];
  for (const root of roots) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      if (node.shadowRoot) roots.push(node.shadowRoot);
      if (node.nodeType === Node.TEXT_NODE && node.parentElement?.checkVisibility() && !node.parentElement.closest("style, script")) texts.push(node.data);
    }
  }
  return texts.join(" ");
}"""  # noqa: E501
"""All texts that a page shows, those inside of drawings, too."""


@pytest.mark.thorough
def test_a_phone_is_told_of_fingers_and_what_follows_a_mouse_works_by_tap(watched: Page, phone: Page, serve: Serve) -> None:
    address = serve(ROOT / "app.py")
    watched.goto(f"{address}/hold/attention.en#38")  # a film, and curves of heads
    phone.goto(f"{address}/class")
    phone.fill("input[name=code]", code_of(watched).lower())
    phone.click("button[type=submit]")
    curves = phone.locator(".curves").first
    curves.wait_for()
    assert not re.search("hover|click", phone.evaluate(SEEN), re.IGNORECASE)
    name = curves.locator(".name")
    expect(name).to_have_text("")
    curves.scroll_into_view_if_needed()
    box = curves.bounding_box()
    assert box is not None
    phone.touchscreen.tap(box["x"] + box["width"] * 0.15, box["y"] + box["height"] * 0.1)  # where all heads still are alike
    expect(name).to_have_text(re.compile("head [12]$"))
    expect(curves.locator(".pointed")).to_have_count(1)
    watched.evaluate("location.hash = '#4'")  # a step without a question; what it points at is below the picture
    expect(phone.locator("#title")).to_have_text(title_of(watched, 3))
    assert phone.evaluate("scrollY") == 0, "a new step begins at its title"
    phone.locator(".hl[data-drawing=strips] .chip").first.wait_for()
    assert not re.search("hover|click", phone.evaluate(SEEN), re.IGNORECASE)
    point = phone.locator("#points button").last
    point.scroll_into_view_if_needed()
    point.tap()
    expect(phone.locator("#stage")).to_be_in_viewport()
    expect(phone.locator("#back")).to_be_in_viewport(ratio=1)
    watched.evaluate("location.hash = '#6'")
    expect(phone.locator("#notice")).to_have_text("The lecture has moved on.")
    phone.locator("#back").tap()
    expect(phone.locator("#back")).to_be_hidden()
    expect(phone.locator("#notice")).to_be_hidden()
    assert phone.evaluate("scrollY") == 0


def test_the_file_is_drawn_from_a_disk_without_a_network(browser: Browser, serve: Serve, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "masks.html"
    with page.expect_download(timeout=PATIENCE_MS) as download:  # starts by itself when the lecture is prepared
        page.goto(f"{serve(ROOT / 'app.py')}/hold/masks.en/file")
        expect(page.locator("#state")).to_have_text("The download has started. You can close this page.")
    download.value.save_as(file)
    noise: list[str] = []
    context = browser.new_context(offline=True, viewport={"width": 1024, "height": 768})
    alone = context.new_page()
    alone.on("console", lambda message: noise.append(message.text))
    alone.on("pageerror", lambda error: noise.append(str(error)))
    alone.on("request", lambda request: noise.append(request.url) if request.url.split("#")[0] != file.as_uri() else None)
    alone.goto(file.as_uri())
    alone.locator("#chapters .dot").first.wait_for()
    for _step in range(30):
        alone.keyboard.press("PageDown")
        alone.wait_for_timeout(60)
    alone.locator("#chapters .dot:last-child[aria-current]").wait_for(timeout=PATIENCE_MS)
    assert alone.evaluate("document.querySelector('#chapters option:last-child').selected"), "the last chapter"
    assert alone.evaluate("[...document.fonts].map(({ family, status }) => family + status)") == ["Source Sansloaded"]
    assert noise == []
    assert_exact(alone, tmp_path / "exact.html")
    with pytest.raises(Error, match="ERR_INTERNET_DISCONNECTED"):
        alone.goto("http://127.0.0.1:9/")  # the browser has no network
    context.close()


def assert_exact(alone: Page, file: Path) -> None:
    """A weight under the pointer, in a file that was made from a lecture, is the one of the run."""
    engine = bundled_engine()
    deck = LectureDeck(parser.read(EXACT, "exact.en"), engine)
    deck.wait()
    file.write_bytes(html_pages.file(deck))
    alone.goto(file.as_uri())
    drawing = alone.locator(".hl[data-drawing=atlas][data-layout]").first
    drawing.wait_for()
    (place,), box = json.loads(drawing.get_attribute("data-layout") or ""), drawing.bounding_box()
    assert box is not None
    x, y = (place["width"] * 2.5 / place["columns"], place["height"] * 1.5 / place["rows"])
    alone.mouse.move(box["x"] + place["x"] + x, box["y"] + place["y"] + y)
    readout = drawing.locator(".readout[data-weight]")
    readout.wait_for()
    weights = engine.ask(Run(RunRequest(model="multi30k-de-en", source="Ein Hund."))).at("decoder.0.2.cross").weights
    assert [readout.get_attribute(f"data-{name}") for name in ("head", "query", "key")] == ["4", "1", "2"]
    assert float(readout.get_attribute("data-weight") or "nan") == float(weights[4, 1, 2])
