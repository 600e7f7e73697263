"""The first visit: one picture, whole without scrolling; everything else after a click; later the page as it was left."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from model.engine.api import Run
from model.requests.request import RunRequest
from tests.browser.conftest import Serve
from tests.browser.emulation import another_language
from tests.browser.patience import expect
from tests.browser.tabs import forget
from tests.browser.visits import drawing, has_parameters, middle, opened, overflow, parameters, rest, tiles, type_sentence
from tests.known import bundled_engine
from viz.features.tour.first_scene import clearest_head

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[4] / "app.py"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
TYPED = "Ein Hund spielt im Schnee."

WHOLE = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  const first = document.querySelector(".st-key-first-picture");
  const seen = [...first.querySelectorAll("h1, p, button, [data-testid=stBidiComponentRegular], .stBidiComponent")];
  const boxes = [...seen, document.querySelector(".st-key-sentence input")].map((node) => node.getBoundingClientRect());
  const sides = boxes.filter(({ width }) => width > 0);
  return {
    scrolls: main.scrollHeight - main.clientHeight,
    below: Math.max(...sides.map(({ bottom }) => bottom)) - innerHeight,
    above: Math.min(...sides.map(({ top }) => top)),
    beside: Math.max(...sides.map(({ right }) => right)) - innerWidth,
  };
}"""
"""By how much the first picture, its words and the box to type in leave the window."""


@pytest.fixture
def newcomer(watched: Page) -> Page:
    """The tab of somebody who was never here."""
    forget(watched)
    return watched


SIZES = [(1440, 900), (1024, 768), (390, 844), (1920, 1080), (3840, 2160)]
TITLES = {
    "en": "What a network attends to while it translates",
    "de": "Worauf ein Netz achtet, während es übersetzt",
    "zh-CN": "网络翻译时注意什么",
    "zh-TW": "網路翻譯時注意什麼",
}


@pytest.mark.parametrize("language", ["en", *(pytest.param(name, marks=pytest.mark.thorough) for name in TITLES if name != "en")])
def test_the_first_picture_is_whole_without_scrolling(newcomer: Page, serve: Serve, language: str) -> None:
    with another_language(newcomer, language):
        page = opened(newcomer, serve(APP))
        expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[language])
        for width, height in SIZES if language == "en" else SIZES[:3]:  # on large screens no language is too long
            page.set_viewport_size({"width": width, "height": height})
            rest(page)
            found = page.evaluate(WHOLE)
            assert found["scrolls"] <= 1, (width, found)
            assert found["below"] <= 0, (width, found)
            assert found["above"] >= 0, (width, found)
            assert found["beside"] <= 0, (width, found)
            assert overflow(page) <= 1, width
            lines = drawing(page, "lines").bounding_box()
            assert lines is not None
            least = 0.5 if (width, language) == (1440, "en") else 0.35
            assert lines["height"] > least * height, f"the picture is lost in the window of {width} pixels"
            expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()


@pytest.mark.thorough
@pytest.mark.parametrize(("size", "larger"), [((1440, 900), 1), ((1920, 1080), 1.4), ((3840, 2160), 3)])
def test_a_larger_screen_has_a_larger_first_picture(newcomer: Page, serve: Serve, size: tuple[int, int], larger: float) -> None:
    newcomer.set_viewport_size({"width": size[0], "height": size[1]})
    page = opened(newcomer, serve(APP))
    lines = drawing(page, "lines").bounding_box()
    assert lines is not None
    assert lines["width"] == pytest.approx(56 * 16 * larger, abs=1)
    letters = "node => parseFloat(getComputedStyle(node).fontSize)"
    assert drawing(page, "lines").evaluate(letters) == pytest.approx(14 * 1.2 * larger, abs=0.1)
    for selector, rem in {"h1": 1.6, "h1 + p": 1, "button p": 0.875, "button [data-testid=stIconMaterial]": 1}.items():
        seen = page.locator(f".st-key-first-picture {selector}").first
        assert seen.evaluate(letters) == pytest.approx(16 * rem * larger, abs=0.1), selector


def test_a_visitor_sees_one_head_types_a_sentence_and_opens_all_heads(newcomer: Page, serve: Serve) -> None:
    newcomer.set_viewport_size({"width": 1440, "height": 900})
    page = opened(newcomer, serve(APP))
    lines = drawing(page, "lines")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("Hover over “park”: what did it attend to?")
    expect(drawing(page, "atlas")).to_have_count(0)
    type_sentence(page, TYPED)
    trace = bundled_engine().ask(Run(RunRequest("multi30k-de-en", TYPED)))
    rest(page)
    words = [text.lower() for text in trace.tokens["target"].texts]
    expect(lines).to_contain_text("what did it attend to?")
    assert lines.inner_text().split("“")[1].split("”")[0].lower() in words
    page.get_by_role("button", name="Show all 72 heads").click()
    expect(drawing(page, "atlas")).to_be_visible()
    has_parameters(page, text=TYPED)
    expect(page.get_by_role("heading", level=1)).to_have_count(0)
    expect(page.get_by_test_id("stSidebar")).to_be_in_viewport()


