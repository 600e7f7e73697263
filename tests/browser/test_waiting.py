"""A run that takes long, as a visitor sees it: the page says so, takes the next sentence, and is painted when the run has ended."""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from model.engine.api import Run
from model.requests.request import RunRequest
from tests.browser.patience import expect
from tests.browser.visits import chips, has_parameters, loud, opened, rest, tiles, type_sentence, until
from tests.known import bundled_engine
from viz.labels import tokens

pytestmark = pytest.mark.browser

MODEL, CROSS = "multi30k-de-en", "decoder.0.2.cross"
BEFORE = ["<sos>", "ein", "mann", "<eos>"]

LATE_BOX = """const Plain = Blob;
const later = "await new Promise((done) => setTimeout(done, 2000));";
const late = (part) => (`${part}`.includes("class LiveBox") ? `${later}\\n${part}` : part);
globalThis.Blob = class extends Plain { constructor(parts, options) { super(parts?.map(late), options); } };"""
"""The script of the sentence box comes after the page waits for a run: on a new page either may be first."""


@pytest.fixture
def address(serve: Callable[[Path], str]) -> Iterator[str]:
    found = serve(Path(__file__).with_name("held_app.py"))
    yield found
    get(f"{found}/release")


@pytest.fixture
def held(watched: Page, address: str) -> Page:
    """The picture of a sentence, and an engine that waits from now on."""
    found = opened(watched, f"{address}/?model=multi30k-de-en&text=ein+mann")
    get(f"{address}/hold")
    return found


