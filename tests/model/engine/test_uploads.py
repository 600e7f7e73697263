"""Files that people sent, where several processes serve them; and weights whose vocabulary comes late."""

import hashlib
from pathlib import Path

import httpx

from model.engine.http.access import AccessLimits
from model.engine.http.client import RemoteEngine
from model.engine.http.server import application
from model.engine.local import LocalEngine
from model.engine.shared_uploads import UploadedFiles
from model.engine.uploads import Uploads
from model.spec.request import RunRequest, Settings
from model.tokenizers.subwords.tokenizer import Subwords
from tests.hosts import Loopback
from tests.networks import save_checkpoint
from tests.reference import SETTINGS
from tests.runs import CPU
from tests.vocabulary_files import sentence_pieces

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
    name = engine.receive(WEIGHTS, "mine.pt")
    assert engine.describe(name, TOLD).problem["error"] == "BadSetting"
    assert engine.receive(WORDS, "words.txt") == TOLD[-1][1]
    assert engine.describe(name, TOLD).problem == {}


def test_a_host_that_forgot_everything_gets_the_weights_and_their_vocabulary_again(tmp_path: Path) -> None:
    class Hosts(httpx.BaseTransport):
        now = Loopback(application(LocalEngine(tmp_path, CPU), AccessLimits()))

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            return self.now.handle_request(request)

    hosts = Hosts()
    engine = RemoteEngine("http://here", transport=hosts)
    name, words = engine.receive(WEIGHTS, "mine.pt"), engine.receive(WORDS, "words.txt")
    assert words == TOLD[-1][1]
    hosts.now = Loopback(application(LocalEngine(tmp_path, CPU), AccessLimits()))
    trace = engine.run(RunRequest(name, "wort3 wort5", target=(2, 3), settings=TOLD))
    assert trace.tokens["source"].texts == ("<sos>", "wort3", "wort5", "<eos>")


def test_a_sentencepiece_model_that_was_sent_is_a_vocabulary_and_no_weights() -> None:
    uploads = Uploads()
    for name in ("a.model", "a.spm"):
        sent_name = uploads.keep(sentence_pieces(), name)
        assert sent_name.startswith("words-")
        assert isinstance(uploads.texts_of("source_vocab", sent_name), Subwords)
