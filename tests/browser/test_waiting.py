"""A run that takes long, as a visitor sees it: the page says so, takes the next sentence, and is painted when the run has ended."""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import chips, has_parameters, loud, opened, rest, type_sentence

pytestmark = pytest.mark.browser

BEFORE = ["<sos>", "ein", "mann", "<eos>"]


@pytest.fixture
def address(serve: Callable[[Path], str]) -> Iterator[str]:
    found = serve(Path(__file__).with_name("held_app.py"))
    yield found
    get(f"{found}/release")


@pytest.fixture
def page(watched: Page, address: str) -> Page:
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


def until(so: Callable[[], bool], page: Page) -> None:
    for _ in range(600):
        if so():
            return
        page.wait_for_timeout(100)
    raise AssertionError


def report_nothing(text: str) -> str:
    """A sentence that nobody has asked for, in a second try of a test either: a known one is there at once."""
    return f"{text} {time.monotonic_ns() % 10**6}"


def test_the_next_sentence_reaches_the_engine_while_the_first_runs_and_is_painted_by_itself(page: Page, address: str) -> None:
    first, second = report_nothing("eine frau"), report_nothing("zwei hunde")
    type_sentence(page, first)
    expect(page.locator(".waiting")).to_contain_text("Running:")
    expect(chips(page, "source")).to_have_text(BEFORE)
    type_sentence(page, second)
    until(lambda: engine(address)["asked"][-2:] == [first, second], page)
    expect(page.locator(".waiting")).to_have_count(1)
    get(f"{address}/release")
    expect(chips(page, "source").nth(1)).to_have_text("zwei")
    rest(page)
    assert loud(page).all_inner_texts() == []
    has_parameters(page, text=second)


def test_a_long_run_shows_what_is_written_so_far_and_stop_says_how_far_it_came(page: Page, address: str) -> None:
    get(f"{address}/hold?after=4")  # the encoder, and three tokens
    type_sentence(page, report_nothing("eine frau sitzt"))
    expect(page.locator(".said")).to_have_text(re.compile(r"^3 of at most 60 tokens, \d+\.\d per second$"))
    written = chips(page, "target").all_inner_texts()[1:]
    assert len(written) == 3
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(page.get_by_text("3 of at most 60 tokens")).to_contain_text(" ".join(written))
    expect(chips(page, "target")).to_have_text(["<sos>", *written])
    get(f"{address}/release")
    until(lambda: engine(address)["running"] == 0, page)


def test_stop_ends_the_run_and_run_begins_it_again(page: Page, address: str) -> None:
    type_sentence(page, report_nothing("eine frau"))
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(chips(page, "source")).to_have_text(BEFORE)
    get(f"{address}/release")
    until(lambda: engine(address)["running"] == 0, page)
    page.get_by_role("button", name="Run").click()
    expect(chips(page, "source").nth(1)).to_have_text("eine")
