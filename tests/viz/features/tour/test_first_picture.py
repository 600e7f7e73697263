"""The first picture of a new visitor: which head it shows, which word invites, and that its lines are the weights of the run."""

import math
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from types import MappingProxyType, SimpleNamespace
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.engine.api import Describe, ModelInfo, Run
from model.requests.request import RunRequest
from model.trace.types import Attention, Site
from tests import traces
from tests.known import bundled_engine
from tests.pages import MadeUpEngine, open_view, words
from viz.canvas.wire.transport import unpack
from viz.features.tour import first_scene as first_picture
from viz.session import visits
from viz.session.state import FIRST_PICTURE

CROSS = Site("decoder", 0, 2, "cross")


def clearness(attention: Attention, head: int) -> float:
    """Mean of the word rows' largest weights on a word, times the share of words that are some row's largest: in Python."""
    words = [place for place, text in enumerate(traces.GERMAN) if text.isalpha()]
    written = [row for row, text in enumerate(traces.ENGLISH[1:]) if text.isalpha()]
    rows = [[float(attention.weights[head, row, key]) for key in words] for row in written]
    return math.fsum(max(row) for row in rows) / len(rows) * len({row.index(max(row)) for row in rows}) / len(rows[0])


@pytest.mark.parametrize("seed", range(4))
def test_the_clearest_head_is_shown_as_it_ran(seed: int) -> None:
    trace = traces.translation(seed=seed)
    attention = trace.at(CROSS)
    head = first_picture.clearest_head(trace, attention)
    assert head == max(range(attention.heads), key=lambda each: clearness(attention, each))
    header, parts = unpack(first_picture.scene(trace, attention, head))
    exact = unpack(parts["exact"].tobytes())[1]["exact"]
    np.testing.assert_array_equal(exact, attention.weights[head])
    assert header["keys"][1:3] == ["zwei", "junge"]
    word = header["queries"][header["invites"]]
    assert f"“{word}”" in header["texts"]["hint"]
    assert f"“{word}”" in header["texts"]["hintTouch"]


MEANS = {"an": "ein", "old": "alter", "man": "mann", "plays": "spielt", "guitar": "gitarre", "in": "im", "park": "park"}


def test_the_head_of_the_example_sentence_reads_word_by_word() -> None:
    """Of all heads, the one that is shown first has most of its weight on the words that mean the same."""
    engine = bundled_engine()
    trace = engine.ask(Run(RunRequest("multi30k-de-en", engine.ask(Describe("multi30k-de-en")).examples[0])))
    attention, german = trace.last_cross(), trace.tokens["source"].texts
    rows = first_picture.rows(trace, attention)
    assert set(MEANS) <= set(rows)
    pairs = [(rows.index(english), german.index(word)) for english, word in MEANS.items()]
    meant = [sum(float(attention.weights[head, row, key]) for row, key in pairs) for head in range(attention.heads)]
    assert first_picture.clearest_head(trace, attention) == int(np.argmax(meant))
    assert attention.weights[int(np.argmax(meant)), rows.index("man"), german.index("mann")] > 0.9


def test_a_row_has_the_word_that_was_written_with_its_weights() -> None:
    trace = traces.translation()
    assert first_picture.rows(trace, trace.at(CROSS)) == traces.ENGLISH[1:]
    assert first_picture.rows(trace, trace.at("encoder.0.0.self")) == traces.GERMAN
    model = traces.language_model()
    one = list(model.attention.values())[-1]
    assert first_picture.rows(model, one) == traces.ENGLISH[1:]


def test_the_word_that_invites_looks_far_away_at_one_word() -> None:
    trace = traces.translation()
    weights = np.full((8, 12, 12), 1 / 12, np.float32)
    weights[:, 3] = np.eye(12)[11]  # “play” → <eos>
    attention = Attention(
        CROSS, "target", "source", weights[:, : trace.at(CROSS).weights.shape[1]], trace.at(CROSS).mask, trace.at(CROSS).mask
    )
    row = first_picture.inviting_row(trace, attention, 0)
    assert first_picture.rows(trace, attention)[row] == "play"


