"""The app while the host of its engine is away: the last result stays, and the page goes on by itself."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from model.engine.guards.access import AccessLimits
from model.engine.local import LocalEngine
from model.features.serving.http.client import RemoteEngine
from model.features.serving.http.server import application
from tests.app.visiting import Visitor
from tests.hosts import Loopback
from tests.runs import CPU
from viz.session import state


class Cord(Loopback):
    """The way to the host, which can be cut."""

    cut = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.cut:
            raise httpx.ConnectError("cut")
        return super().handle_request(request)


@pytest.fixture
def cord(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cord]:
    """The way to a host with one checkpoint, which the app asks."""
    found = Cord(application(LocalEngine(stocked, CPU), AccessLimits()))
    monkeypatch.setattr(state, "open_engine", lambda: RemoteEngine("http://gpu", transport=found))
    monkeypatch.setattr("model.features.serving.http.client.RETRY_SECONDS", 0.0)
    monkeypatch.setattr("model.features.serving.http.client.FRESH_SECONDS", 0.0)
    state.the_engine.clear()
    yield found
    state.the_engine.clear()


def test_the_last_result_stays_and_the_page_recovers_without_a_reload(cord: Cord) -> None:
    visitor = Visitor(text="w4 w5")
    drawn = visitor.drawn
    cord.cut = True
    visitor.type("text", "w6 w7 w8")
    (problem,) = visitor.problems
    assert re.fullmatch(r"The engine has not answered for \d+ s\. Showing the last result until it is back\.", problem)
    assert visitor.drawn == drawn
    assert visitor.tokens("source")[1:-1] == ["w4", "w5"]
    cord.cut = False
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.tokens("source")[1:-1] == ["w6", "w7", "w8"]


def test_who_comes_while_it_is_away_is_told(cord: Cord) -> None:
    cord.cut = True
    visitor: Any = Visitor(text="w4 w5")
    assert [bool(re.search(r"The engine at http://gpu has not answered for \d+ s", text)) for text in visitor.problems] == [True]
    cord.cut = False
    visitor.go("explore")
    assert visitor.problems == []
    assert visitor.drawn > 0
