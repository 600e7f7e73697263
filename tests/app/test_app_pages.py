"""Every page of the app on every kind of network, the controls, and what an unforeseen error shows."""

import logging
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.checkpoints import native
from model.engine import log
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.inference import inputs
from model.requests.network import TABLELESS, ModelSpec
from model.requests.request import Decoding, RunRequest
from model.tokenizers.words import SPECIALS, WordTokenizer
from tests.app.visiting import PAGES, Visitor
from tests.networks import LANGUAGE_MODELS, TRANSLATORS, VARIANTS, language_model, save_checkpoint


def save_language_model(folder: Path, spec: ModelSpec) -> None:
    """Writes a language model with random weights, whose words are w4, w5, …"""
    words = SPECIALS + tuple(f"w{i}" for i in range(len(SPECIALS), spec.writer.vocab))
    info = native.Info("lm", "A language model", "Random weights.", {"source": "Words"}, ("w4 w5 w6",), {}, spec)
    tokenizer = WordTokenizer("spacy-en", words)
    native.save(folder, info, language_model(spec).state_dict(), {"source": tokenizer})


@pytest.mark.parametrize("variant", TRANSLATORS)
def test_every_page_draws_every_kind_of_translator(shelf: Path, variant: str) -> None:
    save_checkpoint(shelf / "tiny", VARIANTS[variant])
    visitor = Visitor(text="w4 w5 w6")
    for page in PAGES:
        visitor.go(page)
        has_no_positions = page == "positions" and VARIANTS[variant].writer.positions in TABLELESS
        assert visitor.drawn or has_no_positions, page
        assert visitor.problems == [], page


@pytest.mark.parametrize("variant", LANGUAGE_MODELS)
def test_every_page_draws_every_kind_of_language_model(shelf: Path, variant: str) -> None:
    save_language_model(shelf / "lm", VARIANTS[variant])
    visitor = Visitor()
    for page in PAGES:
        visitor.go(page)
        assert visitor.drawn or (page == "positions" and VARIANTS[variant].writer.positions in TABLELESS), page
        assert visitor.problems == [], page
    assert not [box for box in visitor.app.text_input if box.key == "widget:target"], "nothing is fed to a language model"


def test_every_page_draws_a_long_input_and_the_page_says_what_is_shown(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "LONG", 0)
    visitor = Visitor(text="w4 w5 w6 w7")
    for page in PAGES:
        visitor.go(page)
        assert visitor.drawn, page
        assert visitor.problems == [], page
        if page != "checkpoint":
            assert any("Long input" in caption.value for caption in visitor.app.caption), page


def test_the_first_example_runs_at_once_and_the_page_says_where(stocked: Path) -> None:
    visitor = Visitor()
    assert visitor.app.text_input(key="widget:text").value == "w4 w5."
    assert visitor.tokens("source") == ["<sos>", "w4", "w5.", "<eos>"]
    captions = " ".join(caption.value for caption in visitor.app.caption)
    assert re.search(r"CPU · \d+ threads? · \d+ ms", captions)
    size = r"Layers\\: 2 in the encoder\\, 2 in the decoder\\; heads per layer\\: 2\\; 0\\.0\d+ million parameters\\."
    assert re.search(size, captions)


def test_an_example_is_one_click_away(stocked: Path) -> None:
    visitor = Visitor(text="w9", target="w4", query="0")
    visitor.open("examples")
    visitor.press("example:0")
    assert visitor.url == {"model": "tiny", "text": "w4 w5."}


def test_the_seed_decides_what_sampling_writes(stocked: Path) -> None:
    def written(visitor: Visitor, seed: int) -> list[str]:
        visitor.set("seed", seed)
        return visitor.tokens("target")

    first, second = Visitor(text="w4 w5 w6"), Visitor(text="w4 w5 w6")
    for visitor in (first, second):
        visitor.choose("method", "sample")
        visitor.set("temperature", 3.0)
    assert written(first, 1) == written(second, 1)
    assert len({tuple(written(first, seed)) for seed in range(1, 6)}) > 1
    assert first.url["seed"] == "5"


@pytest.mark.parametrize(("setting", "value"), [("top_k", 1), ("top_p", 0.05)])
def test_sampling_among_the_likeliest_alone_is_greedy(stocked: Path, setting: str, value: float) -> None:
    greedy = Visitor(text="w4 w5 w6").tokens("target")
    visitor = Visitor(text="w4 w5 w6", decode="sample", seed="3")
    visitor.set(setting, value)
    assert visitor.tokens("target") == greedy


