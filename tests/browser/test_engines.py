"""The ways through the app that everybody takes, in Chromium, Firefox and WebKit: what people see, point at and click."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver import Keys

from model.engine.api import Engine, Run
from model.requests.request import RunRequest
from model.trace.types import Site, Trace
from tests import traces
from tests.browser.conftest import Serve
from tests.browser.engines import ENGINES, EVERYWHERE, Visitor, browsing
from tests.browser.features.tour.test_first_visit import WHOLE
from tests.browser.servers import APP
from tests.browser.visits import middle
from viz.canvas import standalone
from viz.session.visits import COOKIE

pytestmark = [pytest.mark.browser, pytest.mark.thorough]

MODEL, SENTENCE = "multi30k-de-en", "Ein Hund spielt im Schnee."
CROSSED = "Im Park spielt ein alter Mann Gitarre."
"""The sentence of the first step of a lecture."""

ATLAS = ".hl[data-drawing=atlas][data-layout]"

ARE_SHARP = f"""(canvases) => ({EVERYWHERE})(canvases)
  .every((canvas) => Math.abs(canvas.width - canvas.getBoundingClientRect().width * devicePixelRatio) <= 2)"""
"""Whether canvases are drawn with the pixels of the screen; one that is not drawn yet is 300 wide."""

FITS = f"""(pictures) => {{
  const main = document.querySelector("[data-testid=stMain]");
  const bottoms = ({EVERYWHERE})(pictures).map((node) => node.getBoundingClientRect().bottom);
  return {{ scrolls: main.scrollHeight - main.clientHeight, below: Math.max(...bottoms) - innerHeight }};
}}"""
"""By how much a page scrolls, and its pictures end below the window."""

SEEN = f"(selector) => ({EVERYWHERE})(selector).length > 0"
"""Whether a page shows something of a selector."""

SAYS = f"([selector, words]) => ({EVERYWHERE})(selector).some((node) => node.textContent.includes(words))"
"""Whether something of a selector says these words."""

NAMED = f"""(cell) => ({EVERYWHERE})(".hl[data-drawing=atlas] .readout").map(({{ dataset }}) => dataset)
  .find((named) => Object.entries(cell).every(([name, value]) => named[name] === `${{value}}`))?.weight"""
"""The weight that a page gives for a cell, once it names that cell."""

TIP_IS_NEAR = f"""([x, y]) => ({EVERYWHERE})(".tip.shown").some((tip) => {{
  const {{ left, right, top, bottom }} = tip.getBoundingClientRect();
  return Math.max(left - x, x - right, top - y, y - bottom) < 40;
}})"""
"""Whether the tooltip stands beside the pointer."""

LEADS_TO = """(wanted) => {
  const parameters = new URL(location).searchParams;
  return Object.entries(wanted).every(([name, value]) => parameters.get(name) === value);
}"""
"""Whether the address bar has these parameters."""

STANDS = "(step) => document.body.dataset.shown?.startsWith(`${step}/`) && document.body.dataset.shown.length > 9"
"""Whether a lecture shows the picture of this step."""

SHARE = f"""(selector) => ({EVERYWHERE})(selector)[0].getBoundingClientRect().width
  / document.getElementById("stage").getBoundingClientRect().width"""
"""How much of the stage's width a picture takes."""

IN_SIGHT = f"""(selector) => {{
  const [part] = ({EVERYWHERE})(selector);
  const {{ top, bottom }} = part.getBoundingClientRect(), stage = document.getElementById("stage").getBoundingClientRect();
  return top >= part.closest(".window").getBoundingClientRect().top - 1 && bottom <= stage.bottom + 1;
}}"""
"""Whether a part of the map of the network is seen, neither above its window nor below the stage."""

HELD = """() => {
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  for (let i = 0; i < 150; i++) press(i % 16 < 8 ? "ArrowRight" : "ArrowLeft");
  return Number(document.querySelector(".dot[aria-current]").getAttribute("aria-label").split(" ")[0]) - 1;
}"""
"""Keys as a keyboard repeats them, and the step to which they lead."""

NARROW = (500, 844)
"""As a phone; no window of Firefox is narrower."""

OVERVIEW, EXACT = 0.004, 1e-6  # of a weight in an overview, and of one in a page that holds all of them


