"""Language models, encoders alone and parts of networks as visitors meet them: every page works with them, or says why not."""

import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from streamlit.testing.v1 import AppTest

from model.checkpoints import native
from model.engine.api import Run
from model.engine.local import LocalEngine
from model.requests.network import ModelSpec
from model.requests.request import Decoding, RunRequest
from model.tokenizers.words import SPECIALS, WordTokenizer
from tests.app.visiting import PAGES, Visitor
from tests.networks import VARIANTS, network
from tests.reference import GOLDEN, SETTINGS
from tests.runs import SPECS

WORDS = tuple("the game was in a city of film 我 们 你 好".split())
PARTS = ("002_tiny_encoder", "002_tiny_mha", "002_tiny_decoder_layer")


def save(folder: Path, spec: ModelSpec) -> None:
    """Writes a network of one strip with random weights and words of its own."""
    size = spec.writer.vocab - len(SPECIALS)
    words = (*WORDS, *(f"w{i}" for i in range(size)))[:size]
    info = native.Info(folder.name, "One strip", "Random weights.", {"source": "English"}, ("the game",), {}, spec)
    tokenizer = WordTokenizer("basic-english", SPECIALS + words, framed=False)
    native.save(folder, info, network(spec).state_dict(), {"source": tokenizer})


@pytest.fixture
def lm(shelf: Path) -> Path:
    save(shelf / "lm", VARIANTS["language model"])
    return shelf


def words_of(visitor: Visitor) -> list[str]:
    return visitor.tokens("source")


def said(visitor: Visitor) -> str:
    app = visitor.app
    texts = [element.value for group in (app.caption, app.info, app.markdown) for element in group]
    return "\n".join(texts).replace("\\", "")


def test_a_prompt_grows_token_by_token(lm: Path) -> None:
    visitor = Visitor(max="0")
    assert words_of(visitor) == ["the", "game"]
    (strip,) = visitor.scene("strips")["strips"]
    assert strip["title"] == "Source (English)", "it was read and not gone on from"
    grown = [words_of(visitor)]
    for count in (1, 2, 3):
        visitor.set("max_length", count)
        grown.append(words_of(visitor))
        assert visitor.url["max"] == str(count)
    assert [len(words) for words in grown] == [2, 3, 4, 5]
    assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(grown))
    (strip,) = visitor.scene("strips")["strips"]
    assert strip["title"] == "English: prompt and continuation"
    written = [token for token in strip["tokens"] if "probability" in token]
    assert len(written) == 3
    assert all(len(token["candidates"]) == 8 for token in written)
    trace = LocalEngine(lm, torch.device("cpu")).ask(Run(RunRequest("lm", "the game", decoding=Decoding(max_length=3))))
    assert grown[-1] == list(trace.tokens["source"].texts)


def test_sampling_from_a_language_model_has_its_controls(lm: Path) -> None:
    visitor = Visitor(max="5")
    visitor.choose("method", "sample")
    for field, value in (("temperature", 2.0), ("top_k", 7), ("top_p", 0.8), ("seed", 11)):
        visitor.set(field, value)
    decoding = Decoding("sample", max_length=5, temperature=2.0, top_k=7, top_p=0.8, seed=11)
    trace = LocalEngine(lm, torch.device("cpu")).ask(Run(RunRequest("lm", "the game", decoding=decoding)))
    assert words_of(visitor) == list(trace.tokens["source"].texts)
    assert visitor.problems == []


def test_a_language_model_opens_drawing_its_words_and_a_link_keeps_what_it_says(lm: Path) -> None:
    opened = Visitor(model="lm")
    assert {name: opened.url[name] for name in ("decode", "temperature", "top_k")} == {
        "decode": "sample",
        "temperature": "0.8",
        "top_k": "20",
    }
    assert "decode" not in Visitor(model="lm", text="the game").url
    assert Visitor(model="lm", decode="beam").url["decode"] == "beam"


def test_the_masks_of_a_language_model_ask_for_no_slider_that_is_not_there(lm: Path) -> None:
    visitor = Visitor("masks")
    assert "Move the slider" not in said(visitor)
    assert said(visitor).count("the prompt is not padded here") == 1


def test_both_clocks_walk_through_a_language_model(lm: Path) -> None:
    visitor = Visitor("step", max="4", step="2")
    scene = visitor.scene("player")
    assert scene["decodes"]
    assert [strip["name"] for strip in scene["strips"]] == ["source"]
    visitor = Visitor("step", clock="computation", max="4", stage="decoder.0.1.self/weights", head="1", query="3", key="2")
    assert visitor.problems == []
    assert visitor.scene("cells")["opened"] == [3, 2]


