"""Big mode: what is written can be read from the last row; on three pages one picture fills the screen."""

import re
from collections.abc import Callable
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page

from tests.browser.conftest import Serve
from tests.browser.focus import unseen
from tests.browser.patience import expect
from tests.browser.tabs import forget
from tests.browser.visits import drawing, has_parameters, hovered_weight, opened, overflow, rest, tile_of, until
from viz.figures.theme import LIGHT

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
SMALLEST = 16
MODEL = "multi30k-de-en"
TEXT = "Ein alter Mann mit Hut spielt im Park auf einer Bank Gitarre."
"""14 tokens in German, with <sos> and <eos> 15 and more."""

ROTARY, FILM = "captions-lm", "multi30k-de-en-film"

SITE, HEAD = "decoder.0.2.cross", 0

LONG = re.compile(r"(?<![−+\d])(\d+,|0\.)\d{3}")
"""A number with more than two decimals; the ends of the scale of changes, which have a sign, keep three."""

SPY = """
window.written = {};
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  const pixels = parseFloat(this.font.match(/([\\d.]+)px/)[1]) * Math.hypot(this.getTransform().a, this.getTransform().b);
  const drawing = this.canvas.getRootNode().host && this.canvas.closest(".hl")?.dataset.drawing;
  if (drawing) (window.written[drawing] ??= []).push([text, pixels / devicePixelRatio]);
  return fillText.call(this, text, ...rest);
};
"""
"""Notes each text on a canvas of a drawing with its height in pixels of the window."""

TEXTS = """() => {
  const found = [];
  const enlarged = (node) => { // by the view box of a drawing
    const { a, b } = (node.closest(".hl") && node.getScreenCTM?.()) ?? { a: 1, b: 0 };
    return Math.hypot(a, b);
  };
  const visit = (node) => {
    if (node.nodeType === Node.TEXT_NODE && node.data.trim()) {
      const parent = node.parentElement;
      const { width, height } = parent?.getBoundingClientRect() ?? {};
      const style = parent && getComputedStyle(parent);
      const seen = parent && width > 2 && height > 2 && parent.checkVisibility({ opacityProperty: true, visibilityProperty: true });
      const apart = parent?.closest(".katex, [data-testid=stIconMaterial], option, style, script, .unseen, desc, title");
      const pixels = seen && parseFloat(style.fontSize) * enlarged(parent);
      if (seen && !apart) found.push([node.data.trim().slice(0, 40), pixels]);
    }
    for (const child of [...(node.shadowRoot?.childNodes ?? []), ...node.childNodes]) visit(child);
  };
  visit(document.querySelector("[data-testid=stApp]"));
  return found;
}"""


def small(texts: list[list[Any]]) -> list[list[Any]]:
    """Of texts with their heights those that are too low to be read; what has no height at all is hidden."""
    return [text for text in texts if 0 < text[1] < SMALLEST - 0.2]


def address(serve: Serve, path: str, **more: str) -> str:
    link = {"model": MODEL, "text": TEXT, "site": SITE, "head": str(HEAD), "big": "1"}
    return f"{serve(APP)}/{path}?{urlencode(link | more)}"


def knob(slider: Locator) -> int:
    """The height of a slider's knob in pixels: of what has the color of its border."""
    colors = np.asarray(Image.open(BytesIO(slider.screenshot())).convert("RGB")).astype(int)
    accent = [int(LIGHT.accent[digit : digit + 2], 16) for digit in (1, 3, 5)]
    return int((np.abs(colors - accent).max(axis=2) < 30).any(axis=1).sum())


def test_the_knobs_of_sliders_are_enlarged_too(watched: Page, serve: Serve) -> None:
    watched.set_viewport_size({"width": 1024, "height": 768})
    heights = []
    for big in ("0", "1"):
        page = opened(watched, address(serve, "step", big=big))
        heights.append(knob(drawing(page, "player").locator("input[type=range]")))
    assert heights == [pytest.approx(size, abs=1) for size in (16, 24)]


@pytest.fixture
def projector(watched: Page) -> Page:
    watched.set_viewport_size({"width": 1024, "height": 768})
    watched.emulate_media(color_scheme="dark")
    watched.add_init_script(SPY)
    if not watched.evaluate("'written' in globalThis && !!Object.assign(globalThis, { written: {} })"):
        forget(watched)  # a page that the spy does not know
    return watched


