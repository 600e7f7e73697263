"""Folders without tokenizer.json: texts are cut by their vocabulary files as the transformers library cuts them."""

import json
from pathlib import Path

import pytest
import torch
import transformers
from sentencepiece import SentencePieceProcessor

from model.checkpoints import loader
from model.errors import BadSetting, DamagedFile, NoTokenizer
from model.huggingface import tokenizer
from model.huggingface.folder import VOCABULARY_FILES, Folder, open_folder
from model.inference.run import run
from model.requests.request import RunRequest
from model.tokenizers.subwords.process import TokenizerProcess
from tests import folders
from tests.vocabulary_files import WORD_PIECES, byte_pairs, marian, sentence_pieces, write

CPU = torch.device("cpu")
TEXTS = ("the dogs play", "Two DOGS run, é 二 🐕!", "  in  the snow\nHello", "</s> <s> [SEP] <|endoftext|>", "a\ud7ffb")

M2M = {text: id_ for id_, text in enumerate(["<s>", "<pad>", "</s>", "<unk>", "▁", "▁the", "▁dogs", "s", "▁play", "▁a"])}
KINDS: dict[str, dict[str, bytes]] = {
    "bert": {"vocab.txt": ("\n".join(WORD_PIECES) + "\n").encode()},
    "electra": {
        "vocab.txt": ("\n".join(WORD_PIECES) + "\n").encode(),
        "tokenizer_config.json": b'{"do_lower_case": false, "tokenizer_class": "ElectraTokenizer"}',
    },
    "gpt2": byte_pairs(),
    "llama": {"tokenizer.model": sentence_pieces(320, "bpe")},
    "t5": {"spiece.model": sentence_pieces(pad=0, end=1, unknown=2, start=-1), "tokenizer_config.json": b'{"extra_ids": 5}'},
    "marian": marian(),
    "m2m_100": {"sentencepiece.bpe.model": sentence_pieces(), "vocab.json": json.dumps(M2M).encode()},
}


def folder_of(path: Path, family: str, files: dict[str, bytes]) -> Folder:
    write(path, {**files, "config.json": json.dumps({"model_type": family}).encode()})
    return open_folder(path)


