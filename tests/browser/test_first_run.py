"""A page whose first run fails: what is typed next runs as on every other page."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.patience import expect
from tests.browser.servers import ROOT
from tests.browser.visits import chips, loud, rest

pytestmark = [pytest.mark.browser, pytest.mark.thorough]


@pytest.mark.parametrize("first", ["", "ein " * 120], ids=["nothing", "too much"])
def test_a_sentence_typed_after_a_first_run_that_failed_is_drawn(watched: Page, serve: Callable[[Path], str], first: str) -> None:
    watched.goto(f"{serve(ROOT / 'app.py')}/?model=multi30k-de-en&text={first}")
    expect(loud(watched)).to_have_count(1)
    rest(watched)
    watched.get_by_role("textbox", name="Input sentence").fill("ein hund")
    watched.get_by_role("button", name="Run", exact=True).click()
    expect(chips(watched, "source")).to_have_text(["<sos>", "ein", "hund", "<eos>"])
    expect(loud(watched)).to_have_count(0)  # the picture comes while one types, the page after the click
    rest(watched)
    watched.get_by_role("textbox", name="Input sentence").fill("")
    watched.get_by_role("button", name="Run", exact=True).click()
    expect(loud(watched)).to_have_count(1)
    rest(watched)
    watched.get_by_role("textbox", name="Input sentence").fill("zwei hunde")
    watched.get_by_role("button", name="Run", exact=True).click()
    expect(chips(watched, "source")).to_have_text(["<sos>", "zwei", "hunde", "<eos>"])
    expect(loud(watched)).to_have_count(0)
