"""Every panel has a button with two sentences about it and a link to a page of the documentation that the app serves."""

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

import app
from viz.views.explore import page as intro
from viz.widgets import panel_help

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for folder in ("views", "features") for path in (ROOT / "viz" / folder).rglob("*.py"))
PANELS = {name for path in SOURCES for name in re.findall(r'(?:card|panel)\("([a-z-]+)"', path.read_text(encoding="utf-8"))}
ASKING = {"choose", "questions", "neighbours"}
"""Panels that ask for something, or tell what a file is, in their own words."""


def test_every_panel_has_help_and_there_is_none_for_panels_that_are_gone() -> None:
    assert {"overview", "heat", "lines", "film", "network"} <= PANELS
    assert {name for name in PANELS if not panel_help.html(name)} <= ASKING
    assert panel_help.texts().keys() <= PANELS


@pytest.mark.parametrize("name", sorted(PANELS - ASKING))
def test_help_is_two_sentences_and_a_link_to_the_documentation(name: str) -> None:
    html = panel_help.html(name)
    text = unescape(re.sub(r"<summary.*?</summary>|<a .*?</a>|<[^>]+>", "", html)).strip()
    assert len(re.findall(r"[.!?](?: |$)", text)) == 2, text
    assert re.search(r'href="/headlight/docs/[a-z-]+\.md(#[a-z-]+)?"', html)


def test_the_pages_that_help_links_to_are_served_and_nothing_else() -> None:
    client = TestClient(Starlette(routes=[panel_help.ROUTE]))
    for page in panel_help.pages():
        answer = client.get(f"{panel_help.ADDRESS}/{page}")
        assert answer.status_code == 200, page
        assert answer.text.startswith("# ")
    for wrong in ("nothing.md", "../README.md", "..%2FREADME.md", "images"):
        assert client.get(f"{panel_help.ADDRESS}/{wrong}").status_code == 404


def test_the_first_sentence_says_what_large_weights_look_like_in_the_scheme() -> None:
    assert "Dark: large weight" in intro.sentence(dark=False)
    assert "Bright: large weight" in intro.sentence(dark=True)


def test_the_pages_that_panels_link_to_were_taken_for_parts_of_drawings() -> None:
    client = TestClient(Starlette(routes=app.ROUTES))
    for page in panel_help.pages():
        answer = client.get(f"{panel_help.ADDRESS}/{page}")
        assert answer.status_code == 200
        assert answer.text == (panel_help.DOCS / page).read_text(encoding="utf-8")