def opened(folder: Folder) -> TokenizerProcess:
    rules = tokenizer.slow_rules_of(folder)
    assert rules is not None
    return TokenizerProcess(folder.path, rules, 1 << 20)


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Folder, TokenizerProcess]:
    """A family, its folder, and the tokenizer in it: importing the library takes each process a second."""
    folder = folder_of(tmp_path_factory.mktemp("kind") / request.param, request.param, KINDS[request.param])
    return request.param, folder, opened(folder)


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_a_text_is_cut_as_the_library_cuts_it(kind: tuple[str, Folder, TokenizerProcess]) -> None:
    family, folder, found = kind
    named = tokenizer.SLOW_TOKENIZERS[family].classes[1 if family == "electra" else 0]
    theirs = getattr(transformers, named).from_pretrained(folder.path, local_files_only=True)
    assert found.unknown == (None if family in ("gpt2", "llama") else theirs.unk_token_id)
    assert found.special >= set(theirs.all_special_ids)
    for text in TEXTS:
        source, target = found.encode(text, "source").ids, found.encode(text, "target").ids
        assert list(source) == theirs(text)["input_ids"], text
        assert [found.tokens[id_] for id_ in source] == theirs.convert_ids_to_tokens(source)
        assert found.decode(source) == theirs.decode(source, skip_special_tokens=True)
        if family == "marian":
            assert list(target) == theirs(text_target=text)["input_ids"], text
    assert list(found.encode("the dogs", "source", special=False).ids) == theirs("the dogs", add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("kind", ["t5", "marian"], indirect=True)
def test_a_text_is_cut_as_sentencepiece_cuts_it(kind: tuple[str, Folder, TokenizerProcess]) -> None:
    family, _folder, found = kind
    pieces = SentencePieceProcessor(model_proto=KINDS[family]["spiece.model" if family == "t5" else "source.spm"])
    for text in ("the dogs play", "Two DOGS run, é 二 !"):
        wanted = pieces.encode(text, out_type=str)
        if family == "marian":
            vocabulary = json.loads(KINDS[family]["vocab.json"])
            ids, end = [vocabulary.get(piece, vocabulary["<unk>"]) for piece in wanted], 0
        else:
            ids, end = pieces.encode(text), 1
        assert list(found.encode(text, "source").ids) == [*ids, end]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slow") / "tiny-marian"
    size = len(json.loads(KINDS["marian"]["vocab.json"]))
    folders.save(path, "marian", vocab_size=size, decoder_vocab_size=size, pad_token_id=size - 1, decoder_start_token_id=size - 1)
    return write(path, KINDS["marian"])


def test_a_folder_of_marian_reads_and_writes_texts(translator: Path) -> None:
    found = loader.load(translator, {}, CPU)
    vocabulary = json.loads(KINDS["marian"]["vocab.json"])
    tokens = found.tokenizers["source"].encode("the dogs ☃", "source")
    assert tokens.texts[-3:] == (" ", "☃", "</s>")
    assert tokens.unknown[-3:] == (False, True, False)
    trace = run(found, RunRequest("x", "the dogs play", target="zwei Hunde"), CPU, "CPU")
    assert trace.tokens["target"].ids[0] == vocabulary["<pad>"]
    assert trace.tokens["target"].ids[-1] == vocabulary["</s>"]


def test_another_vocabulary_is_another_model(translator: Path, tmp_path: Path) -> None:
    for path in translator.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    before = open_folder(tmp_path).fingerprint()
    assert before == open_folder(translator).fingerprint()
    (tmp_path / "target.spm").write_bytes(KINDS["marian"]["source.spm"])
    assert open_folder(tmp_path).fingerprint() != before


def test_every_architecture_says_which_files_it_is_cut_by() -> None:
    assert tokenizer.SLOW_TOKENIZERS.keys() == folders.SETTINGS.keys()
    assert {file for kind in tokenizer.SLOW_TOKENIZERS.values() for file in kind.files} < set(VOCABULARY_FILES)
    assert all(hasattr(transformers, name) for kind in tokenizer.SLOW_TOKENIZERS.values() for name in kind.classes)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"vocab.txt": b"[PAD]\n", "tokenizer_config.json": b'{"tokenizer_class": "BertJapaneseTokenizer"}'},
        {"vocab.json": b"{}"},
    ],
    ids=["no file", "a class that is not read here", "another's file"],
)
def test_what_cannot_be_read_is_ids_and_the_sentence_says_what_helps(tmp_path: Path, files: dict[str, bytes]) -> None:
    folders.save(tmp_path, "bert")
    found = loader.load(write(tmp_path, files), {}, CPU)
    assert found.tokenizers["source"].encode("3 4", "source").ids == (3, 4)
    with pytest.raises(NoTokenizer, match=r"put the tokenizer’s files into the folder \(tokenizer.json, or vocab.txt\)"):
        found.tokenizers["source"].encode("a dog", "source")
    with pytest.raises(BadSetting, match="source_vocab"):
        loader.load(tmp_path, {"source_vocab": "vocab.txt"}, CPU)


@pytest.mark.parametrize("family", ["t5", "gpt2"])
def test_damaged_files_are_refused(tmp_path: Path, family: str) -> None:
    folder = folder_of(tmp_path, family, dict.fromkeys(KINDS[family], b"\x08\xff{"))
    (tmp_path / "tokenizer_config.json").write_text("{}")
    with pytest.raises(DamagedFile):
        opened(folder)


def test_a_folder_of_a_bad_class_runs_nothing_of_its_own(tmp_path: Path) -> None:
    told = {"tokenizer_class": "BertTokenizer", "auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
    files = {**KINDS["bert"], "tokenizer_config.json": json.dumps(told).encode(), "evil.py": b"raise SystemExit('executed')"}
    assert opened(folder_of(tmp_path, "bert", files)).encode("the dogs", "source").ids == (2, 5, 8, 3)
