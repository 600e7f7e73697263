"""Files that people sent, where several processes serve them; and weights whose vocabulary comes late."""

import hashlib
import io
import json
import pickle
from pathlib import Path

import pytest
import torch

from model.engine.api import Describe, Receive, Run
from model.engine.local import LocalEngine
from model.engine.sent_files import names_server_file
from model.engine.shared_uploads import UploadedFiles
from model.engine.uploads import MOST_WORDS, Uploads
from model.errors import BadSetting, NotACheckpoint, from_json
from model.requests.request import RunRequest, Settings
from model.tokenizers.subwords.tokenizer import Subwords
from tests.hosts import behind
from tests.networks import save_checkpoint
from tests.reference import SETTINGS
from tests.runs import CPU
from tests.vocabulary_files import byte_pairs, sentence_pieces, write

WEIGHTS = (Path(__file__).parents[2] / "golden" / "000_tiny_a.pt").read_bytes()
WORDS = "\n".join(["<unk>", "<pad>", "<sos>", "<eos>", *(f"wort{i}" for i in range(24))]).encode()
TOLD: Settings = (*SETTINGS["000_tiny_a"].items(), ("source_vocab", f"words-{hashlib.sha256(WORDS).hexdigest()[:16]}"))


def test_what_one_process_was_sent_another_finds(tmp_path: Path) -> None:
    files = UploadedFiles()
    one, another, alone = Uploads(peers=files), Uploads(peers=files), Uploads()
    save_checkpoint(tmp_path / "tiny")
    data = (tmp_path / "tiny" / "model.safetensors").read_bytes()
    name, words = one.keep(data, "mine.safetensors"), one.keep(b"hallo\nwelt\n", "words.txt")
    found, vocabulary = another.get(name), another.words(words)
    assert found is not None
    assert (found.name, found.size) == ("mine.safetensors", len(data))
    assert vocabulary is not None
    assert (vocabulary.name, vocabulary.content) == ("words.txt", b"hallo\nwelt\n")
    assert alone.get(name) is None
    assert alone.words(words) is None
    assert another.get("upload-0000000000000000") is None
    assert another.words("words-0000000000000000") is None


def test_what_is_kept_for_all_is_bounded_in_bytes_and_in_number() -> None:
    files = UploadedFiles(most_bytes=10, most_files=2)
    for name in ("a", "b", "c"):
        files.put(name, b"123", name)
    assert [name for name in ("a", "b", "c") if files.get(name)] == ["b", "c"]
    assert files.get("b") == (b"123", "b")
    files.put("d", b"1234567", "d")
    assert [name for name in ("b", "c", "d") if files.get(name)] == ["b", "d"]
    files.put("e", b"12345678901", "e")
    assert [name for name in ("b", "c", "d", "e") if files.get(name)] == ["e"]


def test_weights_whose_vocabulary_comes_later_can_be_used_then(tmp_path: Path) -> None:
    engine = LocalEngine(tmp_path, CPU)
    name = engine.ask(Receive(WEIGHTS, "mine.pt"))
    assert engine.ask(Describe(name, TOLD)).problem["error"] == "BadSetting"
    assert engine.ask(Receive(WORDS, "words.txt")) == TOLD[-1][1]
    assert engine.ask(Describe(name, TOLD)).problem == {}


def test_a_host_that_forgot_everything_gets_the_weights_and_their_vocabulary_again(tmp_path: Path) -> None:
    engine = behind(LocalEngine(tmp_path, CPU))
    name, words = engine.ask(Receive(WEIGHTS, "mine.pt")), engine.ask(Receive(WORDS, "words.txt"))
    assert words == TOLD[-1][1]
    engine._client = behind(LocalEngine(tmp_path, CPU))._client  # the host was started again
    trace = engine.ask(Run(RunRequest(name, "wort3 wort5", target=(2, 3), settings=TOLD)))
    assert trace.tokens["source"].texts == ("<sos>", "wort3", "wort5", "<eos>")


def test_a_sentencepiece_model_that_was_sent_is_a_vocabulary_and_no_weights() -> None:
    uploads = Uploads()
    for name in ("a.model", "a.spm"):
        sent_name = uploads.keep(sentence_pieces(), name)
        assert sent_name.startswith("words-")
        assert isinstance(uploads.texts_of("source_vocab", sent_name), Subwords)