SIZES = [(1024, 768), (1280, 720), (1920, 1080), (3840, 2160)]
SMALL, LARGE = SIZES[:2], SIZES[2:]
SCREENS: dict[str, dict[str, str]] = {
    "explore": {"picture": "heads"},
    "explore ": {"picture": "head"},
    "explore  ": {"picture": "lines"},
    "step": {"step": "8"},
    "step ": {"clock": "computation", "stage": "encoder.0.0.self/weights", "picture": "stage"},
    "step  ": {"clock": "computation", "stage": "encoder.0.0.self/queries", "picture": "stage"},
    "step   ": {"clock": "computation", "stage": "output/probabilities", "picture": "stage"},
    "step    ": {"clock": "computation", "stage": "encoder.0.0.self/normed"},
    "positions": {},
    "positions ": {"picture": "curves"},
    "positions  ": {"picture": "similarity"},
    "positions   ": {"model": ROTARY, "text": "a man in a blue"},
    "positions    ": {"model": ROTARY, "text": "a man in a blue", "picture": "score"},
    "positions     ": {"model": ROTARY, "text": "a man in a blue", "picture": "waves"},
    "positions      ": {"model": ROTARY, "text": "a man in a blue", "picture": "similarity"},
    "masks": {},
    "masks ": {"picture": "causal"},
    "masks  ": {"site": "encoder.0.0.self", "picture": "padding", "pad": "18"},
    "compare": {},
    "compare ": {"picture": "head"},
    "compare  ": {"picture": "difference", "feed": "first"},
    "compare   ": {"against": "decode=beam"},
    "whatif": {},
    "whatif ": {"picture": "changes"},
    "training": {"model": FILM},
    "training ": {"model": FILM, "picture": "curves"},
    "training  ": {"model": FILM, "picture": "losses"},
    "training   ": {},
    "step     ": {"decode": "beam", "beam": "4"},
    "step      ": {"decode": "beam", "beam": "4", "picture": "steps"},
    "checkpoint": {"model": MODEL},
    "checkpoint ": {"model": MODEL, "picture": "weights"},
    "circuit": {},
    "circuit ": {"picture": "composition"},
    "survey": {},
    "survey ": {"picture": "grid", "color": "entropy"},
    "survey  ": {"picture": "spread"},
    "survey   ": {"picture": "head"},
    "survey    ": {"picture": "alike"},
    "survey     ": {"picture": "two", "survey": MODEL},
    "survey      ": {"picture": "film", "model": FILM},
}
"""Pages in big mode, with parameters of their links; blanks after a name make it another one."""

