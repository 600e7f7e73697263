"""Files of this machine that are opened by their path: no copy of them is sent, and only their names are known to links."""

import os
from pathlib import Path

import pytest

from model.engine.api import Describe, Inspect, Models, Receive, Run
from model.engine.local import LocalEngine
from model.engine.sent_files import names_server_file
from model.errors import BadSetting, NotACheckpoint, Refused, UnknownModel
from model.requests.request import RunRequest
from tests.hosts import behind
from tests.networks import save_checkpoint
from tests.reference import GOLDEN, SETTINGS
from tests.runs import CPU

TOLD = tuple(SETTINGS["000_tiny_a"].items())
WORDS = "\n".join(["<unk>", "<pad>", "<sos>", "<eos>", *(f"wort{i}" for i in range(24))])


@pytest.fixture
def engine(tmp_path: Path) -> LocalEngine:
    (tmp_path / "shelf").mkdir()
    return LocalEngine(tmp_path / "shelf", CPU)


def put(path: Path, golden: str = "000_tiny_a.pt") -> Path:
    path.write_bytes((GOLDEN / golden).read_bytes())
    return path


def test_a_file_elsewhere_is_opened_by_its_path_and_runs(engine: LocalEngine, tmp_path: Path) -> None:
    name = engine.open_path(put(tmp_path / "mine.pt"))
    assert name == engine.open_path(tmp_path / "shelf" / ".." / "mine.pt")
    assert engine.ask(Models()).models == (), "it is known to those who opened it"
    assert str(engine.ask(Inspect(name, TOLD)).what).startswith("mine.pt: ")
    assert engine.ask(Describe(name)).title == "mine.pt"
    assert engine.ask(Run(RunRequest(name, (2, 5, 3), (2, 7), settings=TOLD))).attention
    with pytest.raises(UnknownModel):
        LocalEngine(tmp_path / "shelf", CPU).ask(Run(RunRequest(name, (2, 5, 3), settings=TOLD)))


def test_a_file_that_changes_after_it_was_opened_is_read_anew(engine: LocalEngine, tmp_path: Path) -> None:
    name = engine.open_path(put(tmp_path / "mine.pt"))
    before = engine.ask(Inspect(name))
    put(tmp_path / "mine.pt", "001_tiny_a.pt")
    os.utime(tmp_path / "mine.pt", (1, 1))
    assert engine.ask(Inspect(name)).layout != before.layout
    assert engine.open_path(tmp_path / "mine.pt") != name


def test_folders_of_both_kinds_are_opened_by_their_path(engine: LocalEngine, tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "ours")
    assert not engine.ask(Describe(engine.open_path(tmp_path / "ours"))).problem
    (tmp_path / "raw").mkdir()
    put(tmp_path / "raw" / "w.pt")
    name = engine.open_path(tmp_path / "raw")
    assert engine.ask(Describe(name)).problem["error"] == "OpenQuestions"
    assert not engine.ask(Describe(name, TOLD)).problem


@pytest.mark.parametrize("path", ["nowhere.pt", "nowhere.txt", "a\0b.pt", "a\0b.txt"])
def test_a_path_that_leads_nowhere_is_said_in_words(engine: LocalEngine, tmp_path: Path, path: str) -> None:
    with pytest.raises(NotACheckpoint, match=r"was not found\. Check the path"):
        engine.open_path(tmp_path / path)


def test_a_vocabulary_is_opened_by_its_path_for_a_file_of_the_servers_folder(engine: LocalEngine, tmp_path: Path) -> None:
    put(tmp_path / "shelf" / "mine.pt")
    (tmp_path / "words.txt").write_text(WORDS, encoding="utf-8")
    words = engine.open_path(tmp_path / "words.txt")
    assert not names_server_file("source_vocab", words), "links may name it"
    told = (*TOLD, ("source_vocab", words))
    trace = engine.ask(Run(RunRequest("mine.pt", "wort3 wort5", (2, 3), settings=told)))
    assert trace.tokens["source"].texts == ("<sos>", "wort3", "wort5", "<eos>")
    assert not engine.ask(Describe("mine.pt", told)).problem


def test_a_vocabulary_that_went_is_asked_for_and_taken_when_it_comes_back(tmp_path: Path) -> None:
    put(tmp_path / "mine.pt")
    told = (*TOLD, ("source_vocab", LocalEngine(tmp_path, CPU).ask(Receive(WORDS.encode(), "words.txt"))))
    engine = LocalEngine(tmp_path, CPU)
    with pytest.raises(BadSetting, match="send it once more"):
        engine.ask(Inspect("mine.pt", told))
    assert engine.ask(Describe("mine.pt", told)).problem
    engine.ask(Receive(WORDS.encode(), "words.txt"))
    assert not engine.ask(Describe("mine.pt", told)).problem


def test_a_host_that_forgot_a_vocabulary_gets_it_again(tmp_path: Path) -> None:
    put(tmp_path / "mine.pt")
    engine = behind(LocalEngine(tmp_path, CPU))
    told = (*TOLD, ("source_vocab", engine.ask(Receive(WORDS.encode(), "words.txt"))))
    engine._client = behind(LocalEngine(tmp_path, CPU))._client  # the host was started again
    assert engine.ask(Inspect("mine.pt", told)).layout == "tutorial"


def test_no_path_is_asked_of_a_host_elsewhere(tmp_path: Path) -> None:
    engine = behind(LocalEngine(tmp_path, CPU))
    with pytest.raises(Refused):
        engine.open_path(put(tmp_path / "mine.pt"))
