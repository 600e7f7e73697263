"""From a file to a picture: by its path or sent, vocabularies several at once, in four actions; and what is refused, in words."""

import os
import pickle
from pathlib import Path

import pytest
import streamlit as st
import torch

from model.engine.sent_files import vocabulary_name
from tests.app.conftest import shelf, stocked, tiny  # noqa: F401  # fixtures of the whole app
from tests.app.visiting import Visitor
from tests.viz.test_views_checkpoint import ENGLISH, GERMAN, GOLDEN, PDF, TOLD, answer, said, sent
from viz.session import access
from viz.views.checkpoint import uploads, vocabulary

HEADS = {name: TOLD[name] for name in ("decoder_heads", "decoder_passes", "encoder_heads")}


@pytest.fixture
def owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "is_owner", lambda: True)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A tutorial's checkpoint and its two vocabularies."""
    (tmp_path / "tut6-model.pt").write_bytes((GOLDEN / "000_tiny_a.pt").read_bytes())
    (tmp_path / "src.txt").write_text("\n".join(GERMAN), encoding="utf-8")
    (tmp_path / "trg.txt").write_text("\n".join(ENGLISH), encoding="utf-8")
    return tmp_path


def open_path(visitor: Visitor, path: object, key: str = "widget:path") -> None:
    visitor.app.text_input(key=key).set_value(str(path))
    visitor._run()


def send(visitor: Visitor, prefix: str, *paths: Path) -> None:
    """Drops files on one of the two uploaders, together."""
    uploader = next(each for each in visitor.app.file_uploader if (each.key or "").startswith(prefix))
    uploader.set_value([(path.name, path.read_bytes(), "") for path in paths])
    visitor._run()


def take_and_open(visitor: Visitor, **answers: str) -> None:
    """Fills the form and presses its first button."""
    fields = [*visitor.app.selectbox, *visitor.app.text_input]
    for name, value in answers.items():
        next(field for field in fields if (field.key or "").endswith(f":{name}")).set_value(value)
    visitor.press(
        next(button.key or "" for button in visitor.app.button if button.label == "Apply these answers and open in Explore")
    )


@pytest.mark.parametrize("way", ["path", "sent"])
def test_from_file_to_picture_in_four_actions(stocked: Path, files: Path, owner: None, way: str) -> None:  # noqa: F811
    visitor, actions = Visitor("checkpoint"), 0

    if way == "path":
        open_path(visitor, f'"{files / "tut6-model.pt"}"')
    else:
        send(visitor, "widget:upload", files / "tut6-model.pt")
    actions += 1
    assert "tut6-model.pt: Translator of the sequence-to-sequence tutorial" in said(visitor)

    send(visitor, "widget:words", files / "src.txt", files / "trg.txt")
    actions += 1
    assert visitor.problems == []

    take_and_open(visitor, **HEADS)
    actions += 1
    assert [key for key in visitor.app.session_state if key == "widget:text"], "Explore is open"

    visitor.go("explore")
    visitor.type("text", "ein mann läuft .")
    actions += 1
    assert visitor.problems == []
    assert visitor.drawn
    assert visitor.tokens("source") == ["<sos>", "ein", "mann", "läuft", ".", "<eos>"]
    assert actions <= 4


def test_weights_and_vocabularies_come_in_one_drop(stocked: Path, files: Path) -> None:  # noqa: F811
    visitor = Visitor("checkpoint")
    send(visitor, "widget:upload", files / "trg.txt", files / "tut6-model.pt", files / "src.txt")
    assert [name for name, _ in visitor.view.parsed_settings()] == ["source_vocab", "target_vocab"]
    assert visitor.view.model.startswith("upload-")


def test_a_vocabulary_is_given_to_a_file_of_the_servers_folder(stocked: Path, files: Path, owner: None) -> None:  # noqa: F811
    (stocked / "mine.pt").write_bytes((files / "tut6-model.pt").read_bytes())
    visitor = Visitor("checkpoint", model="mine.pt")
    open_path(visitor, files / "src.txt", "widget:words-path")
    assert dict(visitor.view.parsed_settings()) == {"source_vocab": vocabulary_name((files / "src.txt").read_bytes())}
    open_path(visitor, files / "nowhere.txt", "widget:words-path")
    assert "nowhere.txt was not found. Check the path." in visitor.problems[0]
    open_path(visitor, files / "tut6-model.pt", "widget:words-path")
    assert "tut6-model.pt is not a vocabulary file" in visitor.problems[0]