def test_two_settings_of_a_language_model_are_compared_up_to_where_they_part(lm: Path) -> None:
    visitor = Visitor("compare", max="6", against="decode=sample&temperature=5.0&seed=3")
    engine, requests = (
        LocalEngine(lm, torch.device("cpu")),
        [Decoding(max_length=6), Decoding("sample", max_length=6, temperature=5.0, seed=3)],
    )
    first, second = (engine.ask(Run(RunRequest("lm", "the game", decoding=one))).tokens["source"].texts for one in requests)
    apart = next(i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1])
    assert 2 <= apart < 8
    headers = [d.proto for d in visitor.app.get("bidi_component") if d.proto.component_name == "headlight.atlas"]
    assert len(headers) == 2, "one of each side; what did not change is said, not drawn"
    assert f"only the first {apart} of" in said(visitor)
    assert "no map changed" in said(visitor)


@pytest.mark.parametrize("name", [*PARTS, "encoder"])
def test_what_writes_nothing_is_drawn_on_every_page_or_the_page_says_why_not(shelf: Path, name: str) -> None:
    link = {"model": name}
    if name == "encoder":
        save(shelf / "encoder", replace(SPECS["encoder alone"], start_id=None))
    else:
        shutil.copy(GOLDEN / f"{name}.pt", shelf / f"{name}.pt")
        link = {"model": f"{name}.pt", "set": " ".join(f"{k}={v}" for k, v in SETTINGS[name].items())}
    for page in PAGES:
        visitor = Visitor(page, **link)
        assert visitor.problems == [], page
        assert visitor.drawn or (page == "positions" and "there is nothing to draw" in said(visitor)), page
        if page != "checkpoint":
            assert "it reads but does not generate" in said(visitor), page
            assert not [box for box in visitor.app.selectbox if box.key == "widget:method"], page
    assert "This run generated nothing" in said(Visitor("step", **link))
    text = "5 1" if name != "encoder" else "the film"
    compared = Visitor("compare", **link, against=f"text={text}")
    assert compared.problems == []
    assert "Log-probability" not in said(compared)


def test_the_target_of_a_decoder_layer_is_drawn_like_its_source_until_it_is_told(shelf: Path) -> None:
    shutil.copy(GOLDEN / "002_tiny_decoder_layer.pt", shelf / "layer.pt")
    visitor = Visitor(model="layer.pt", set="head_dim=5")
    assert visitor.url["target"] == visitor.view.text == "6 0"
    visitor.type("target", "4 1")
    assert (len(visitor.tokens("source")), len(visitor.tokens("target"))) == (6, 4)


def test_a_model_without_a_padding_token_says_so_instead_of_failing(shelf: Path) -> None:
    save(shelf / "encoder", replace(SPECS["encoder alone"], pad_id=None))
    visitor = Visitor("masks")
    assert "This model has no padding token (or it was not specified)" in said(visitor)
    assert not visitor.app.slider


def test_files_that_wait_for_answers_do_not_cry_on_every_page(stocked: Path) -> None:
    for name in PARTS:
        shutil.copy(GOLDEN / f"{name}.pt", stocked / f"{name}.pt")
    visitor = Visitor(model="tiny")
    assert visitor.problems == []
    assert (
        f"Not ready, answer the questions about them on the Checkpoint page: {', '.join(f'{name}.pt' for name in sorted(PARTS))}."
        in said(visitor)
    )
    asked = Visitor(model=f"{PARTS[0]}.pt")
    assert asked.problems == []
    assert PARTS[0] in said(asked), "its questions stand on the page"
    assert not asked.drawn


def test_the_sidebar_tells_models_that_ask_from_damaged_ones_and_from_those_still_being_opened() -> None:
    def listed() -> None:
        from model.engine.api import ModelInfo
        from viz.widgets import sidebar

        told = {"asks": "OpenQuestions", "broken": "DamagedFile", "slow": "StillOpening", "lost": "MissingFile"}
        sidebar.waiting([ModelInfo(name, name, "", {}, (), 0, {}, 0, 0, problem={"error": error}) for name, error in told.items()])

    captions = [caption.value.replace("\\", "") for caption in AppTest.from_function(listed).run().sidebar.caption]
    assert captions == [
        "Not ready, answer the questions about them on the Checkpoint page: asks.",
        "Cannot be used; the Checkpoint page says why: broken, lost.",
        "Still being opened: slow. Reload the page in a minute.",
    ]
