"""While a run takes long: the next sentence reaches the engine at once, the last picture stays, and Stop ends the run."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.visiting import PAGES, Visitor
from tests.held import HeldEngine
from tests.hosts import settled
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


def type_and_look(visitor: Visitor, text: str) -> None:
    """Types a sentence, and looks at the page as it is then."""
    visitor.app.text_input(key="widget:text").set_value(text)
    visitor.app.run()
    assert not visitor.app.exception


def look_again(visitor: Visitor) -> None:
    """What the browser does once it is told that the answer is there."""
    until = time.monotonic() + 60
    while visitor.waits:
        assert time.monotonic() < until
        visitor.app.run()


def test_a_slow_run_does_not_keep_the_next_sentence_from_the_engine(engine: HeldEngine) -> None:
    visitor = Visitor(text="w4 w5")
    engine.go.clear()
    type_and_look(visitor, "w6 w7")
    assert visitor.waits
    assert visitor.tokens("source")[1:-1] == ["w4", "w5"], "the last picture stays"
    type_and_look(visitor, "w8 w9")
    assert engine.asked[-2:] == ["w6 w7", "w8 w9"], "asked for while the first still runs"
    assert visitor.waits
    engine.go.set()
    look_again(visitor)
    assert visitor.tokens("source")[1:-1] == ["w8", "w9"]
    assert visitor.problems == []
    assert visitor.url["text"] == "w8 w9"


def test_stop_ends_the_run_and_keeps_the_last_picture(engine: HeldEngine) -> None:
    visitor = Visitor(text="w4 w5")
    engine.go.clear()
    type_and_look(visitor, "w6 w7")
    visitor.app.button(key="stop").click()
    visitor.app.run()
    assert not visitor.waits
    assert [info.value for info in visitor.app.info] == ["Stopped. Press Run to start again."]
    assert visitor.tokens("source")[1:-1] == ["w4", "w5"]
    asked = len(engine.asked)
    visitor.app.run()
    assert len(engine.asked) == asked, "what was stopped is not begun again by itself"
    engine.go.set()
    settled(lambda: engine.scheduler.running == 0)
    visitor.app.button[0].click()
    visitor.app.run()
    look_again(visitor)
    assert visitor.tokens("source")[1:-1] == ["w6", "w7"]


def test_stop_says_how_far_the_run_had_come(engine: HeldEngine) -> None:
    visitor = Visitor(text="w4 w5")
    engine.left = 3  # the encoder, and two tokens
    engine.go.clear()
    type_and_look(visitor, "w6 w7")
    settled(
        lambda: any(call.feed.newest is not None and len(call.feed.newest.ids) == 2 for call in background_calls.BY_TOKEN.values())
    )
    visitor.app.button(key="stop").click()
    visitor.app.run()
    said = [caption.value.replace("\\", "") for caption in visitor.app.caption if "of at most" in caption.value]
    assert len(said) == 1
    how_far, text = said[0].split("  \n")
    assert how_far.startswith("2 of at most 40 tokens, ")
    engine.go.set()
    visitor.app.button[0].click()
    visitor.app.run()
    look_again(visitor)
    assert visitor.tokens("target")[1:3] == text.split(" ")
    assert not any("of at most" in caption.value for caption in visitor.app.caption)


def test_a_first_run_that_is_slow_waits_too(engine: HeldEngine) -> None:
    visitor = WaitingVisitor(engine, text="w4 w5")
    assert visitor.tokens("source")[1:-1] == ["w4", "w5"]


@pytest.mark.parametrize("name", [*PAGES, "checkpoint"])
def test_no_page_holds_its_visitor_up(engine: HeldEngine, name: str) -> None:
    query = {"text": "w4 w5", "clock": "computation", "pad": "9", "against": "text=w6"}
    visitor = WaitingVisitor(engine, name, **query)
    assert visitor.drawn
    assert visitor.problems == []


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
