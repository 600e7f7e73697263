"""Every page, opened once: quiet, free of barriers, its focus seen in light and dark, and as wide as its window."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FloatRect, Locator, Page

from tests.browser.conftest import Serve
from tests.browser.focus import unseen
from tests.browser.patience import expect
from tests.browser.visits import loud, overflow, rest

pytestmark = pytest.mark.browser

APP = Path(__file__).parents[2] / "app.py"
LONGER = "Ein Mann in einem blauen Hemd steht auf einer hohen Leiter und putzt ein Fenster."
SHORT = "Ein Mann."
PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("", {"text": LONGER}),
    ("masks", {"text": SHORT, "site": "encoder.0.2.self"}),
    ("whatif", {"text": LONGER}),
    ("checkpoint", {}),
)
MORE_PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("step", {"text": LONGER}),
    ("step", {"decode": "beam"}),
    ("step", {"clock": "computation", "stage": "encoder.0.0.self/scores"}),
    ("positions", {"text": SHORT}),
    ("compare", {"text": LONGER, "against": "decode=beam"}),
    ("circuit", {"text": SHORT}),
    ("training", {"model": "reverse-digits"}),
    ("checkpoint", {"model": "reverse-digits"}),
    ("lecture", {}),
)
FIRST_LINE = {"": ".st-key-widget-text", "checkpoint": ".stMainBlockContainer > .stVerticalBlock"}
"""What stands below the logo on the pages where the sidebar is put away."""

CUT_PLACEHOLDERS = """() => [...document.querySelectorAll("input[placeholder]")].filter((field) => {
  const { font, paddingLeft, paddingRight } = getComputedStyle(field);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = font;
  const room = field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  const seen = field.checkVisibility() && field.getBoundingClientRect().right > 0; // the sidebar is put away on a phone
  return seen && !field.value && pen.measureText(field.placeholder).width > room + 1;
}).map(({ placeholder }) => placeholder)"""
"""What empty fields say, where it is longer than the field."""

VIOLATIONS = "(options) => axe.run(options).then(({ violations }) => violations)"
BARRIERS = ("serious", "critical")
EVERY_RULE = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
"""Off by default: whoever speaks to a page says the words that are seen on a button, so its name must hold them."""

RULES_OF_COLOR = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
"""The rules whose result depends on light or dark: the elements, their names and their order are the same in both."""

SCHEMES: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...] = (("light", EVERY_RULE), ("dark", RULES_OF_COLOR))
BACKGROUND = {"light": "rgb(252, 251, 249)", "dark": "rgb(17, 21, 28)"}
"""Of the page: Streamlit follows the scheme a moment later than the browser does."""

FEWEST_REACHED = 20
"""Elements: the sidebar alone has more."""

LAPTOP = 1440
WIDTHS = (1024, 390)
WIDTHS_WITHOUT_SIDEBAR = (720, 1000, 1024, 1440, 1920)
"""The first is that of a laptop at 200 %."""


def violations(page: Page, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Rules of serious or critical impact that the page breaks, with the elements that break them."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(Axe().axe_script)
    found_by_axe = page.evaluate(VIOLATIONS, options | {"resultTypes": ["violations"]})
    return [
        {
            "rule": found["id"],
            "impact": found["impact"],
            "at": [(node["target"], node["html"][:300], node["any"] and node["any"][0]["message"]) for node in found["nodes"][:5]],
        }
        for found in found_by_axe
        if found["impact"] in BARRIERS
    ]


@pytest.mark.parametrize(("path", "query"), [*PAGES, *(pytest.param(*more, marks=pytest.mark.thorough) for more in MORE_PAGES)])
def test_a_page_is_quiet_open_to_everybody_and_never_wider_than_its_window(
    watched: Page, within: Callable[[str], Page], serve: Serve, path: str, query: dict[str, str]
) -> None:
    watched.set_viewport_size({"width": LAPTOP, "height": 1500})
    page = within(f"{serve(APP)}/{path}?{urlencode(query)}")
    expect(loud(page)).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    for scheme, rules in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(".stApp")).to_have_css("background-color", BACKGROUND[scheme])
        rest(page)
        assert violations(page, rules) == [], f"{path}, {scheme}"
        count, found = unseen(page)
        assert count > FEWEST_REACHED, "the keyboard reaches the page"
        assert found == [], f"no line around what has the keyboard's focus: {path}, {scheme}"
    if path in FIRST_LINE:
        a_sidebar_that_is_put_away_covers_nothing(page, page.locator(FIRST_LINE[path]).first)
    if path == "masks":
        unused, below = (box(page.locator(f".st-key-card-mask-{name}")) for name in ("causal", "padding"))
        assert below["y"] - unused["y"] - unused["height"] < 40, "an empty area below the mask that is not used"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        rest(page)
        assert overflow(page) <= 0, f"{path} at {width} px"
        assert page.evaluate(CUT_PLACEHOLDERS) == [], f"{path} at {width} px"


def a_sidebar_that_is_put_away_covers_nothing(page: Page, line: Locator) -> None:
    """Putting it away is the first thing that a lecturer does."""
    page.get_by_test_id("stSidebar").hover()
    page.get_by_label("Collapse sidebar").click()
    back = page.get_by_test_id("stExpandSidebarButton")
    expect(back).to_be_visible()
    for width in WIDTHS_WITHOUT_SIDEBAR:
        page.set_viewport_size({"width": width, "height": 768})
        rest(page)
        for above in (back, page.get_by_test_id("stHeaderLogo")):
            assert not overlap(box(above), box(line)), f"at {width} px"
    page.set_viewport_size({"width": LAPTOP, "height": 1500})
    back.click()


def box(locator: Locator) -> FloatRect:
    """Where an element is."""
    found = locator.bounding_box()
    assert found is not None
    return found


def overlap(one: FloatRect, other: FloatRect) -> bool:
    """Whether two rectangles share a point."""
    beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
    apart = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
    return not (beside or apart)