def get(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        body: bytes = answer.read()
        return body


def engine(address: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(get(f"{address}/asked"))
    return found


def report_nothing(text: str) -> str:
    """A sentence that nobody has asked for, in a second try of a test either: a known one is there at once."""
    return f"{text} {time.monotonic_ns() % 10**6}"


def test_a_run_is_drawn_while_it_writes_and_stop_keeps_what_was_written(watched: Page, address: str) -> None:
    page = opened(watched, f"{address}/?model={MODEL}&text=ein+mann")
    get(f"{address}/hold?after=2")  # the encoder, and a token
    field, written = page.get_by_role("textbox", name="Input sentence"), page.locator("[data-strip=target] .chip[data-probability]")
    field.fill("eine frau")
    expect(written).to_have_count(1)
    expect(page.locator(".card.single canvas")).to_have_count(1)  # the decoder's: its only weight is 1, which would flash dark
    expect(page.locator(".card.single canvas")).to_be_hidden()
    get(f"{address}/release")
    expect(page.locator(".card.single")).to_have_count(0)
    rest(page)
    get(f"{address}/hold?after=4")  # the encoder, and three tokens
    field.fill("eine junge frau sitzt")
    expect(written).to_have_count(3)
    expect(chips(page, "source").nth(2)).to_have_text("junge")
    assert {tile["rows"] for tile in tiles(page) if tile["site"] == CROSS} == {3}
    field.press("Enter")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped. Press Run")).to_be_visible()
    expect(written).to_have_count(3)
    expect(chips(page, "source").nth(2)).to_have_text("junge")
    get(f"{address}/release")
    rest(page)
    assert {tile["rows"] for tile in tiles(page) if tile["site"] == CROSS} == {3}
    page.get_by_role("button", name="Run").click()
    expect(written.nth(4)).to_be_visible()
    rest(page)

    get(f"{address}/hold?after=4")  # another page while it writes
    field.fill("zwei kleine hunde spielen")
    expect(written).to_have_count(3)
    page.get_by_role("link", name="Step through").click()
    expect(page.locator(".waiting")).to_be_visible()
    get(f"{address}/release")
    expect(chips(page, "source").nth(2)).to_have_text("kleine")
    page.get_by_role("link", name="Explore").click()
    expect(page.locator(".hl[data-drawing=atlas]")).to_be_visible()
    rest(page)
    expect(field).to_have_value("zwei kleine hunde spielen")
    expect(chips(page, "source").nth(2)).to_have_text("kleine")

    get(f"{address}/hold?after=4")  # another model while it writes
    field.fill("drei kinder spielen")
    expect(written).to_have_count(3)
    page.get_by_role("combobox", name="Model").click()
    page.get_by_role("option", name="German → English, small").click()
    get(f"{address}/release")
    example = "Ein kleiner Hund spielt mit einem Ball im Schnee."  # another model begins with its own
    has_parameters(page, model=f"{MODEL}-film", text=example)
    rest(page)
    expect(field).to_have_value(example)
    trace = bundled_engine().ask(Run(RunRequest(f"{MODEL}-film", example)))
    for strip in ("source", "target"):
        expect(chips(page, strip)).to_have_text(tokens.strip(trace.tokens[strip]))


def test_the_next_sentence_reaches_the_engine_while_the_first_runs_and_is_painted_by_itself(held: Page, address: str) -> None:
    first, second = report_nothing("eine frau"), report_nothing("zwei hunde")
    type_sentence(held, first)
    expect(held.locator(".waiting")).to_contain_text("Running:")
    expect(chips(held, "source")).to_have_text(BEFORE)
    type_sentence(held, second)
    until(held, lambda: engine(address)["asked"][-2:] == [first, second])
    expect(held.locator(".waiting")).to_have_count(1)
    get(f"{address}/release")
    expect(chips(held, "source").nth(1)).to_have_text("zwei")
    rest(held)
    assert loud(held).all_inner_texts() == []
    has_parameters(held, text=second)


@pytest.mark.thorough
def test_a_long_run_shows_what_is_written_so_far_and_stop_says_how_far_it_came(held: Page, address: str) -> None:
    get(f"{address}/hold?after=4")  # the encoder, and three tokens
    type_sentence(held, report_nothing("eine frau sitzt"))
    expect(held.locator(".said")).to_have_text(re.compile(r"^3 of at most 60 tokens, \d+\.\d per second$"))
    written = chips(held, "target").all_inner_texts()[1:]
    assert len(written) == 3
    held.get_by_role("button", name="Stop").click()
    expect(held.get_by_text("Stopped.")).to_be_visible()
    expect(held.get_by_text("3 of at most 60 tokens")).to_contain_text(" ".join(written))
    expect(chips(held, "target")).to_have_text(["<sos>", *written])
    get(f"{address}/release")
    until(held, lambda: engine(address)["running"] == 0)


@pytest.mark.thorough
def test_the_first_run_of_a_model_says_that_it_is_opened(watched: Page, address: str) -> None:
    get(f"{address}/hold?after=2")
    watched.add_init_script(LATE_BOX)
    watched.goto(f"{address}/?model={MODEL}&text={report_nothing('ein hund')}", wait_until="domcontentloaded")
    line = watched.locator(".waiting")
    expect(line).to_have_text(re.compile(r"^Opening German → English and running the text: \d+\.\d s$"))
    before = line.inner_text()
    expect(watched.locator(".how-far")).to_contain_text("of at most 60 tokens")
    expect(watched.locator("html[data-headlight-live]")).to_have_count(1)
    expect(line).not_to_have_text(before)
    assert watched.get_by_text("of at most 60 tokens").count() == 1, "below the sentence box it is said again"
    get(f"{address}/release")
    expect(chips(watched, "source").nth(1)).to_have_text("ein")
    rest(watched)


@pytest.mark.thorough
def test_what_a_measurement_costs_is_said_before_the_first_of_it_is_done(watched: Page, address: str) -> None:
    page = opened(watched, f"{address}/?model={MODEL}&text=ein+mann")
    page.get_by_role("link", name="What if").click()
    rest(page)
    get(f"{address}/hold")
    page.get_by_role("radio", name="Heads").click()
    expect(page.locator(".how-far")).to_have_text(re.compile(r"^\d+ to measure; how long it takes is known after the first few$"))
    get(f"{address}/release")
    expect(page.get_by_text("without this head").first).to_be_visible()
    rest(page)


@pytest.mark.thorough
def test_stop_ends_the_run_and_run_begins_it_again(held: Page, address: str) -> None:
    type_sentence(held, report_nothing("eine frau"))
    held.get_by_role("button", name="Stop").click()
    expect(held.get_by_text("Stopped.")).to_be_visible()
    expect(chips(held, "source")).to_have_text(BEFORE)
    get(f"{address}/release")
    until(held, lambda: engine(address)["running"] == 0)
    held.get_by_role("button", name="Run").click()
    expect(chips(held, "source").nth(1)).to_have_text("eine")
