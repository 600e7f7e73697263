"""Explore under hard conditions while somebody types: fast keys, two tabs, a page that is left, no connection, a restart."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from model.engine.api import Run
from model.engine.local import CHECKPOINTS
from model.requests.request import RunRequest
from tests.browser.patience import PATIENCE_MS, expect
from tests.browser.servers import ROOT, free_port, started
from tests.browser.visits import chips, has_parameters, loud, opened, rest
from tests.known import bundled_engine
from viz.labels import tokens

pytestmark = pytest.mark.browser

MODEL = "multi30k-de-en"
FAST = "eine junge frau mit einem roten hut sitzt auf einer bank im park"
NOTE = """() => {
  const { draw } = headlightLiveScenes;
  globalThis.drawnTexts = [];
  headlightLiveScenes.draw = function (...given) {
    draw.apply(this, given);
    drawnTexts.push([...this.drawings].map(({ header }) => header.live.text));
  };
}"""


def test_nothing_wrong_is_shown_and_nothing_is_lost(page: Page, serve: Callable[[Path], str]) -> None:
    page.set_default_timeout(PATIENCE_MS)
    engine = bundled_engine()
    thrown = list[str]()
    page.on("pageerror", lambda error: thrown.append(str(error)))

    def shows(tab: Page, text: str) -> None:
        expect(chips(tab, "source")).to_have_text(tokens.strip(engine.ask(Run(RunRequest(MODEL, text))).tokens["source"]))
        expect(chips(tab, "target")).to_have_text(tokens.strip(engine.ask(Run(RunRequest(MODEL, text))).tokens["target"]))

    address = f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau"
    opened(page, address)
    page.evaluate(NOTE)
    field = page.get_by_role("textbox", name="Input sentence")
    field.fill("")
    field.press_sequentially(FAST, delay=33)  # 30 keys a second
    shows(page, FAST)
    for texts in page.evaluate("drawnTexts"):
        assert len(set(texts)) == 1, "all drawings change together"
        assert FAST.startswith(texts[0])
    has_parameters(page, text=FAST)

    other = opened(page.context.new_page(), address)
    second = other.get_by_role("textbox", name="Input sentence")
    second.fill("zwei hunde")
    field.fill("drei kinder")
    shows(other, "zwei hunde")
    shows(page, "drei kinder")
    other.close()

    page.bring_to_front()
    for text, milliseconds in (("ein mann läuft", 0), ("zwei frauen", 200)):
        field.fill(text)
        page.wait_for_timeout(milliseconds)
        page.get_by_role("link", name="Step through").click()
        expect(page.locator(".hl[data-drawing=player]")).to_be_visible()
        has_parameters(page, text=text)
        expect(field).to_have_value(text)
        page.get_by_role("link", name="Explore").click()
        expect(page.locator(".hl[data-drawing=atlas]")).to_be_visible()
        rest(page)
        expect(field).to_have_value(text)
        shows(page, text)

    def ended(route: Route) -> None:
        route.fulfill(status=404, body="This session has ended: reload the page.")

    for fails in (lambda route: route.abort("connectionreset"), ended):
        page.route("**/headlight/live/*", fails)
        field.fill("ein kind")
        page.wait_for_timeout(300)
        expect(field).to_have_value("ein kind")
        field.press("Enter")  # the script answers
        shows(page, "ein kind")
        page.unroute("**/headlight/live/*")
        rest(page)
        field.press_sequentially("er")
        shows(page, "ein kinder")
        rest(page)
    assert thrown == []


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "characters"), [(500, "2,500"), (60_000, "300,000")], ids=["an essay", "a book"])
def test_a_text_too_long_is_refused_in_a_sentence_without_a_key_and_stays_whole(
    watched: Page, serve: Callable[[Path], str], words: int, characters: str
) -> None:
    """A pasted text; and one set by a script, which reaches the page as the same event."""
    opened(watched, f"{serve(ROOT / 'app.py')}/?model={MODEL}&text=eine+frau")
    field, text = watched.get_by_role("textbox", name="Input sentence"), "eine " * words
    field.select_text()
    watched.keyboard.insert_text(text)
    expect(loud(watched)).to_contain_text(f"has {characters} characters")
    expect(field).to_have_value(text)
    field.fill("zwei hunde")
    expect(chips(watched, "source")).to_have_text(["<sos>", "zwei", "hunde", "<eos>"])


@pytest.mark.thorough
def test_a_sentence_typed_just_before_the_server_is_restarted_comes_back(page: Page, tmp_path: Path) -> None:
    page.set_default_timeout(3 * PATIENCE_MS)  # Streamlit looks for a server that is away after 1, 2, 4 … 32 seconds
    port = free_port()
    models = tmp_path / "models"
    models.mkdir()
    (models / MODEL).symlink_to(CHECKPOINTS / MODEL)
    start = partial(started, ROOT / "app.py", port, tmp_path, HEADLIGHT_CHECKPOINTS=str(models))
    address, server = start()
    try:
        opened(page, f"{address}/?model={MODEL}&text=eine+frau")
        field = page.get_by_role("textbox", name="Input sentence")
        expect(page.get_by_role("switch", name="Live")).to_be_checked()  # it listens to the box
        with page.expect_request("**/headlight/live/*"):
            field.fill("zwei hunde")
        server.kill()  # the answer is on its way, and the page's script does not know the sentence
        server.wait()
        _, server = start()
        has_parameters(page, text="zwei hunde")
        rest(page)
        expect(field).to_have_value("zwei hunde")
        expect(chips(page, "source")).to_have_text(["<sos>", "zwei", "hunde", "<eos>"])
    finally:
        server.kill()
        server.wait()