@pytest.fixture
def visitor(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Starts a session of a visitor, and says what it shows and what it opens."""

    def comes(url: str, cookie: str | None = None, **query: str) -> tuple[bool, tuple[str, dict[str, str]] | None]:
        cookies = {} if cookie is None else {visits.COOKIE: quote(cookie, safe="")}
        fake = SimpleNamespace(session_state={}, query_params=query, context=SimpleNamespace(url=url, cookies=cookies))
        monkeypatch.setattr(visits, "st", fake)
        monkeypatch.setattr(visits, "known_view", lambda: False)
        visits.begin({"step"})
        found = bool(fake.session_state[FIRST_PICTURE]), visits.take_left()
        assert visits.take_left() is None, "once"
        visits.leave_first_picture()
        assert not bool(fake.session_state[FIRST_PICTURE])
        return found

    return comes


@pytest.mark.parametrize("url", ["http://host", "http://host/", "https://host/apps/headlight/"])
def test_the_address_alone_shows_the_first_picture_once(visitor: Any, url: str) -> None:
    assert visitor(url) == (True, None)
    assert visitor(url, "") == (False, None)
    assert visitor(url, "step?text=Ein+Hund+%26+eine+Katze.&target=") == (
        False,
        ("step", {"text": "Ein Hund & eine Katze.", "target": ""}),
    )
    assert visitor(url, "?head=3") == (False, ("", {"head": "3"}))


@pytest.mark.parametrize(("url", "query"), [("http://host/", {"text": "Hallo."}), ("http://host/step", {}), ("", {})])
@pytest.mark.parametrize("cookie", [None, "step?head=3"])
def test_a_link_opens_what_it_says(visitor: Any, url: str, query: dict[str, str], cookie: str | None) -> None:
    assert visitor(url, cookie, **query) == (False, None)


def test_the_picture_comes_alone_and_all_heads_after_a_click() -> None:
    app = open_view("explore", MadeUpEngine())
    assert "What a network attends to while it translates" not in words(app)
    app.session_state[FIRST_PICTURE] = True
    app.run()
    assert [button.label for button in app.button] == ["Show me in five steps", "Show all 6 heads"]
    assert "Type a sentence in German into the box above." in words(app)
    assert "<sos> and <eos> are special tokens that mark the beginning and the end." in unescape(words(app))
    assert not app.expander
    app.button(key="all-heads-first").click().run()
    assert app.expander
    assert not any(button.key == "all-heads-first" for button in app.button)
    trace = MadeUpEngine().trace
    cross = trace.last_cross()
    assert (app.session_state["view"].site, app.session_state["view"].head) == (
        str(cross.site),
        first_picture.clearest_head(trace, cross),
    )


class Stocked(MadeUpEngine):
    """An engine with two language models, of which the first may not be usable."""

    problem: Mapping[str, Any] = MappingProxyType({})

    def models(self) -> tuple[ModelInfo, ...]:
        [one] = super().models()
        lm = replace(one, name="captions-lm", title="Captions", spec={"encoder": None, "decoder": {}})
        return one, lm, replace(lm, name="smollm2", title="SmolLM2", problem=self.problem)


@pytest.mark.parametrize(("problem", "offered"), [({}, "smollm2"), ({"error": "OpenQuestions"}, "captions-lm")])
def test_a_language_model_is_offered_and_from_it_the_way_back(problem: Mapping[str, Any], offered: str) -> None:
    engine = Stocked()
    engine.problem = problem
    app = open_view("explore", engine)
    app.session_state[FIRST_PICTURE] = True
    app.run()
    [button] = [each for each in app.button if each.key == "other-first"]
    button.click().run()
    assert app.session_state["view"].model == offered
    assert app.session_state[FIRST_PICTURE], "a novice is not dropped into the full page"
    assert button.label == "Language model"


class Continuing(Stocked):
    """An engine whose page shows a language model."""

    def models(self) -> tuple[ModelInfo, ...]:
        one, *others = super().models()
        return *others, one


def test_a_language_model_has_the_way_back_to_a_translation() -> None:
    app = open_view("explore", Continuing())
    app.session_state[FIRST_PICTURE] = True
    app.run()
    [button] = [each for each in app.button if each.key == "other-first"]
    assert button.label == "Translation"
    button.click().run()
    assert app.session_state["view"].model == "made-up"


def picture_of(app: AppTest) -> bytes:
    """The scene of the picture of a step."""
    [scene] = [part.proto.bytes for part in app.get("bidi_component") if "tour-" in part.proto.id and part.proto.bytes]
    return bytes(scene)


def test_the_tour_goes_through_five_scenes_each_with_its_own_picture_and_ends_at_all_heads() -> None:
    app = open_view("explore", MadeUpEngine())
    app.session_state[FIRST_PICTURE] = True
    app.run()
    app.button(key="tour-first").click().run()
    pictures: list[bytes] = []
    titles = ["A text becomes tokens", "A head attends", "The same head as a map", "All heads at once", "Now change something"]
    for step, title in enumerate(titles, start=1):
        assert title in words(app)
        assert f"Step {step} of 5" in words(app)
        assert not app.exception
        pictures.append(picture_of(app))
        if step < len(titles):
            app.button(key="tour-next").click().run()
    assert len(set(pictures)) == len(titles), "no step shows the picture of another one"
    app.button(key="tour-back").click().run()
    assert titles[3] in words(app)
    assert "This network has 6 heads." in words(app)
    app.button(key="tour-leave").click().run()
    assert "What a network attends to while it translates" in words(app)
    assert not any(title in words(app) for title in titles)
    app.button(key="tour-first").click().run()
    for _step in titles[1:]:
        app.button(key="tour-next").click().run()
    assert app.button(key="tour-next").label == "Show all 6 heads"
    app.button(key="tour-next").click().run()
    assert app.expander, "the whole page"
    assert not app.session_state[FIRST_PICTURE]
    assert app.session_state["view"].head == first_picture.clearest_head(MadeUpEngine().trace, MadeUpEngine().trace.last_cross())
