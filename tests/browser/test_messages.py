"""What the app tells a browser for a choice: each element costs its redrawing, so what did not change is not told again."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, WebSocket
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.browser.servers import ROOT
from tests.browser.visits import drawing, middle, opened, rest, tile_of, type_sentence

pytestmark = pytest.mark.browser

MOST = 45
"""Messages for a sentence: 45 with the button *Export*, which a page shows without its numbers being open."""


def test_a_sentence_takes_few_messages_and_a_click_leaves_the_sentence_box_alone(
    watched: Page, serve: Callable[[Path], str]
) -> None:
    told: list[ForwardMsg] = []

    def note(frame: bytes | str) -> None:
        assert isinstance(frame, bytes)
        told.append(ForwardMsg.FromString(frame))

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", note)

    watched.on("websocket", listen)
    watched.set_viewport_size({"width": 1440, "height": 1500})
    page = opened(watched, serve(ROOT / "app.py"))
    type_sentence(page, "zwei hunde")  # the first sentence of a server takes long: the page tells that it waits
    drawing(page, "strips").get_by_text("hunde").wait_for()
    rest(page)
    told.clear()
    type_sentence(page, "ein hund läuft im schnee .")
    drawing(page, "strips").get_by_text("läuft").wait_for()
    rest(page)
    assert "text_input" in elements(told)
    assert len(told) <= MOST
    assert told_last(told), "the picture first"
    told.clear()
    page.mouse.click(*middle(tile_of(page, "encoder.0.1.self", 2), 0, 0))
    page.wait_for_url("**head=2**")
    rest(page)
    assert "bidi_component" in elements(told)
    assert "text_input" not in elements(told)
    assert "Run" not in [message.delta.new_element.button.label for message in told]
    assert told_last(told), "the picture first"


def elements(told: list[ForwardMsg]) -> list[str]:
    """The kinds of the elements that were told."""
    return [str(message.delta.new_element.WhichOneof("type")) for message in told if message.WhichOneof("type") == "delta"]


def told_last(told: list[ForwardMsg]) -> bool:
    """Whether the URL was told once, after all elements."""
    kinds = [message.WhichOneof("type") for message in told]
    return kinds.count("page_info_changed") == 1 and "delta" not in kinds[kinds.index("page_info_changed") :]
