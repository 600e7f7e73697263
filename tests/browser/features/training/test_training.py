"""The page Training in a real browser: keys and play move the film without the server, and its numbers are those of runs."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, WebSocketRoute

from model.engine.api import Describe, Run
from model.requests.request import Decoding, RunRequest
from model.requests.snapshots import at_step
from model.trace.types import Trace
from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import A_WHILE, PAINTED, chips, drawing, has_parameters, hovered_weight, opened, rest, tile_of, until
from tests.known import bundled_engine

pytestmark = pytest.mark.browser

MODEL, TEXT, SITE, HEAD = "reverse-digits", "3141592653", "decoder.0.0.cross", 0
CELLS = ((0, 10), (4, 6), (7, 2))
MINUS = re.compile(r"−\d\.\d{3}")
"""A negative number as the table of scores writes it: not with a hyphen."""


@dataclass
class Line:
    """The connection between the page and its server, which can be held: what the page says waits until then."""

    held: bool = False
    waiting: list[str | bytes] = field(default_factory=list)

    def join(self, near: WebSocketRoute) -> None:
        self.far = near.connect_to_server()
        near.on_message(lambda message: self.waiting.append(message) if self.held else self.far.send(message))

    @contextmanager
    def hold(self) -> Iterator[None]:
        self.held = True
        yield
        self.held = False
        for message in self.waiting:
            self.far.send(message)


@pytest.fixture
def line(watched: Page) -> Line:
    line = Line()
    watched.route_web_socket("**/_stcore/stream", line.join)
    return line


@pytest.fixture
def film(watched: Page, line: Line, serve: Callable[[Path], str]) -> Page:
    watched.set_viewport_size({"width": 1440, "height": 2000})
    watched.add_init_script(PAINTED)
    link = {"model": MODEL, "text": TEXT, "site": SITE, "head": str(HEAD)}
    return opened(watched, f"{serve(ROOT / 'app.py')}/training?{urlencode(link)}")


def runs(step: int) -> tuple[Trace, Trace]:
    """A snapshot on the tokens that the finished model writes, and by itself."""
    engine = bundled_engine()
    written = engine.ask(Run(RunRequest(MODEL, TEXT))).tokens["target"].ids
    name = at_step(MODEL, step)
    fed = engine.ask(Run(RunRequest(name, TEXT, target=written[:-1], decoding=Decoding(max_length=0))))
    return fed, engine.ask(Run(RunRequest(name, TEXT, decoding=Decoding(max_length=len(written) + 8))))


def picture(page: Page) -> str:
    """The pixels of the first drawing."""
    page.evaluate(A_WHILE)
    pixels: str = drawing(page, "film").locator("canvas").first.evaluate("canvas => canvas.toDataURL()")
    return pixels


def test_keys_and_play_move_the_film_without_the_server_to_what_the_snapshots_compute(film: Page, line: Line) -> None:
    page, shown = film, drawing(film, "film")
    until(page, lambda: any(map(MINUS.fullmatch, page.evaluate("[...painted]"))))
    steps = bundled_engine().ask(Describe(MODEL)).snapshots
    slider = page.get_by_role("slider", name="snapshot")
    expect(shown).to_have_attribute("data-snapshot", str(steps[0]))
    slider.press("End")
    has_parameters(page, snapshot=str(steps[-1]))
    rest(page)
    expect(shown).to_have_attribute("data-snapshot", str(steps[-1]))
    last = picture(page)
    with line.hold():
        slider.press("Home")
        expect(shown).to_have_attribute("data-snapshot", "0")
        assert picture(page) != last
        for step in steps[1:3]:
            slider.press("ArrowRight")
            expect(shown).to_have_attribute("data-snapshot", str(step))
        fed, own = runs(steps[2])
        expect(shown.get_by_role("heading", name=f"After {steps[2]} steps")).to_be_visible()
        expect(chips(page, "own")).to_have_text(list(own.tokens["target"].texts[1:]))
        for query, key in CELLS:
            true = float(fed.at(SITE).head(HEAD)[query, key])
            assert hovered_weight(page, tile_of(page, SITE, HEAD, "film"), query, key, "film") == pytest.approx(true, abs=1e-6)
        slider.press("End")
        expect(shown).to_have_attribute("data-snapshot", str(steps[-1]))
        page.mouse.move(1, 1)
        assert picture(page) == last
        slider.press("ArrowLeft")
    has_parameters(page, snapshot=str(steps[-2]))
    rest(page)
    play_runs_to_the_end_and_then_tells_the_server(page, line)


def play_runs_to_the_end_and_then_tells_the_server(page: Page, line: Line) -> None:
    shown = drawing(page, "film")
    for key, step in (("End", "2032"), ("Home", "0")):
        page.get_by_role("slider", name="snapshot").press(key)
        has_parameters(page, snapshot=step)
        rest(page)
    shown.get_by_role("combobox").select_option("4")
    with line.hold():
        shown.get_by_role("button", name="Play", exact=True).click()
        expect(shown).to_have_attribute("data-snapshot", "2032")
        expect(shown.get_by_role("button", name="Play", exact=True)).to_be_visible()
    has_parameters(page, snapshot="2032")
