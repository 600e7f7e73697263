"""The page Explore and the live route: the same session, the same sentence, the same bytes."""

import json
from pathlib import Path

import pytest

from tests.app.visiting import Visitor
from tests.live import answered
from viz.features.live.sessions import BY_TOKEN, LiveSession


def live_of(visitor: Visitor) -> LiveSession | None:
    """The live session that the page names; None: the page has none."""
    for part in visitor.app.get("bidi_component"):
        if part.proto.component_name == "headlight.live":
            told = json.loads(part.proto.json)
            assert told["pause"] == 120
            return BY_TOKEN[told["path"].rpartition("/")[2]]
    return None


def drawn(visitor: Visitor) -> dict[str, bytes]:
    """The scenes that the script has drawn, by drawing."""
    parts = {part.proto.component_name.removeprefix("headlight."): part.proto for part in visitor.app.get("bidi_component")}
    return {name: parts[name].bytes for name in ("strips", "atlas", "cells", "lines") if name in parts}


def last_scenes(live: LiveSession, text: str) -> dict[str, bytes]:
    """The scenes of the last frame of the route's answer."""
    return answered(live, text)[-1][1]


@pytest.mark.parametrize("chosen", [{}, {"reading": "mean", "hide": "special"}, {"decode": "beam", "head": "1"}], ids=str)
def test_the_script_draws_the_bytes_that_the_route_has_answered(stocked: Path, chosen: dict[str, str]) -> None:
    visitor = Visitor(text="w4 w5", **chosen)
    live = live_of(visitor)
    assert live is not None
    before, scenes = drawn(visitor), last_scenes(live, "w5 w6 w7")
    assert scenes.keys() == before.keys()
    visitor.type("text", "w5 w6 w7")
    assert drawn(visitor) == scenes, "what stands on the page would be drawn again"
    assert live_of(visitor) is live, "a session keeps its token"


def test_other_pages_and_servers_without_it_have_no_live_box(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor("step", text="w4 w5")
    assert live_of(visitor) is None
    visitor.go("explore")
    assert live_of(visitor) is not None
    assert live_of(Visitor(text="w4 w5")) is not live_of(visitor), "each tab has a session of its own"
    monkeypatch.setenv("HEADLIGHT_LIVE", "0")
    assert live_of(Visitor(text="w4 w5")) is None
