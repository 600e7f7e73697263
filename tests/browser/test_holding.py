"""The bundled lecture on the projector of a lecture room: its words stay inside the window beside every view."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.patience import expect
from tests.browser.visits import drawing, until
from viz.features.lectures.script import library

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
WIDTH, HEIGHT = 1024, 768


PRESS = """() => {
  const before = document.querySelector(".sheet:not([inert])");
  document.dispatchEvent(new KeyboardEvent("keydown", { key: "PageDown", bubbles: true, cancelable: true }));
  const shown = document.querySelector(".sheet:not([inert])");
  const canvases = [...shown.querySelectorAll(".drawing")].flatMap(({ shadowRoot }) => [...shadowRoot.querySelectorAll("canvas")]);
  return [before !== shown, canvases.filter((each) => each.checkVisibility()).map(({ width }) => width)];
}"""
"""Presses a key and looks before anything else can happen: whether another sheet is shown, and the widths of its canvases."""


def test_the_next_step_is_drawn_before_its_key_and_shown_within_the_key_itself(serve: Serve, watched: Page) -> None:
    watched.goto(f"{serve(APP)}/hold/attention.en#7")
    watched.locator("body[data-ahead='7']").wait_for()
    watched.keyboard.press("PageUp")
    watched.locator("body[data-shown^='5/']").wait_for()
    watched.locator("body[data-ahead='6']").wait_for()
    other, widths = watched.evaluate(PRESS)
    assert other
    assert widths
    assert 300 not in widths, "a canvas that was not drawn yet is 300 wide"


@pytest.mark.thorough
def test_the_chapter_is_named_whole_and_another_can_be_chosen(serve: Serve, watched: Page) -> None:
    watched.goto(f"{serve(APP)}/hold/attention.en")
    chapters = watched.locator("#chapters select")
    for at, chapter in enumerate(chapters.locator("option").all_inner_texts()):
        chapters.select_option(index=at)
        expect(chapters.locator("option:checked")).to_have_text(chapter)
        assert chapter.startswith(f"{at + 1} / 8 · ")
        for width in (1440, 1024, 390):
            watched.set_viewport_size({"width": width, "height": HEIGHT})
            for cut in ("#chapters", "footer"):
                assert watched.locator(cut).evaluate("(box) => box.scrollWidth <= box.clientWidth"), (cut, width)
    assert watched.evaluate("document.activeElement === document.body"), "the keys lead through the lecture again"
    assert watched.evaluate("[...document.fonts].map(({ family, status }) => family + status)") == ["Source Sansloaded"]


BOTTOM = "node => node.getBoundingClientRect().bottom"


@pytest.mark.thorough
def test_the_map_of_a_training_film_and_what_the_snapshot_writes_are_on_the_stage(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/heads-are-born.en#2")
    sheet = watched.locator(".sheet:not([inert])")
    written, large = sheet.locator(".film .own"), sheet.locator(".large")
    for step in (2, 5):  # the second writes as many words as any
        watched.evaluate("(step) => { location.hash = `#${step}`; }", step)
        watched.locator(f"body[data-shown^='{step - 1}/']").wait_for()
        expect(large).to_be_visible()
        until(watched, lambda: large.evaluate(BOTTOM) <= sheet.evaluate(BOTTOM))
        assert written.evaluate(BOTTOM) <= large.evaluate("node => node.getBoundingClientRect().top")
    watched.set_viewport_size({"width": 390, "height": 844})
    for part in (large, sheet.locator(".transport")):
        until(watched, lambda part=part: 340 < part.evaluate("node => node.getBoundingClientRect().width") < 390)  # type: ignore[misc]


@pytest.mark.thorough
def test_the_heading_the_answer_and_the_text_are_in_sight_after_the_reveal(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en#15")  # eight heads, two of which have the same weight
    watched.locator("#question .option").first.wait_for()
    watched.keyboard.press("PageDown")
    expect(watched.locator("#question .right .mark")).to_have_count(2)
    for each in ("#title", "#question .right >> nth=0", "#question .right >> nth=1", "#words > :first-child"):
        expect(watched.locator(each)).to_be_in_viewport(ratio=1)


CUT = """() => {
  const [side, title] = [document.querySelector(".side"), document.querySelector("#title").getBoundingClientRect()];
  const box = side.getBoundingClientRect();
  const found = [side, document.querySelector("#chapters"), document.querySelector("footer"), document.documentElement]
    .filter(({ scrollWidth, scrollHeight, clientWidth, clientHeight }) => scrollWidth > clientWidth || scrollHeight > clientHeight)
    .map((node) => node.className || node.id || node.tagName);
  const texts = [...side.querySelectorAll("p, button, li, h1")].filter((each) => each.checkVisibility());
  const smallest = Math.min(...texts.map((each) => parseFloat(getComputedStyle(each).fontSize)));
  const drawn = [...document.querySelectorAll(".sheet:not([inert]):has(.output):not(:has(.data)) .drawing")];
  const changes = drawn.map(({ shadowRoot }) => shadowRoot?.querySelector("[data-drawing=atlas] .card")).filter(Boolean);
  const end = document.querySelector("#stage").getBoundingClientRect().bottom;
  const maps = [...document.querySelectorAll(".sheet:not([inert]):not(:has(math)) .drawing")].map(
    ({ shadowRoot }) => shadowRoot?.querySelector("[data-drawing=cells] canvas")).filter(Boolean);
  const boxes = (nodes) => nodes.map((each) => each.getBoundingClientRect());
  const low = boxes(changes).some(({ bottom }) => bottom > end) || boxes(maps).some(({ bottom, height }) => bottom > end + 0.2 * height);
  return { found, seen: title.top >= box.top && title.bottom <= box.bottom, smallest, low };
}"""  # noqa: E501
"""What is cut off in a lecturer's window, whether the heading is in view, the smallest type, whether changes, or tables without a
calculation above them, are too low."""

HALVES = """() => {
  const sheet = document.querySelector(".sheet:not([inert])");
  const stage = document.querySelector("#stage").getBoundingClientRect(), end = stage.bottom;
  const isBelowHalf = (top) => top - stage.top >= stage.height / 2; // above it, the stage would be empty without the panel
  const cut = (nodes, share) => nodes.filter((node) => {
    const { top, bottom, height } = node.getBoundingClientRect();
    return height > 1 && top < end - 1 && isBelowHalf(top) && bottom - end > Math.max(1, share * height);
  });
  const drawn = [...sheet.querySelectorAll(".drawing")].map(({ shadowRoot }) => shadowRoot).filter(Boolean);
  const hints = drawn.flatMap((root) => [...root.querySelectorAll(".foot, [data-drawing=sound] .readout")]);
  return [...cut([...sheet.querySelectorAll(".panel")].slice(1), 0.25), ...cut(hints, 0)].map(({ textContent }) => textContent);
}"""
"""Panels and hints in the lower half of the stage that its end cuts in two."""

MOVED = """async () => {
  const sheet = document.querySelector(".sheet:not([inert])");
  const place = (panel) => Math.round(panel.getBoundingClientRect().top + sheet.scrollTop);
  const places = () => [...sheet.querySelectorAll(".panel")].map(place);
  let before = places();
  for (let still = 0; still < 10; still++) { // drawings may still be on their way into it
    await new Promise(requestAnimationFrame);
    const now = places();
    if (String(now) !== String(before)) still = -1;
    before = now;
  }
  if (before.at(-1) < sheet.clientHeight) return [];
  sheet.scrollTop = 60;
  document.fonts.dispatchEvent(new Event("loadingdone")); // all drawings are drawn again
  for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
  const moved = places().filter((place, at) => place !== before[at]);
  sheet.scrollTop = 0;
  return moved;
}"""
"""Panels that move on a sheet where others begin below the stage, when somebody scrolls and the sheet is drawn again."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "width", "height"),
    [*(("attention.en", *size) for size in ((1024, 768), (1280, 720))), ("today.de", 1024, 768)],
)
def test_nothing_of_the_words_is_cut_and_the_heading_is_in_view_at_every_step(
    serve: Serve, watched: Page, name: str, width: int, height: int
) -> None:
    watched.set_viewport_size({"width": width, "height": height})
    watched.goto(f"{serve(APP)}/hold/{name}")
    steps = watched.evaluate("JSON.parse(document.getElementById('page').textContent).slides.length")
    for step in range(steps):
        watched.evaluate("(step) => { location.hash = `#${step + 1}`; }", step)
        expect(watched.locator("body")).to_have_attribute("data-shown", re.compile(f"^{step}/"))
        if watched.locator("body.asking").count():
            watched.locator("#question :is(.token, .option)").first.wait_for()
            assert watched.evaluate(CUT)["found"] == [], f"question of step {step + 1}"
            watched.keyboard.press("PageDown")
        expect(watched.locator("body")).to_have_attribute("data-shown", re.compile(f"^{step}/.+"))
        until(watched, lambda: not watched.evaluate(HALVES))
        assert watched.evaluate(MOVED) == [], f"step {step + 1}"
        cut = watched.evaluate(CUT)
        assert (cut["found"], cut["seen"], cut["low"]) == ([], True, False), f"step {step + 1}"
        assert watched.locator("#notice").inner_text() == "", f"step {step + 1}"
        assert cut["smallest"] >= 15.99


