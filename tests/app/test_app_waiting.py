"""While a run takes long, every page waits and is then drawn; nothing is computed twice. Of Stop: tests/browser/test_waiting.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.util import calc_hash

from tests.app.visiting import PAGES, Visitor
from tests.held import HeldEngine
from viz.session import background_calls, state


@pytest.fixture
def engine(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldEngine]:
    """The app's engine."""
    found = HeldEngine(stocked)
    monkeypatch.setattr(state, "open_engine", lambda: found)
    state.the_engine.clear()
    yield found
    found.go.set()
    state.the_engine.clear()


class WaitingVisitor(Visitor):
    """A visitor whose engine goes on once the page was seen to wait."""

    def __init__(self, engine: HeldEngine, page: str = "explore", **query: str) -> None:
        engine.go.clear()
        self._engine = engine
        super().__init__(page, **query)

    def _run(self) -> None:
        self.app.run()
        assert self.waits
        self._engine.go.set()
        super()._run()


def test_a_first_run_that_is_slow_waits_too(engine: HeldEngine) -> None:
    visitor = WaitingVisitor(engine, text="w4 w5")
    assert visitor.tokens("source")[1:-1] == ["w4", "w5"]


@pytest.mark.parametrize("name", [*PAGES, "checkpoint"])
def test_no_page_holds_its_visitor_up(engine: HeldEngine, name: str) -> None:
    query = {"model": "tiny", "text": "w4 w5", "clock": "computation", "pad": "9", "against": "text=w6"}
    visitor = WaitingVisitor(engine, name, **query)
    assert visitor.drawn
    assert visitor.problems == []


def test_nothing_is_said_of_an_edit_before_its_run_is_there(engine: HeldEngine) -> None:
    visitor = Visitor(text="w4 w5")
    engine.go.clear()
    visitor.app._page_hash = calc_hash("whatif")
    visitor.app.run()
    assert visitor.waits
    assert "The output is the same" not in visitor.words
    assert "What does the model generate with the edits?" not in visitor.words
    engine.go.set()
    visitor._run()
    assert "What does the model generate with the edits?" in visitor.words


def test_the_arithmetic_of_a_cell_waits_in_its_dialog(engine: HeldEngine) -> None:
    visitor = Visitor(text="w4 w5")
    copied = WaitingVisitor(engine, **visitor.url | {"query": "1", "key": "0"})
    assert any("How this weight was calculated" in text.value for text in copied.app.markdown)


@pytest.mark.parametrize("name", ["explore", "step", "masks", "compare"])
def test_what_a_page_waits_for_in_turn_is_computed_once_each(
    engine: HeldEngine, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_calls, "PATIENCE_S", 0.0)
    query = {"text": "w4 w5", "clock": "computation", "pad": "9", "against": "text=w6", "query": "1", "key": "0"}
    visitor = Visitor(name, **query)
    assert visitor.drawn
    assert len(engine.asked) <= 3, "each rerun of the script must find what the one before has got"


def test_what_a_link_asks_for_in_vain_is_said_once_though_the_page_waits(
    engine: HeldEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_calls, "PATIENCE_S", 0.0)
    visitor = Visitor(model="nope", text="w4 w5", silence="decoder.0.9.cross:0")
    assert visitor.problems == [
        "There is no usable model “nope” here. Showing “tiny” instead.",
        "This link silences heads that this model does not have (decoder.0.9.cross:0). No head was silenced.",
    ]
    assert visitor.drawn