BOXES = """() => {
  const roots = [document];
  for (const root of roots) for (const { shadowRoot } of root.querySelectorAll("*")) if (shadowRoot) roots.push(shadowRoot);
  const all = (selector) => roots.flatMap((root) => [...root.querySelectorAll(selector)]).filter((node) => node.checkVisibility());
  const main = document.querySelector("[data-testid=stMain]");
  const way = document.querySelector(".st-key-big button").getBoundingClientRect();
  const pictures = all(".player, .hl canvas, .hl svg[role=application], .js-plotly-plot, .hl .window, .head-grid td").map((node) => node.getBoundingClientRect()).filter(({ height }) => height > 40);
  const meet = (one, other) => one.left < other.right && one.right > other.left && one.top < other.bottom && one.bottom > other.top;
  const over = (box) => meet(box, way);
  const lined = ({ left, right, top, bottom }) => ({ left, right, top: top - 2, bottom: bottom + 2 }); // with the line around a picture
  const [top, bottom] = [Math.min(...pictures.map(({ y }) => y)), Math.max(...pictures.map((box) => box.bottom))];
  const [first, last] = [Math.min(...pictures.map(({ x }) => x)), Math.max(...pictures.map(({ right }) => right))];
  return {
    scrolls: Math.max(main.scrollHeight - main.clientHeight, main.scrollWidth - main.clientWidth),
    below: Math.max(bottom, ...all(".hl .readout:not(.unseen), .hl .candidate, .hl .legend, .stMainBlockContainer [data-testid=stCaptionContainer]").map((node) => node.getBoundingClientRect().bottom)) - innerHeight,
    covered: pictures.some(over) || all(".hl, button").some((node) => !node.closest(".st-key-big") && over(node.getBoundingClientRect()))
      || all(".transport > *").some((node) => all(".hl canvas").some((canvas) => meet(node.getBoundingClientRect(), lined(canvas.getBoundingClientRect())))),
    cut: Math.max(0, ...all(".hl.fills .foot > *").map((node) => node.scrollHeight - node.clientHeight)),
    share: [(bottom - top) / innerHeight, (last - first) / innerWidth],
  };
}"""  # noqa: E501
"""By how much a page scrolls, and its picture ends below the window; whether the way out covers
something, or a picture the buttons above it; the picture's share."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    "pages", ["explore", "step", "positions", "masks", "compare", "whatif", "training", "checkpoint", "circuit", "survey"]
)
def test_one_picture_fills_the_screen_and_nothing_scrolls_is_covered_or_too_small(
    projector: Page, within: Callable[[str], Page], serve: Serve, pages: str
) -> None:
    """In German, whose words are the longest. Each picture begins in the size of the one before: it is drawn once less."""
    screens = [(path, more) for path, more in SCREENS.items() if path.strip() == pages]
    orders = cycle((*SMALL, large)[::way] for large in LARGE for way in (1, -1))  # what fills one large screen fills the other
    for (path, more), sizes in zip(screens, orders, strict=False):
        projector.evaluate("globalThis.written = {}")
        page = within(f"{serve(APP)}/{path.strip()}?{urlencode({'text': TEXT, 'big': '1', 'lang': 'de'} | more)}")
        for width, height in sizes:
            page.set_viewport_size({"width": width, "height": height})
            rest(page)
            found, at = page.evaluate(BOXES), (path, more, width, height)
            assert max(found["scrolls"], found["below"], found["cut"], overflow(page)) <= 1, (at, found)
            assert not found["covered"], at
            high, wide = found["share"]
            assert wide > 0.45, (at, found)
            assert high > (0.42 if wide > 0.9 else 0.45), (at, found)  # a film of two layers has its buttons above it
            texts = page.evaluate(TEXTS)
            assert small(texts) == [], at
            assert [text for text, _pixels in texts if LONG.search(text)] == [], at
        assert {name: small(texts) for name, texts in page.evaluate("written").items() if small(texts)} == {}, at
    expect(page.locator(".st-key-big button")).to_be_visible()
    expect(page.get_by_test_id("stSidebar")).to_be_hidden()
    assert unseen(page)[1] == [], "no line around what has the keyboard's focus"
    if pages == "masks":
        gone = page.add_style_tag(content=".stApp :focus-visible, .hl *:focus-visible { outline: none !important; }")
        assert unseen(page)[1], "the measure sees a line that is gone"
        gone.evaluate("node => node.remove()")


REPEATED = "fox moon tea harry"


@pytest.mark.thorough
@pytest.mark.parametrize("picture", ["Paths", "Strongest paths"])
def test_measured_paths_fill_the_screen_too(watched: Page, within: Callable[[str], Page], serve: Serve, picture: str) -> None:
    clean, corrupted = (
        "fox moon tea harry potter rain key fox moon tea harry",
        "fox moon tea harry rain potter key fox moon tea harry",
    )
    link = {"model": "induction", "text": clean, "corrupted": corrupted, "max": "1", "big": "1"}
    watched.set_viewport_size({"width": 1280, "height": 720})
    page = within(f"{serve(APP)}/circuit?{urlencode(link)}")
    page.get_by_text(picture, exact=True).click()
    page.get_by_text("Measure all paths (12)").click()
    rest(page, drawn=".js-plotly-plot .plot-container")
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        rest(page, drawn=".js-plotly-plot .plot-container")
        found = page.evaluate(BOXES)
        assert found["scrolls"] <= 1, (width, height)
        assert found["below"] <= 1, (width, height)
        assert min(found["share"]) > 0.45, (width, height, found)
        assert small(page.evaluate(TEXTS)) == [], (width, height)


@pytest.mark.thorough
def test_queries_and_keys_that_were_read_fill_the_screen_too(watched: Page, within: Callable[[str], Page], serve: Serve) -> None:
    watched.set_viewport_size({"width": 1280, "height": 720})
    page = within(f"{serve(APP)}/survey?{urlencode({'model': 'induction', 'text': REPEATED, 'site': 'decoder.0.1.self'})}")
    most = page.locator(".st-key-survey-read-most input")
    most.fill("20")  # of a thousand texts
    most.press("Enter")
    rest(page)
    page.locator(".st-key-survey-read-start button").click()
    rest(page, drawn=".st-key-survey-plane-chart .plot-container")
    page.keyboard.press("p")
    page.get_by_text("Queries and keys", exact=True).click()
    rest(page, drawn=".st-key-one-screen .st-key-survey-plane-chart .plot-container")
    for width, height in SIZES[1:3]:  # the one in which it was drawn, and a larger one
        page.set_viewport_size({"width": width, "height": height})
        rest(page, drawn=".js-plotly-plot .plot-container")
        found = page.evaluate(BOXES)
        assert max(found["scrolls"], found["below"]) <= 1, (width, height)
        assert min(found["share"]) > 0.45, (width, height, found)
        assert small(page.evaluate(TEXTS)) == [], (width, height)


NUMBERS = """() => {
  const all = [...document.querySelectorAll("g.heatmap-label text")];
  const texts = all.filter((text) => getComputedStyle(text).visibility !== "hidden");
  const boxes = texts.map((text) => text.getBoundingClientRect());
  const within = (one, other) => one.left < other.right && one.top < other.bottom;
  const meets = (one, other) => within(one, other) && within(other, one);
  return {
    count: texts.length,
    smallest: Math.min(...texts.map((text) => parseFloat(getComputedStyle(text).fontSize))),
    meeting: boxes.filter((one, place) => boxes.slice(place + 1).some((other) => meets(one, other))).length,
  };
}"""
"""The numbers that are seen in the cells of the page's heatmaps: how many, their smallest size, and how many lie on another one."""


