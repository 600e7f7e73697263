"""A conversation as a visitor holds it: said, answered, continued, seen as raw text, and found again by its link."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from tests import chats
from tests.browser.patience import expect
from tests.browser.servers import APP, free_port, started
from tests.browser.visits import drawing, rest, until
from tests.patience import HANG_S

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An app whose only model is tiny and chats."""
    models = tmp_path_factory.mktemp("models")
    chats.save(models / "talks", chats.CHATML)
    address, process = started(APP, free_port(), tmp_path_factory.mktemp("served"), HEADLIGHT_CHECKPOINTS=str(models))
    yield address
    process.kill()
    process.wait(timeout=HANG_S)


def said(page: Page) -> list[str]:
    """The texts of all turns."""
    return page.locator(".st-key-conversation .turn p").all_inner_texts()


def answered(page: Page, count: int) -> None:
    """Waits until so many turns stand there and the last is whole."""
    expect(page.locator(".st-key-conversation .turn")).to_have_count(count)
    expect(page.locator(".st-key-conversation .turns")).to_have_attribute("aria-busy", "false")
    rest(page)


def test_a_conversation_goes_on_and_its_link_tells_it_again(watched: Page, app: str) -> None:
    page = watched
    page.goto(f"{app}/?text=the+dog%3F&max=4&model=talks")
    answered(page, 2)
    first = said(page)
    box = page.get_by_role("textbox", name="Say something to the model")
    box.fill("And\nthen? <b>x</b>")
    box.press("Enter")
    answered(page, 4 if first[1] != "(nothing was generated)" else 2)
    assert said(page)[-2] == "And\nthen? <b>x</b>", "it is text, never HTML"
    chips = drawing(page, "strips").locator(".chip:visible").all_inner_texts()
    assert "↵" in chips
    assert "<|im_start|>" in chips
    page.get_by_role("button", name="Raw text").click()
    expect(page.locator(".st-key-conversation pre")).to_contain_text("<|im_start|>user\nAnd\nthen? <b>x</b><|im_end|>")
    rest(page)
    page.get_by_role("button", name="Raw text").click()
    answered(page, 4 if first[1] != "(nothing was generated)" else 2)
    whole, link = said(page), page.url
    page.locator(".st-key-conversation .turn button").first.click()
    assert box.input_value() == ("the dog?" if len(whole) > 2 else "And\nthen? <b>x</b>")
    box.fill("a dog")
    page.get_by_role("button", name="Send").click()
    answered(page, 2)
    page.go_back()
    until(page, lambda: said(page) == whole)
    rest(page)
    page.goto(link)
    answered(page, len(whole))
    assert said(page) == whole


@pytest.mark.thorough
def test_the_keyboard_alone_holds_a_conversation(watched: Page, app: str) -> None:
    page = watched
    page.goto(f"{app}/?text=the+dog%3F&max=2&model=talks")
    answered(page, 2)
    box = page.get_by_role("textbox", name="Say something to the model")
    box.focus()
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    assert box.input_value() == "one\ntwo"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="New conversation")).to_be_focused()
    page.keyboard.press("Enter")
    answered(page, 2)
    assert said(page)[0] == "one\ntwo"
    assert box.input_value() == ""


@pytest.mark.thorough
def test_a_long_conversation_opens_at_its_last_turn(watched: Page, app: str) -> None:
    page = watched
    page.goto(
        f"{app}/?text=the+dog%3F&max=2&model=talks&chat=" + '[["user","' + "dog " * 12 + '"],["assistant","' + "no " * 20 + '"]]'
    )
    answered(page, 4)
    strip = drawing(page, "strips")
    more = strip.get_by_role("button", name="Show the earlier turns")
    expect(more).to_be_visible()
    few = strip.locator(".chip:visible").count()
    more.click()
    until(page, lambda: strip.locator(".chip:visible").count() > few + 20)
    place = page.locator(".st-key-conversation .turns")
    assert place.evaluate("(node) => node.scrollTop + node.clientHeight >= node.scrollHeight - 1")


@pytest.mark.thorough
def test_a_conversation_fits_a_telephone(watched: Page, app: str) -> None:
    page = watched
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{app}/?text={'dog' * 60}&max=2&model=talks")
    answered(page, 2)
    assert page.evaluate("document.scrollingElement.scrollWidth <= document.scrollingElement.clientWidth")
    for name in ("Send", "New conversation", "Raw text"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