def test_only_names_that_tell_the_place_give_a_vocabulary_its_place() -> None:
    asked = ["source_vocab", "target_vocab"]
    assert vocabulary.places_of({"a": "src.txt", "b": "vocab_tgt.json"}, asked) == {"source_vocab": "a", "target_vocab": "b"}
    assert vocabulary.places_of({"a": "vocab.de.txt", "b": "vocab.en.txt"}, asked) == {}, "either may be read or written"
    assert vocabulary.places_of({"a": "src.txt", "b": "src.json"}, asked) == {}, "two for one place"
    assert vocabulary.places_of({"a": "src-trg.txt"}, asked) == {}
    assert vocabulary.places_of({"a": "words.txt"}, ["source_vocab"]) == {"source_vocab": "a"}
    assert vocabulary.places_of({"a": "src.txt"}, []) == {}


def test_a_vocabulary_and_its_merges_are_one() -> None:
    pair = {"words-a,words-b": "vocab.json + merges.txt"}
    assert vocabulary.in_pairs({"words-a": "vocab.json", "words-b": "merges.txt"}) == pair
    assert vocabulary.in_pairs({"words-b": "merges.txt", "words-a": "vocab.json"}) == pair
    both = {"words-a": "src-vocab.json", "words-b": "src-merges.txt", "words-c": "trg-vocab.json", "words-d": "trg-merges.txt"}
    assert list(vocabulary.in_pairs(both)) == ["words-a,words-b", "words-c,words-d"]
    apart = {"words-a": "src-vocab.json", "words-b": "trg-merges.txt", "words-c": "vocab.json"}
    assert vocabulary.in_pairs(apart) == apart
    asked = ["source_vocab", "target_vocab"]
    places = vocabulary.places_of(vocabulary.in_pairs(both), asked)
    assert places == {"source_vocab": "words-a,words-b", "target_vocab": "words-c,words-d"}


