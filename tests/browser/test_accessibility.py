"""Every page, light and dark, held against axe-core's rules: nothing that keeps people from using it."""

from pathlib import Path
from typing import Any, Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import Serve
from tests.browser.visits import opened, rest

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
PAGES = (
    "explore",
    "step",
    "step?decode=beam",
    "step?stage=encoder.0.0.self%2Fscores",
    "masks",
    "positions",
    "compare",
    "training?model=reverse-digits",
    "checkpoint",
)
BARRIERS = ("serious", "critical")
OPTIONS = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
"""Off by default: whoever speaks to a page says the words that are seen on a button, so its name must hold them."""


def violations(page: Page) -> list[dict[str, Any]]:
    """Rules of serious or critical impact that the page breaks, with the elements that break them."""
    return [
        {
            "rule": found["id"],
            "impact": found["impact"],
            "at": [(node["target"], node["html"][:300]) for node in found["nodes"][:5]],
        }
        for found in Axe().run(page, options=OPTIONS).response["violations"]
        if found["impact"] in BARRIERS
    ]


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


@pytest.mark.parametrize("path", PAGES)
def test_a_page_breaks_no_rule_of_accessibility_that_keeps_people_out(watched: Page, serve: Serve, path: str) -> None:
    opened(watched, f"{serve(APP)}/{path}")
    for scheme in SCHEMES:
        watched.emulate_media(color_scheme=scheme)
        rest(watched)
        assert violations(watched) == [], f"{path}, {scheme}"