def test_each_key_has_an_effect_that_is_seen(serve: Serve, watched: Page) -> None:
    watched.goto(f"{serve(APP)}/hold/masks.en")
    expect(watched.locator("body.asking")).to_have_count(1)
    said = watched.locator("#notice")
    for key, text in {
        "Home": "This is the view of the lecture already.",
        "a": "No class is answering a question right now.",
        "w": "The text will be hidden when the question is answered.",
    }.items():
        watched.keyboard.press(key)
        expect(said).to_have_text(text)
        expect(said).to_be_in_viewport(ratio=1)
    watched.keyboard.press("w")
    expect(said).to_have_text("The text will be shown when the question is answered.")
    for key, text in {"-": "The text cannot become smaller.", "+": "The text cannot become larger."}.items():
        for _press in range(16):
            watched.keyboard.press(key)
        expect(said).to_have_text(text)
    watched.keyboard.press("PageUp")
    expect(said).to_have_text("This is the first step.")
    watched.evaluate("location.hash = `#${JSON.parse(document.getElementById('page').textContent).slides.length}`")
    for _press in range(3):
        watched.keyboard.press("PageDown")
    expect(said).to_have_text("This is the last step.")
    expect(said).to_be_hidden()


@pytest.mark.thorough
def test_many_chapters_do_not_push_the_words_out_of_the_window(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    watched.goto(f"{serve(APP)}/hold/attention.en")
    words = watched.locator("#title")
    for _step in range(3):
        expect(words).to_be_visible()
        box = words.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= WIDTH
        assert watched.evaluate("document.querySelector('main').getBoundingClientRect().width") <= WIDTH
        watched.keyboard.press("PageDown")


def test_a_survey_in_a_lecture_is_whole(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    watched.goto(f"{serve(APP)}/hold/attention.en")
    titles = watched.evaluate("JSON.parse(document.getElementById('page').textContent).slides.map(({ title }) => title)")
    watched.evaluate(f"location.hash = '#{titles.index('In how many texts?') + 1}'")
    expect(watched.locator("#title")).to_have_text("In how many texts?")
    watched.keyboard.press("PageDown")
    dots = drawing(watched, "dots")
    names = dots.locator(".label")
    expect(names).to_have_count(3)
    outside = "all => all.filter((one) => one.getBBox().y < 0 || one.getBBox().x < 0).length"
    assert names.evaluate_all(outside) == 0, "the name of a head was cut"
    box = dots.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 768, "the dots ended below the window"
    watched.set_viewport_size({"width": 1440, "height": 900})
    cut = "all => all.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).length"
    assert watched.locator(f"{SHOWN} .scroll").evaluate_all(cut) == 0, "a column was cut"
    watched.goto(f"{serve(APP)}/hold/attention.zh-CN#{titles.index('In how many texts?') + 1}")
    expect(watched.locator("body.asking")).to_have_count(1)
    watched.keyboard.press("PageDown")
    expect(watched.locator(f"{SHOWN} .scroll")).to_have_count(2)
    assert watched.locator(f"{SHOWN} .scroll").evaluate_all(cut) == 0, "a column was cut in Chinese"


@pytest.mark.thorough
def test_a_view_that_is_not_loaded_is_said_until_the_next_one_is_shown(serve: Serve, page: Page) -> None:
    page.route("**/headlight/view/*", lambda route: route.fulfill(status=404))
    page.goto(f"{serve(APP)}/hold/masks.en#2")
    expect(page.locator("#notice")).to_have_text("This view could not be loaded. Reload the page.")
    page.unroute("**/headlight/view/*")
    page.keyboard.press("PageDown")
    expect(page.locator(f"{SHOWN} canvas")).to_be_visible()
    expect(page.locator("#notice")).to_be_hidden()


@pytest.mark.thorough
def test_a_larger_screen_begins_with_larger_type_and_a_picture_that_fills_it(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": 3840, "height": 2160})
    watched.goto(f"{serve(APP)}/hold/masks.en")
    watched.keyboard.press("PageDown")
    cells = watched.locator(f"{SHOWN} canvas")
    cells.wait_for()
    assert watched.locator("#words > p").first.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 40
    box = cells.bounding_box()
    assert box is not None
    assert box["height"] > 2160 / 2


SHOWN = ".sheet:not([inert])"


def hold(page: Page, address: str, title: str) -> None:
    """Opens the new lecture at the step with this title, without the model that may be fetched."""
    step = next(step.number for step in library.load("today.en").shown_with(()).steps if step.title == title)
    page.goto(f"{address}/hold/today.en#{step + 1}")
    expect(page.locator("body")).to_have_attribute("data-shown", re.compile(f"^{step}/.+"))


@pytest.mark.thorough
def test_a_chart_says_the_values_at_the_place_that_is_pointed_at(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    hold(watched, serve(APP), "With and without")
    legend, chart = watched.locator(f"{SHOWN} .legend li"), watched.locator(f"{SHOWN} .chart")
    expect(legend).to_have_text(["tokens read: 14", "with the cache1.18M", "without16.5M"])
    box = chart.bounding_box()
    assert box is not None
    watched.mouse.move(box["x"] + box["width"] * 46 / 330, box["y"] + box["height"] / 2)  # the first pass
    expect(legend.first).to_have_text("tokens read: 7")
    cached, whole = legend.all_text_contents()[1:]
    assert cached.removeprefix("with the cache") == whole.removeprefix("without"), "the first pass reads the whole text either way"
    assert chart.evaluate("(node) => node.getBoundingClientRect().bottom") <= HEIGHT


@pytest.mark.thorough
def test_a_head_lies_over_the_image_in_a_lecture_and_another_one_can_be_chosen(serve: Serve, watched: Page) -> None:
    watched.set_viewport_size({"width": 1440, "height": 900})
    hold(watched, serve(APP), "What the answer attends to")
    said = watched.locator(f"{SHOWN} .drawing .readout").first
    expect(said).to_contain_text("“5,6”: 0.93")
    watched.locator(f"{SHOWN} .drawing").nth(1).locator("canvas").first.focus()
    for key in ("ArrowRight", "Enter"):
        watched.keyboard.press(key)
    expect(said).not_to_contain_text("“5,6”: 0.93")


OBSERVED = """
globalThis.changed = [];
const written = new MutationObserver(() => {}), Observer = ResizeObserver;
written.observe(document, { attributes: true, subtree: true });
globalThis.ResizeObserver = class extends Observer {
  constructor(callback) {
    super((...heard) => {
      written.takeRecords();
      callback(...heard);
      if (written.takeRecords().length) changed.push(String(callback));
    });
  }
};
"""
"""Notes which observers of sizes change the page themselves: the browser may then throw “ResizeObserver loop” at the window."""

FRAMES = "new Promise((done) => { let left = 8; const next = () => left-- ? requestAnimationFrame(next) : done(); next(); })"


def test_an_observer_of_sizes_changes_nothing_itself(serve: Serve, watched: Page) -> None:
    watched.add_init_script(OBSERVED)
    watched.goto(f"{serve(APP)}/hold/attention.en")
    titles = watched.evaluate("JSON.parse(document.getElementById('page').textContent).slides.map(({ title }) => title)")
    step = titles.index("How two heads are born")
    watched.evaluate(f"location.hash = '#{step + 1}'")
    expect(watched.locator("body")).to_have_attribute("data-shown", re.compile(f"^{step}/.+"))
    for width in (1440, WIDTH, 900, WIDTH):
        watched.set_viewport_size({"width": width, "height": HEIGHT})
        watched.evaluate(FRAMES)
    assert watched.evaluate("changed") == []