def test_a_returning_visitor_gets_the_page_as_it_was_left_and_a_link_opens_what_it_says(newcomer: Page, serve: Serve) -> None:
    page = opened(newcomer, f"{serve(APP)}/step?text={TYPED}&head=2")
    expect(drawing(page, "player")).to_be_visible()
    left = parameters(page)
    assert left["head"] == "2"
    page.goto("about:blank")
    opened(page, serve(APP))
    expect(drawing(page, "player")).to_be_visible()
    assert page.url.split("?")[0].endswith("/step")
    assert parameters(page) == left
    page.goto("about:blank")
    opened(page, f"{serve(APP)}/?text=Ein+Mann.")
    expect(drawing(page, "atlas")).to_be_visible()
    has_parameters(page, text="Ein Mann.")
    forget(page)
    opened(page, f"{serve(APP)}/?text=Ein+Mann.")
    expect(drawing(page, "atlas")).to_be_visible()
    expect(page.get_by_role("button", name="Show all 72 heads")).to_have_count(0)


@pytest.mark.thorough
def test_keys_lead_through_the_tour_which_is_found_again_under_help_and_in_no_links_way(newcomer: Page, serve: Serve) -> None:
    newcomer.set_viewport_size({"width": 1440, "height": 900})
    page = opened(newcomer, serve(APP))
    page.get_by_role("button", name="Show me in five steps").click()
    title = page.get_by_role("heading", level=1)
    for words, picture in (("A text becomes tokens", "strips"), ("A head attends", "lines"), ("The same head as a map", "cells")):
        expect(title).to_have_text(words)
        expect(drawing(page, picture)).to_be_visible()
        page.get_by_role("button", name="Next", exact=True).click()
    expect(title).to_have_text("All heads at once")
    page.get_by_role("button", name="Back").click()
    expect(title).to_have_text("The same head as a map")
    rest(page)
    page.mouse.click(*middle(tiles(page, "cells")[0], 3, 2))
    expect(page.get_by_role("dialog")).to_contain_text("recomputed in float64")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(title).to_have_text("The same head as a map")
    page.get_by_role("button", name="Next", exact=True).click()
    expect(title).to_have_text("All heads at once")
    rest(page)
    assert page.evaluate(WHOLE)["below"] <= 0
    page.get_by_role("button", name="Next", exact=True).click()
    expect(title).to_have_text("Now change something")
    above, below = page.get_by_text("Step 5 of 5. →").bounding_box(), title.bounding_box()
    assert above is not None
    assert below is not None
    assert 0 <= below["y"] - above["y"] - above["height"] < 8, "the number of a step stands close above its title"
    type_sentence(page, TYPED)
    has_parameters(page, text=TYPED)
    expect(title).to_have_text("Now change something")
    rest(page)
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("x")
    page.keyboard.press("ArrowLeft")
    expect(title).to_have_text("All heads at once")
    rest(page)
    page.keyboard.press("ArrowRight")
    expect(title).to_have_text("Now change something")
    rest(page)
    page.keyboard.press("Space")
    expect(title).to_have_count(0)
    expect(drawing(page, "atlas")).to_be_visible()
    trace = bundled_engine().ask(Run(RunRequest("multi30k-de-en", TYPED)))
    has_parameters(page, site="decoder.0.2.cross", head=str(clearest_head(trace, trace.last_cross())))
    rest(page)
    page.get_by_role("button", name="Help: a tour in five steps").click()
    expect(title).to_have_text("A text becomes tokens")
    rest(page)
    page.keyboard.press("Escape")
    expect(drawing(page, "atlas")).to_be_visible()
    expect(title).to_have_count(0)
    opened(page, f"{serve(APP)}/?text=Ein+Mann.")
    expect(drawing(page, "atlas")).to_be_visible()
    expect(title).to_have_count(0)


@pytest.mark.thorough
def test_on_a_phone_a_tap_shows_the_lines_of_a_word_and_all_heads_come_without_the_settings(browser: Browser, serve: Serve) -> None:
    context = browser.new_context(**PHONE)  # type: ignore[arg-type]  # the fields of a phone
    page = opened(context.new_page(), serve(APP))
    expect(drawing(page, "lines")).to_contain_text("Tap “park”: what did it attend to?")
    before = page.evaluate(WHOLE)
    assert before["below"] <= 0
    page.get_by_role("button", name="Show me in five steps").tap()
    expect(page.get_by_text("step 1 of 5", exact=True)).to_be_visible()
    expect(page.get_by_text("Escape").filter(visible=True)).to_have_count(0)
    page.get_by_role("button", name="Leave the tour").tap()
    page.get_by_role("button", name="Show all 72 heads").tap()
    expect(drawing(page, "atlas")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    context.close()


@pytest.mark.thorough
@pytest.mark.parametrize("width", [1440, 390])
def test_a_sidebar_that_is_folded_away_takes_no_focus(newcomer: Page, serve: Serve, width: int) -> None:
    newcomer.set_viewport_size({"width": width, "height": 900})
    page = opened(newcomer, serve(APP))
    in_sidebar = "document.activeElement.closest('.stSidebar') !== null"
    seen = []
    for _stop in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(in_sidebar))
    assert not any(seen)
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_test_id("stSidebarNavLink").first.focus()
    assert page.evaluate(in_sidebar), "unfolded, it takes the focus"