@pytest.fixture(scope="module", params=ENGINES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a browser, the name of the folder, saves files."""
    return tmp_path_factory.mktemp(request.param, numbered=False)


@pytest.fixture(scope="module")
def visitor(folder: Path) -> Iterator[Visitor]:
    with browsing(folder.name, folder) as visitor:
        yield visitor


@pytest.fixture
def newcomer(visitor: Visitor, serve: Serve) -> Visitor:
    """Somebody who was never here, on a laptop."""
    visitor.driver.get(f"{serve(APP)}/_stcore/health")
    visitor.driver.delete_all_cookies()
    visitor.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
    return visitor


@pytest.fixture
def returning(newcomer: Visitor) -> Visitor:
    """Somebody whom the first picture is not shown."""
    newcomer.evaluate(f"() => {{ document.cookie = '{COOKIE}=; path=/'; }}")
    return newcomer


def named_weight(visitor: Visitor, index: int, query: int, key: int) -> str | None:
    """Points at a cell of a tile of the overview; the weight that the page gives it, if it names that cell beside the pointer."""
    tile = visitor.tiles("atlas")[index]
    visitor.move(*middle(tile, query, key))
    cell = {"site": tile["site"], "head": tile["head"], "query": query, "key": key}
    is_beside = visitor.evaluate(TIP_IS_NEAR, middle(tile, query, key))
    return visitor.evaluate(NAMED, cell) if is_beside else None


def assert_cells_are_named(visitor: Visitor, trace: Trace, within: float) -> None:
    """The pointer on a cell names its head, its two words and its weight: of the first tile of the overview, and of the last."""
    tiles = visitor.tiles("atlas")
    for index, query, key in ((0, 1, 2), (len(tiles) - 1, 3, 0)):
        named = visitor.wait(partial(named_weight, visitor, index, query, key))
        site, head = tiles[index]["site"], tiles[index]["head"]
        assert float(named) == pytest.approx(trace.at(site).head(head)[query, key], abs=within), (site, head)


def assert_a_click_selects(visitor: Visitor, tile: dict[str, Any]) -> None:
    visitor.click(*middle(tile, 1, 1))
    visitor.until(LEADS_TO, {"site": tile["site"], "head": str(tile["head"])})


def test_a_first_visit_shows_a_whole_picture_that_names_words_then_a_sentence_of_ones_own(
    newcomer: Visitor, serve: Serve, engine: Engine
) -> None:
    visitor = newcomer
    visitor.size(1920, 1080)
    visitor.open(serve(APP), ".hl canvas")
    whole = visitor.evaluate(WHOLE)
    assert max(whole["scrolls"] - 1, whole["below"], -whole["above"], whole["beside"]) <= 0, whole
    visitor.until(ARE_SHARP, ".hl canvas")
    assert visitor.evaluate("(canvas) => canvas.getBoundingClientRect().width / innerWidth", visitor.all(".hl canvas")[0]) > 0.6
    sentence = visitor.evaluate("() => document.querySelector('.st-key-sentence input').value")
    words = engine.ask(Run(RunRequest(MODEL, sentence))).tokens["target"].texts
    for spot in visitor.tiles("lines"):
        if spot["side"] == "query":
            visitor.move(spot["x"], spot["y"])
            visitor.until(SAYS, [".hl .readout", f"“{words[spot['index'] + 1]}” "])
    box = visitor.all(".st-key-sentence input")[0]
    box.send_keys(*[Keys.BACKSPACE] * len(sentence), SENTENCE, Keys.ENTER)
    visitor.until(LEADS_TO, {"text": SENTENCE})
    visitor.rest(".hl canvas")
    visitor.button("Show all 72 heads")
    visitor.rest(ATLAS)
    trace = engine.ask(Run(RunRequest(MODEL, SENTENCE)))
    assert_cells_are_named(visitor, trace, OVERVIEW)
    assert_a_click_selects(visitor, visitor.tiles("atlas")[5])


@pytest.mark.parametrize("size", [(1024, 768), (1920, 1080)])
def test_big_mode_fits_its_window_is_sharp_and_is_clicked_where_it_is_seen(
    returning: Visitor, serve: Serve, engine: Engine, size: tuple[int, int]
) -> None:
    visitor = returning
    visitor.size(*size)
    visitor.open(f"{serve(APP)}/explore?model={MODEL}&text={SENTENCE}&big=1&picture=heads", ATLAS)
    fits = visitor.evaluate(FITS, ".hl canvas")
    assert max(fits["scrolls"], fits["below"]) <= 1, fits
    visitor.until(ARE_SHARP, ".hl canvas")
    assert_cells_are_named(visitor, engine.ask(Run(RunRequest(MODEL, SENTENCE))), OVERVIEW)
    assert_a_click_selects(visitor, visitor.tiles("atlas")[5])


def title(visitor: Visitor) -> str:
    return str(visitor.evaluate("() => document.getElementById('title').textContent"))


def opened_class(visitor: Visitor) -> str:
    """The code of a class that the lecturer opens with a key."""
    visitor.press("c")
    code = str(visitor.until("() => document.querySelector('#class[open] #code')?.textContent"))
    visitor.press(Keys.ESCAPE)
    visitor.until("() => !document.querySelector('#class[open]')")
    return code


def joined_class(visitor: Visitor, address: str, code: str) -> str:
    """The window of a phone that joins a class and answers its question."""
    visitor.driver.switch_to.new_window("window")
    visitor.size(*NARROW)
    visitor.driver.get(address)
    visitor.all("input[name=code]")[0].send_keys(code, Keys.ENTER)
    visitor.until(SEEN, ".option:enabled")
    visitor.all(".option:enabled")[0].click()
    visitor.until(SAYS, ["#question .note", "counted"])
    return visitor.driver.current_window_handle


def assert_picture_is_right(visitor: Visitor) -> None:
    """The picture of a step is as sharp as the screen, and not wider than its place."""
    visitor.until(ARE_SHARP, ".hl canvas")
    assert visitor.evaluate("(stage) => stage.scrollWidth - stage.clientWidth", visitor.all("#stage")[0]) <= 1, title(visitor)


def test_a_class_follows_ten_steps_of_a_lecture(returning: Visitor, serve: Serve) -> None:
    visitor, driver = returning, returning.driver
    visitor.size(1280, 720)
    driver.get(f"{serve(APP)}/hold/attention.en#2")  # the first step that asks something
    visitor.until(SEEN, "#question .option")
    lecturer = driver.current_window_handle
    phone = joined_class(visitor, f"{serve(APP)}/class", opened_class(visitor))
    try:
        driver.switch_to.window(lecturer)
        visitor.until(SAYS, ["#question .note", "Answers: 1"])
        for step in range(1, 11):
            visitor.press(*[Keys.PAGE_DOWN] * (step > 1))
            if visitor.all("body.asking"):
                visitor.press(Keys.PAGE_DOWN, Keys.PAGE_DOWN)  # closes the question, shows its answer
            visitor.until(STANDS, step)
            assert_picture_is_right(visitor)
            told = title(visitor)
            driver.switch_to.window(phone)
            visitor.until(SAYS, ["#title", told])
            driver.switch_to.window(lecturer)
    finally:
        driver.switch_to.window(phone)
        driver.close()
        driver.switch_to.window(lecturer)


def test_a_lecture_is_read_and_clicked_where_it_is_seen_and_its_pictures_take_their_room(
    returning: Visitor, serve: Serve, engine: Engine
) -> None:
    visitor, words = returning, engine.ask(Run(RunRequest(MODEL, CROSSED)))
    visitor.size(1280, 720)
    for step in (1, 3, 7):
        visitor.driver.get("about:blank")
        visitor.driver.get(f"{serve(APP)}/hold/attention.en#{step}")
        visitor.until(SEEN, "#question .option, .hl[data-layout]")
        if visitor.all("body.asking"):
            visitor.press(Keys.PAGE_DOWN)
        visitor.until(SEEN, ".hl[data-layout]")
        if step == 1:
            assert_cells_are_named(visitor, words, EXACT)
            visitor.click(*middle(visitor.tiles("atlas")[0], 4, 1))
            visitor.until(SAYS, ["[data-strip=target] .chip.selected", words.tokens["target"].texts[4 + 1]])
        if step == 3:
            assert visitor.evaluate(SHARE, ".player canvas") > 0.5, "one column: the window is too narrow for two"
        if step == 7:
            visitor.until(IN_SIGHT, ".hl[data-drawing=network] [aria-current=step]")


def test_a_held_arrow_key_never_leaves_the_page_behind_the_lecture(returning: Visitor, serve: Serve) -> None:
    returning.driver.get(f"{serve(APP)}/hold/attention.en#2")
    returning.until(SEEN, "#question .option")
    step = returning.evaluate(HELD)
    returning.until(STANDS, step)
    returning.until("(step) => location.hash === `#${step + 1}`", step)


def test_a_page_from_a_disk_names_weights_and_opens_a_head(visitor: Visitor, folder: Path) -> None:
    trace, file = traces.translation(), folder / "page.html"
    file.write_bytes(standalone.page(trace, Site("decoder", 0, 2, "cross"), 3, -1))
    visitor.size(1280, 720)
    visitor.driver.get(file.as_uri())
    visitor.until(SEEN, ATLAS)
    assert_cells_are_named(visitor, trace, EXACT)
    tile = visitor.tiles("atlas")[5]
    visitor.click(*middle(tile, 1, 1), times=2)
    visitor.until(SEEN, ".large h3")


def test_the_overview_is_exported_as_a_page(returning: Visitor, serve: Serve, folder: Path) -> None:
    returning.size(1280, 720)
    returning.open(f"{serve(APP)}/explore?model={MODEL}&text={SENTENCE}", ATLAS)
    returning.button("Export …")
    returning.button("Download the overview as a web page")
    returning.wait(lambda: list(folder.glob("*.html")))