def test_beam_search_follows_as_many_beginnings_as_asked(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5 w6")
    visitor.choose("method", "beam")
    visitor.set("beam_size", 3)
    engine = LocalEngine(stocked, torch.device("cpu"))
    trace = engine.ask(Run(RunRequest("tiny", "w4 w5 w6", decoding=Decoding("beam", beam_size=3))))
    assert visitor.tokens("target") == list(trace.tokens["target"].texts)
    assert visitor.url["beam"] == "3"


def test_a_typed_target_is_fed_instead_of_decoding(stocked: Path) -> None:
    visitor = Visitor(text="w4 w5 w6")
    visitor.type("target", "w6 nowhere w9")
    assert visitor.tokens("target") == ["<sos>", "w6", "nowhere", "w9", "<eos>"]
    assert visitor.app.selectbox(key="widget:method").disabled
    assert "the model saw" in " ".join(caption.value for caption in visitor.app.caption)
    visitor.type("target", "")
    assert visitor.tokens("target") == Visitor(text="w4 w5 w6").tokens("target")


def test_another_model_starts_with_its_own_example(stocked: Path) -> None:
    save_language_model(stocked / "lm", VARIANTS["language model"])
    visitor = Visitor(model="tiny", text="w9", target="w4", site="encoder.0.1.self", head="1", query="2")
    visitor.choose("model", "lm")
    assert visitor.problems == []
    drawn = {"decode": "sample", "temperature": "0.8", "top_k": "20", "max": "16"}
    assert visitor.url == {"model": "lm", "text": "w4 w5 w6", **drawn}


def test_a_model_without_an_example_asks_for_a_sentence(shelf: Path) -> None:
    save_checkpoint(shelf / "tiny")
    described = native.read_info(shelf / "tiny")
    words = {
        strip: WordTokenizer("spacy-de", SPECIALS + tuple(f"w{i}" for i in range(4, size)))
        for strip, size in (("source", 11), ("target", 10))
    }
    weights = native.load(shelf / "tiny", torch.device("cpu")).network.state_dict()
    native.save(shelf / "tiny", replace(described, examples=()), weights, words)
    visitor = Visitor()
    assert visitor.problems == ["The source text is empty. Type at least one word."]
    visitor.type("text", "w4")
    assert visitor.drawn
    assert visitor.problems == []


@pytest.mark.parametrize("page", ["explore", "masks", "whatif"])
def test_a_link_whose_text_is_too_long_shows_the_first_example_below_the_message(stocked: Path, page: str) -> None:
    long = "w4 " * 300
    visitor = Visitor(page, text=long)
    assert len(visitor.problems) == 1
    assert "but the limit is" in visitor.problems[0]
    assert visitor.stale
    assert visitor.drawn
    assert "Shown instead: the first example of this model." in visitor.words
    assert visitor.url["text"] == long


def test_an_unforeseen_error_is_a_sentence_with_a_number_and_its_traceback_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> None:
        from viz.session.state import show_failure

        show_failure(RuntimeError("a secret of the server"))

    with caplog.at_level(logging.ERROR, "headlight"):
        app = AppTest.from_function(failing).run()
    said = [error.value for error in app.error]
    assert len(said) == 1
    incident = re.search(r"incident ([0-9a-f]{6})", said[0])
    assert incident
    assert "secret" not in said[0]
    record = next(record for record in caplog.records if incident[1] in record.getMessage())
    assert record.exc_info
    assert "a secret of the server" in str(record.exc_info[1])


def test_an_incident_is_logged_with_what_was_looked_at_and_not_with_what_was_typed(
    stocked: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from viz.session.state import show_failure

    def failing(page: object, scene: bytes) -> None:
        show_failure(KeyError("w5"))

    monkeypatch.setattr("viz.views.explore.page._strips", failing)
    for asked in ("", "texts"):
        monkeypatch.setenv("HEADLIGHT_LOG", asked)
        caplog.clear()
        visitor = Visitor(text="w4 w5", head="1")
        assert len(visitor.app.error) == 1
        (line,) = (log.JsonFormatter().format(record) for record in caplog.records if "incident" in str(record.msg))
        assert '"head": "1"' in line
        assert ("w4 w5" in line) == (asked == "texts")
