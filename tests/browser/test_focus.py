"""The focus ring: each element that the keyboard reaches looks different while it is there, in big mode and in the dark, too."""

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import ROOT, Serve
from tests.browser.focus import unseen
from tests.browser.visits import opened

pytestmark = pytest.mark.browser


def test_the_keyboards_focus_is_always_seen(watched: Page, serve: Serve) -> None:
    watched.emulate_media(color_scheme="dark")
    for path in ("whatif", "explore?big=1"):
        page = opened(watched, f"{serve(ROOT / 'app.py')}/{path}")
        if path == "whatif":
            page.locator("[data-variant=segmented_control]").first.wait_for()
        count, found = unseen(page)
        assert count > 20
        assert found == [], path
    page.add_style_tag(content=".stApp :focus-visible, .hl *:focus-visible { outline: none !important; }")
    assert unseen(page)[1], "the measure sees a ring that is gone"
