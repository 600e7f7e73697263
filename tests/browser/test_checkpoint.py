"""The page Checkpoint in a real browser: what is no checkpoint is refused in a sentence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import ROOT

pytestmark = pytest.mark.browser


def test_a_picture_is_refused_in_a_sentence(watched: Page, serve: Callable[[Path], str]) -> None:
    watched.goto(f"{serve(ROOT / 'app.py')}/checkpoint", wait_until="domcontentloaded")
    picture = {"name": "picture.pt", "mimeType": "application/octet-stream", "buffer": b"\x89PNG\r\n\x1a\n" + bytes(64)}
    watched.locator("input[type=file]").set_input_files(picture)  # type: ignore[arg-type]  # a FilePayload
    expect(watched.get_by_text("what can be opened is a safetensors file")).to_be_visible()