def pair_engine(tmp_path: Path) -> tuple[LocalEngine, str, str, str, tuple[tuple[str, str], ...]]:
    """An engine that was sent weights with as many ids as a pair of byte pairs has, and the names of all three."""
    engine, pair = LocalEngine(tmp_path, CPU), byte_pairs()
    size = len(json.loads(pair["vocab.json"]))
    weights = engine.ask(Receive(resized("000_tiny_a", size), "mine.pt"))
    told = tuple((name, value) for name, value in SETTINGS["000_tiny_a"].items())
    return (
        engine,
        weights,
        engine.ask(Receive(pair["vocab.json"], "vocab.json")),
        engine.ask(Receive(pair["merges.txt"], "merges.txt")),
        told,
    )


def resized(name: str, size: int) -> bytes:
    """A golden file whose source has `size` ids."""
    table = torch.load(io.BytesIO((Path(__file__).parents[2] / "golden" / f"{name}.pt").read_bytes()))
    rows = table["encoder.tok_embedding.weight"]
    table["encoder.tok_embedding.weight"] = rows[torch.arange(size) % len(rows)].clone()
    file = io.BytesIO()
    torch.save(table, file)
    return file.getvalue()


def test_a_vocabulary_and_its_merges_are_sent_as_a_pair(tmp_path: Path) -> None:
    engine, weights, vocabulary, merges, told = pair_engine(tmp_path)
    settings = (*told, ("source_vocab", f"{vocabulary},{merges}"))
    assert engine.ask(Describe(weights, settings)).problem == {}
    trace = engine.ask(Run(RunRequest(weights, "the dogs", target=(2, 5), settings=settings)))
    assert "".join(trace.tokens["source"].texts[1:-1]) == "the dogs"
    for alone, other in ((vocabulary, "merges.txt"), (merges, "vocab.json")):
        problem = from_json(engine.ask(Describe(weights, (*told, ("source_vocab", alone)))).problem)
        assert isinstance(problem, BadSetting)
        assert f"together with its {other}" in str(problem)
    for wrong in (f"{vocabulary},{merges},{merges}", f"{vocabulary},words-0000000000000000", f"{vocabulary},/etc/hosts", ","):
        assert engine.ask(Describe(weights, (*told, ("source_vocab", wrong)))).problem["error"] == "BadSetting"


def test_a_pair_of_this_machine_is_opened_by_the_path_of_its_vocabulary(tmp_path: Path) -> None:
    engine, *_ = pair_engine(tmp_path / "none")
    folder = write(tmp_path / "pair", byte_pairs())
    name = engine.open_path(folder / "vocab.json")
    assert name.count("words-") == 2
    assert not names_server_file("source_vocab", name)
    assert names_server_file("source_vocab", f"{name.split(',')[0]},/etc/passwd")
    assert names_server_file("source_vocab", f"{name},words-x")


def test_a_pickled_vocabulary_with_the_ending_of_weights_is_a_vocabulary() -> None:
    store, words = Uploads(), ["<unk>", "hund"]
    key = store.keep(pickle.dumps(words), "vocab.pt")
    assert key.startswith("words-")
    assert store.texts_of_sent("source_vocab", key) == tuple(words)
    assert store.get(key) is None
    with pytest.raises(NotACheckpoint):
        store.keep(pickle.dumps(5), "x.pt")
    with pytest.raises(NotACheckpoint):
        store.keep(pickle.dumps(["w"] * MOST_WORDS), "x.pkl")


def test_a_pair_that_a_host_has_lost_is_sent_again(tmp_path: Path) -> None:
    settings = tuple(SETTINGS["000_tiny_a"].items())
    pair = byte_pairs()
    remote = behind(LocalEngine(tmp_path, CPU))
    weights = remote.ask(Receive(resized("000_tiny_a", len(json.loads(pair["vocab.json"]))), "mine.pt"))
    names = ",".join(remote.ask(Receive(content, name)) for name, content in pair.items())
    remote._client = behind(LocalEngine(tmp_path, CPU))._client  # the host was started again
    trace = remote.ask(Run(RunRequest(weights, "the dogs", target=(2, 5), settings=(*settings, ("source_vocab", names)))))
    assert "".join(trace.tokens["source"].texts[1:-1]) == "the dogs"
