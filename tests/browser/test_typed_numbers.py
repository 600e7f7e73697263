"""A question that asks for a number: what is typed is read in the language of the page, or refused in a sentence."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.patience import expect
from tests.known import bundled_engine
from viz.features.lectures.presenter import html_pages
from viz.features.lectures.presenter.deck import LectureDeck
from viz.features.lectures.script import parser

pytestmark = pytest.mark.browser

RUN = "model=captions-lm&text=two+dogs&decode=greedy&max=2"
LECTURE = """---
title: T
language: {language}
minutes: 1
models: captions-lm
---
view: /step?{run}&open=cache
question: How many bytes?
answer: number kept 13
---
view: /explore?{run}
question: How large?
answer: number sum decoder.0.2.self head 0 1
"""
COUNTED = ("9984", "9,984", "9.984", "9 984", "9\u202f984", "9'984", "9984 bytes", " 9,984 Byte ", "９９８４", "9.984e3")
"""Ways to write 9,984, a number of bytes, which has no decimals."""

DECIMALS = {"en": ("1.0", "0,98", ".98", "1"), "de": ("1,0", "0.98", ",98", "1")}
REFUSED = ("", "about 9984", "9,98,4", "1/2", "1e13", "--1", "bytes")


def opened(page: Page, folder: Path, language: str) -> None:
    deck = LectureDeck(parser.read(LECTURE.format(language=language, run=RUN), f"t.{language}"), bundled_engine())
    deck.wait()
    file = folder / f"{language}.html"
    file.write_bytes(html_pages.file(deck))
    page.goto(file.as_uri())


def send(page: Page, typed: str, step: int) -> None:
    page.evaluate("(step) => { location.hash = `#${step}`; }", step)
    page.reload()
    page.fill("#question input", typed)
    page.keyboard.press("Enter")


@pytest.mark.parametrize(("language", "answer"), [("en", "9,984 bytes"), ("de", "9.984 Byte")])
def test_a_typed_number_is_read_in_the_language_of_the_page(watched: Page, tmp_path: Path, language: str, answer: str) -> None:
    opened(watched, tmp_path, language)
    expect(watched.locator("#question label")).to_contain_text("bytes" if language == "en" else "Byte")
    own = "Your answer" if language == "en" else "Eigene Antwort"
    for typed in COUNTED:
        send(watched, typed, 1)
        expect(watched.locator(".verdict.good span")).to_have_text(f"{own}: {answer}")
    for typed in DECIMALS[language]:
        send(watched, typed, 2)
        expect(watched.locator(".verdict.good")).to_be_visible()
    send(watched, "9,984.5" if language == "en" else "9.984,5", 2)
    expect(watched.locator(".verdict.bad")).to_contain_text("9,984.5" if language == "en" else "9.984,5")


@pytest.mark.thorough
def test_what_is_no_number_is_refused_in_a_sentence(watched: Page, tmp_path: Path) -> None:
    opened(watched, tmp_path, "en")
    for typed in REFUSED:
        send(watched, typed, 1)
        expect(watched.locator("#question [role=alert]")).to_have_text(
            f"“{typed}” is not a number that can be sent. Write digits, such as 1,234."
        )
    watched.fill("#question input", "9984")
    watched.keyboard.press("Enter")
    expect(watched.locator(".verdict.good")).to_be_visible()
