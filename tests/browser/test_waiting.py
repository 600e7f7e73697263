"""A run that takes long, as a visitor sees it: the page says so, takes the next sentence, and is painted when the run has ended."""

import json
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


def test_the_next_sentence_reaches_the_engine_while_the_first_runs_and_is_painted_by_itself(page: Page, address: str) -> None:
    type_sentence(page, "eine frau")
    expect(page.locator(".waiting")).to_contain_text("Running:")
    expect(chips(page, "source")).to_have_text(BEFORE)
    type_sentence(page, "zwei hunde")
    until(lambda: engine(address)["asked"][-2:] == ["eine frau", "zwei hunde"], page)
    expect(page.locator(".waiting")).to_have_count(1)
    get(f"{address}/release")
    expect(chips(page, "source")).to_have_text(["<sos>", "zwei", "hunde", "<eos>"])
    rest(page)
    assert loud(page).all_inner_texts() == []
    has_parameters(page, text="zwei hunde")


def test_stop_ends_the_run_and_run_begins_it_again(page: Page, address: str) -> None:
    type_sentence(page, "eine frau")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("This was stopped.")).to_be_visible()
    expect(chips(page, "source")).to_have_text(BEFORE)
    get(f"{address}/release")
    until(lambda: engine(address)["running"] == 0, page)
    page.get_by_role("button", name="Run").click()
    expect(chips(page, "source")).to_have_text(["<sos>", "eine", "frau", "<eos>"])