@pytest.mark.thorough
def test_numbers_of_a_sum_never_run_into_each_other(watched: Page, serve: Serve) -> None:
    """They become smaller, to 16 pixels, and are left out where the cells are too narrow even for that; pointing says them."""
    watched.set_viewport_size({"width": 1920, "height": 1080})
    page = opened(watched, address(serve, "explore", query="3", key="3", cell="why"))
    seen = {}
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        rest(page, drawn="g.heatmap-label")
        found = page.evaluate(NUMBERS)
        assert found["meeting"] == 0, (width, height, found)
        seen[width] = found["count"] and found["smallest"]
    assert seen[1024] == seen[3840] == 21
    assert SMALLEST <= seen[1920] < 21
    assert seen[1280] == 0, "there the dialog leaves the cells twenty pixels"
    page.set_viewport_size({"width": 1280, "height": 720})
    rest(page, drawn="g.heatmap-label")
    cells = page.locator(".st-key-card-why .js-plotly-plot .hm")
    cells.scroll_into_view_if_needed()
    box = cells.bounding_box()
    assert box is not None
    said = page.locator(".st-key-card-why .hoverlayer .hovertext")

    def is_said() -> bool:  # a figure that is drawn once more forgets what the pointer is on
        page.mouse.move(box["x"], box["y"])
        page.mouse.move(box["x"] + box["width"] / 16, box["y"] + box["height"] / 16)
        return any("×" in text for text in said.all_text_contents())

    until(page, is_said)


@pytest.mark.thorough
@pytest.mark.parametrize("path", [path for path in SCREENS if path.strip() in ("explore", "whatif")])
def test_one_screen_is_enough_in_chinese(projector: Page, within: Callable[[str], Page], serve: Serve, path: str) -> None:
    page = within(f"{serve(APP)}/{path.strip()}?{urlencode({'text': TEXT, 'big': '1', 'lang': 'zh-CN'} | SCREENS[path])}")
    found = page.evaluate(BOXES)
    assert max(found["scrolls"], found["below"], found["cut"], overflow(page)) <= 1, found
    assert not found["covered"]


def test_all_labels_are_there_numbers_have_two_decimals_and_p_enters_and_leaves(projector: Page, serve: Serve) -> None:
    page = opened(projector, address(serve, "explore", picture="head"))
    drawn = [text for text, _pixels in page.evaluate("written")["cells"]]
    for key in TEXT.lower().replace(".", " .").split():
        assert any(text == key or (text.endswith("…") and key.startswith(text[:-1])) for text in drawn), key
    page.get_by_text("All heads", exact=True).click()
    page.wait_for_url(lambda url: "picture" not in url)
    rest(page, drawn=".hl[data-drawing=atlas][data-layout]")
    weight = hovered_weight(page, tile_of(page, SITE, HEAD), 3, 4)
    readout = drawing(page, "atlas").locator(".readout")
    expect(readout).to_contain_text(f"{weight:.2f}")
    expect(readout).not_to_contain_text(f"{weight:.4f}")
    spot = page.locator(".headlight-spot")
    place = spot.bounding_box()
    page.mouse.move(500, 400)
    place = spot.bounding_box()
    assert place is not None
    assert (place["x"] + place["width"] / 2, place["y"] + place["height"] / 2) == pytest.approx((500, 400), abs=1)
    box = page.locator(".st-key-widget-text input")
    box.press("End")
    box.press("p")
    has_parameters(page, big="1")
    expect(box).to_have_value(f"{TEXT}p")
    box.fill(TEXT)
    box.blur()
    page.keyboard.press("p")
    page.wait_for_url(lambda url: "big=1" not in url)
    expect(page.get_by_test_id("stSidebar")).to_be_visible()
    expect(spot).to_have_count(0)
    rest(page)
    page.keyboard.press("p")
    has_parameters(page, big="1")
    page.get_by_role("button", name="Leave big mode").click()
    page.wait_for_url(lambda url: "big=1" not in url)