def test_a_pickled_vocabulary_may_have_the_ending_of_weights(stocked: Path, files: Path) -> None:  # noqa: F811
    for name in ("src", "trg"):
        texts = (files / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        (files / f"{name}.pt").write_bytes(pickle.dumps(texts))
    visitor = Visitor("checkpoint")
    send(visitor, "widget:upload", files / "tut6-model.pt", files / "src.pt")
    assert visitor.view.model.startswith("upload-")
    send(visitor, "widget:words", files / "trg.pt")
    assert visitor.problems == []
    assert [name for name, _ in visitor.view.parsed_settings()] == ["source_vocab", "target_vocab"]
    send(visitor, "widget:words", files / "tut6-model.pt")
    assert "No vocabulary was found in tut6-model.pt." in visitor.problems


def test_what_was_refused_stands_alone_and_no_other_model_in_its_place(stocked: Path) -> None:  # noqa: F811
    visitor = Visitor("checkpoint", model="tiny")
    assert visitor.app.metric, "the model that was shown before"
    visitor.app.file_uploader[0].upload("paper.pt", PDF)
    visitor._run()
    assert "paper.pt holds no weights that can be read here. It is: a PDF document." in visitor.problems[0]
    assert not visitor.app.metric
    assert [button.key for button in visitor.app.button] == ["open:tiny", "big-button"], "a list, and nothing about a model"
    visitor.press("open:tiny")
    assert visitor.problems == []
    assert visitor.app.metric


@pytest.mark.parametrize(("home", "way"), [(True, "Type its path into the field above"), (False, "python -m model view FILE")])
def test_a_file_that_the_browser_refuses_is_said_with_the_way_on(
    stocked: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    home: bool,
    way: str,
) -> None:
    told = []
    monkeypatch.setattr(access, "is_owner", lambda: home)
    monkeypatch.setattr(uploads, "watch", lambda *arguments: told.append(arguments))
    visitor = Visitor("checkpoint")
    card, most, refuse = told[-1]
    assert (card, most) == ("choose", 128)
    monkeypatch.setattr(st, "session_state", visitor.app.session_state)
    refuse("tut6-model.pt", 136.4)
    monkeypatch.undo()
    visitor._run()
    assert "tut6-model.pt is 136 MB, but" in visitor.problems[0]
    assert way in visitor.problems[0]
    assert not visitor.app.metric


@pytest.mark.parametrize("path", ["nowhere.pt", "~nobody-of-this-name/x.pt"])
def test_a_path_that_leads_nowhere_is_one_sentence(stocked: Path, owner: None, path: str) -> None:  # noqa: F811
    visitor = Visitor("checkpoint")
    open_path(visitor, path)
    assert len(visitor.problems) == 1
    assert not visitor.app.metric


def test_what_is_still_asked_stands_on_explore(stocked: Path) -> None:  # noqa: F811
    visitor = sent("mine.pt", (GOLDEN / "000_tiny_a.pt").read_bytes())
    visitor.go("explore")
    assert visitor.problems == [], "no other model is shown in its place"
    assert not visitor.drawn
    assert visitor.app.selectbox(key="widget:model").value == visitor.view.model
    answer(visitor, **TOLD)
    assert "The start token for decoding is unknown" in visitor.problems[0]
    answer(visitor, bos_id="2", eos_id="3")
    assert visitor.problems == []
    assert visitor.drawn


def test_a_file_of_the_folder_that_asks_is_asked_on_explore_and_is_left_by_the_list(stocked: Path) -> None:  # noqa: F811
    torch.save(torch.load(GOLDEN / "001_tiny_a.pt", weights_only=True), stocked / "lm.pt")
    visitor = Visitor(model="lm.pt")
    assert not visitor.drawn
    assert "lm.pt" in said(visitor)
    visitor.choose("model", "tiny")
    assert visitor.drawn
    assert visitor.problems == []


@pytest.mark.parametrize(
    ("address", "visitor", "headers", "public_", "expected"),
    [
        ("127.0.0.1", None, {"host": "127.0.0.1:8501"}, "", True),
        ("localhost", None, {"host": "localhost:8501"}, "", True),
        ("127.0.0.1", None, {"host": "[::1]:8501"}, "", True),
        ("0.0.0.0", None, {"host": "127.0.0.1:8501"}, "", False),
        ("", None, {"host": "127.0.0.1:8501"}, "", False),
        ("127.0.0.1", "10.0.0.7", {"host": "127.0.0.1:8501"}, "", False),
        ("127.0.0.1", None, {"host": "example.org"}, "", False),
        ("127.0.0.1", None, {}, "", False),
        ("127.0.0.1", None, {"host": "["}, "", False),
        ("127.0.0.1", None, {"host": "localhost:x"}, "", False),
        ("127.0.0.1", None, {"host": "127.0.0.1", "x-forwarded-for": "127.0.0.1"}, "", False),
        ("127.0.0.1", None, {"host": "127.0.0.1", "via": "1.1 proxy"}, "", False),
        ("127.0.0.1", None, {"host": "127.0.0.1:8501"}, "1", False),
    ],
)
def test_paths_are_for_the_owner_of_the_machine_alone(
    monkeypatch: pytest.MonkeyPatch, address: str, visitor: str | None, headers: dict[str, str], public_: str, expected: bool
) -> None:
    class Context:
        ip_address = visitor

    Context.headers = headers  # type: ignore[attr-defined]
    monkeypatch.setenv("HEADLIGHT_PUBLIC", public_)
    monkeypatch.setattr(st, "context", Context)
    monkeypatch.setattr(st, "get_option", lambda name: {"server.address": address}[name])
    assert access.is_owner() is expected
    for setting in ("", "off", "cache", "ask"):
        monkeypatch.setenv("HEADLIGHT_HUB", setting)
        allowed = setting or ("ask" if expected else "off")
        assert access.hub_mode() == allowed
        assert access.opens_models() is (public_ != "1" or allowed != "off")


@pytest.mark.parametrize(
    ("address", "setting", "allowed"),
    [("127.0.0.1", "", ""), ("0.0.0.0", "", "off"), ("", "", "off"), ("0.0.0.0", "cache", "cache"), ("127.0.0.1", "off", "off")],
)
def test_where_others_reach_the_server_names_of_the_hub_mean_nothing_unless_its_owner_says_so(
    monkeypatch: pytest.MonkeyPatch, address: str, setting: str, allowed: str
) -> None:
    monkeypatch.setenv("HEADLIGHT_HUB", setting)
    monkeypatch.setattr(st, "get_option", lambda name: {"server.address": address}[name])
    access.keep_the_hub_to_its_owner()
    assert os.environ["HEADLIGHT_HUB"] == allowed


def test_a_stranger_sees_no_field_for_paths(stocked: Path) -> None:  # noqa: F811
    visitor = Visitor("checkpoint")
    assert visitor.app.file_uploader
    assert not [field for field in visitor.app.text_input if (field.key or "") == "widget:path"]


def test_the_field_of_the_path_names_the_file_that_the_message_is_about(stocked: Path, files: Path, owner: None) -> None:  # noqa: F811
    """The field kept one name while the message was about another file."""
    visitor, broken = Visitor("checkpoint"), files / "broken.pt"
    broken.write_bytes(b"no weights")
    open_path(visitor, files / "absent.pt")
    assert "absent.pt" in visitor.problems[0]
    assert visitor.app.text_input(key="widget:path").value == str(files / "absent.pt"), "it can be corrected"
    send(visitor, "widget:upload", broken)
    assert "absent.pt" not in " ".join(visitor.problems)
    assert visitor.problems
    assert visitor.app.text_input(key="widget:path").value == ""
