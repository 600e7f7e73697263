"""Vocabularies of the usual forms are taken as they are; what a file cannot say is a sentence."""

import io
import json
import os
import pickle
import sys
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import pytest
import torch
from sentencepiece import SentencePieceProcessor
from tokenizers import BertWordPieceTokenizer, ByteLevelBPETokenizer

from model.checkpoints import export
from model.checkpoints.layouts.loading import load
from model.errors import BadSetting, CannotExport, EmptyText
from model.tokenizers.subwords.tokenizer import Subwords
from model.tokenizers.vocabulary_files import FAIRSEQ, holds_pickled_vocabulary, read_vocabulary, vocabulary_in
from tests import folders
from tests.reference import SETTINGS
from tests.vocabulary_files import WORD_PIECES, byte_pairs, sentence_pieces, write

CPU = torch.device("cpu")
GOLDEN = Path(__file__).parents[2] / "golden"
WORDS = ["<unk>", "<pad>", "<sos>", "<eos>", "hund", "ball"]
OTHERS = ["<unk>", "<pad>", "dog"]
STOI = {text: id_ for id_, text in enumerate(WORDS)}
LINES = "\n".join(WORDS) + "\n"

FORMS = {
    "itos": json.dumps(WORDS),
    "stoi": json.dumps(STOI),
    "stoi in any order": json.dumps(dict(Random(1).sample(list(STOI.items()), len(STOI)))),
    "id -> token": json.dumps(dict(enumerate(WORDS))),
    "both strips, itos": json.dumps({"src_itos": WORDS, "trg_itos": OTHERS}),
    "both strips, itos, tgt": json.dumps({"tgt_itos": OTHERS, "src_itos": WORDS}),
    "both strips, stoi": json.dumps({"src_stoi": STOI, "trg_stoi": {text: id_ for id_, text in enumerate(OTHERS)}}),
    "both strips, nested": json.dumps({"src": {"itos": WORDS}, "trg": {"itos": OTHERS}}),
    "under a name": json.dumps({"itos": WORDS}),
    "our own": json.dumps({"source": {"split": "words", "vocabulary": WORDS}}),
    "lines": LINES,
    "lines, Windows": "\ufeff" + LINES.replace("\n", "\r\n"),
    "lines with counts": "".join(f"{text} {9 - id_}\n" for id_, text in enumerate(WORDS)),
    "lines with scores": "".join(f"{text}\t-{id_}.5e-01\n" for id_, text in enumerate(WORDS)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_vocabulary_of_a_usual_form_is_taken_as_it_is(tmp_path: Path, form: str) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes(FORMS[form].encode())
    assert read_vocabulary(path, "source_vocab") == tuple(WORDS)
    if form.startswith("both"):
        assert read_vocabulary(path, "target_vocab") == tuple(OTHERS)


def test_words_that_only_look_counted_keep_their_numbers() -> None:
    assert vocabulary_in(b"a\nroute 66\n", "words.txt", "source_vocab") == ("a", "route 66")


def test_a_dictionary_of_fairseq_gets_the_texts_that_its_file_leaves_out() -> None:
    assert vocabulary_in(b"hund 12\nball 3\n", "dict.de.txt", "source_vocab") == (*FAIRSEQ, "hund", "ball")
    assert vocabulary_in(b"hund 12\nball 3\n", "counts.txt", "source_vocab") == ("hund", "ball")


BYTE_PAIRS = byte_pairs()


class Runs:
    """Would end the test if it was unpickled."""

    def __reduce__(self) -> tuple[object, tuple[int]]:
        return os._exit, (9,)


def global_(module: str, name: str, **methods: object) -> Any:
    """A class that pickles as `module.name`, which need not exist."""
    kind = type(name, (), {"__module__": module, "__qualname__": name} | methods)
    parts = module.split(".")
    for package in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
        sys.modules.setdefault(package, ModuleType(package))
    setattr(sys.modules[module], name, kind)
    return kind


OLDER = global_("torchtext_double.vocab", "Vocab")
NEWER = global_("torchtext_double.vocab.vocab", "Vocab")
COMPILED = global_(
    "torchtext._torchtext",
    "Vocab",
    __getstate__=lambda self: ("0.0.2", [0], self.texts, []),
    __setstate__=lambda self, given: None,
)


def older(texts: list[str]) -> object:
    """A vocabulary of torchtext 0.8 and before: its counts look like ids."""
    found = OLDER()
    stoi = defaultdict(int, {text: id_ for id_, text in enumerate(texts)})
    found.__dict__ |= {"freqs": Counter(texts), "itos": texts, "stoi": stoi, "vectors": None}
    return found


def newer(texts: list[str]) -> object:
    """A vocabulary of torchtext from 0.12 on: a module around a compiled object."""
    inner, found = COMPILED(), NEWER()
    inner.texts = texts
    found.__dict__ |= {"training": True, "_parameters": {}, "_modules": {}, "vocab": inner}
    return found


def torch_saved(value: object, **options: bool) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, **options)
    return file.getvalue()


PICKLED = {
    "a list": pickle.dumps(WORDS),
    "a tuple": pickle.dumps(tuple(WORDS)),
    "a table": pickle.dumps(STOI),
    "a table from ids": pickle.dumps(dict(enumerate(WORDS))),
    "both strips": pickle.dumps({"src": older(WORDS), "trg": older(OTHERS)}),
    "of torchtext 0.8": pickle.dumps(older(WORDS)),
    "of torchtext 0.8, by torch.save": torch_saved(older(WORDS)),
    "of torchtext 0.8, by an old torch.save": torch_saved(older(WORDS), _use_new_zipfile_serialization=False),
    "of torchtext 0.18": pickle.dumps(newer(WORDS)),
    "of torchtext 0.18, by torch.save": torch_saved(newer(WORDS)),
    "a list by torch.save": torch_saved(WORDS),
}


@pytest.mark.parametrize("form", PICKLED)
def test_a_pickled_vocabulary_is_read_without_being_executed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickle, "loads", None)
    assert vocabulary_in(PICKLED[form], "vocab.pt", "source_vocab") == tuple(WORDS)
    assert holds_pickled_vocabulary(PICKLED[form], "vocab.pt")


def test_weights_are_no_vocabulary() -> None:
    assert not holds_pickled_vocabulary(torch_saved({"weight": torch.eye(2), "step": 3}), "x.pt")
    assert not holds_pickled_vocabulary(b"hund\n", "x.txt")
    assert not holds_pickled_vocabulary(pickle.dumps({"itos": WORDS, "other": Runs()}), "x.pt")


REFUSED = {
    "a pickle without texts": (pickle.dumps({"itos": [1, 2]}), "a.txt", r"nothing in a pickle is executed here.*json\.dump"),
    "a pickle with a call": (pickle.dumps({"itos": WORDS, "other": Runs()}), "a.pt", r"nothing in a pickle is executed here"),
    "a pickle that is cut off": (pickle.dumps(WORDS)[:-9], "a.pkl", r"nothing in a pickle is executed here"),
    "torch's archive": (b"PK\x03\x04rest", "a.txt", r"nothing in a pickle is executed here"),
    "pickled byte pairs": (
        pickle.dumps(list(json.loads(BYTE_PAIRS["vocab.json"]))),
        "a.pt",
        r"given together with its merges\.txt",
    ),
    "joins alone": (BYTE_PAIRS["merges.txt"], "joins.txt", r"given together with its vocab\.json"),
    "joins alone, without a version": (b"a b\nc d\n", "merges.txt", r"given together with its vocab\.json"),
    "gaps": (b'{"a": 0, "b": 2}', "a.json", "a JSON list of texts, a JSON object token -> id"),
    "ids twice": (b'{"a": 0, "b": 0}', "a.json", "a JSON list of texts, a JSON object token -> id"),
    "numbers": (b"[1, 2]", "a.json", "a JSON list of texts"),
    "the other strip": (json.dumps({"trg_itos": OTHERS}).encode(), "a.json", "a JSON list of texts"),
    "byte pairs alone": (BYTE_PAIRS["vocab.json"], "vocab.json", r"given together with its merges\.txt .*, or as tokenizer\.json"),
    "no SentencePiece": (b"hello", "a.model", "is not a tokenizer that can be read"),
    "no rules": (b'{"model": {"type": "Nothing"}}', "tokenizer.json", "is not a tokenizer that can be read"),
    "not UTF-8": (b"\xff\xfe\xfa", "a.txt", "is not a text file that can be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_vocabulary_is_refused_in_a_sentence(case: str) -> None:
    content, name, said = REFUSED[case]
    with pytest.raises(BadSetting, match=said):
        vocabulary_in(content, name, "source_vocab")


def cut(texts: tuple[str, ...], text: str) -> list[int]:
    assert isinstance(texts, Subwords)
    return list(texts.process.encode(text, "source", special=False).ids)


TEXT = "The dogs playing in snow. é 二"


def test_a_sentencepiece_model_cuts_as_its_own_library(tmp_path: Path) -> None:
    for name in ("a.model", "b.spm"):
        found = read_vocabulary(write(tmp_path, {name: sentence_pieces()}) / name, "source_vocab")
        library = SentencePieceProcessor(model_proto=sentence_pieces())
        assert found == tuple(library.id_to_piece(id_) for id_ in range(library.get_piece_size()))
        assert cut(found, TEXT) == library.encode(TEXT)


@pytest.mark.parametrize("lower", [True, False])
def test_word_pieces_cut_as_their_own_library(tmp_path: Path, lower: bool) -> None:
    pieces = [*WORD_PIECES, *(() if lower else ("The",))]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    library = BertWordPieceTokenizer(str(tmp_path / "vocab.txt"), lowercase=lower)
    found = read_vocabulary(tmp_path / "vocab.txt", "source_vocab")
    assert found == tuple(pieces)
    assert cut(found, TEXT) == library.encode(TEXT, add_special_tokens=False).ids


def test_byte_pairs_cut_as_their_own_library(tmp_path: Path) -> None:
    write(tmp_path, BYTE_PAIRS)
    library = ByteLevelBPETokenizer(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt"))
    found = read_vocabulary(tmp_path / "vocab.json", "source_vocab")
    assert dict(enumerate(found)) == {id_: text for text, id_ in library.get_vocab().items()}
    assert cut(found, TEXT) == library.encode(TEXT).ids


def test_rules_of_a_tokenizer_json_cut_without_what_they_put_around_a_text(tmp_path: Path) -> None:
    folders.word_pieces().save(str(tmp_path / "tokenizer.json"))
    found = read_vocabulary(tmp_path / "tokenizer.json", "target_vocab")
    library = folders.word_pieces()
    library.no_truncation()
    library.no_padding()
    assert cut(found, TEXT) == library.encode(TEXT, add_special_tokens=False).ids


SIZE = 28
"""Ids of the small network's source."""


def of_size(size: int) -> bytes:
    texts = ["[UNK]", "[PAD]", "<sos>", "<eos>", "dog", "##s", "a", *(f"w{id_}" for id_ in range(size - 7))]
    return "\n".join(texts).encode()


def test_a_network_reads_and_writes_by_word_pieces(tmp_path: Path) -> None:
    path = write(tmp_path, {"vocab.txt": of_size(SIZE)}) / "vocab.txt"
    found = load(GOLDEN / "000_tiny_a.pt", SETTINGS["000_tiny_a"] | {"source_vocab": str(path)}, CPU)
    source = found.tokenizers["source"]
    tokens = source.encode("A dogs ☃", "source")
    assert tokens.ids == (2, 6, 4, 5, 0, 3)
    assert tokens.texts == ("<sos>", "a", "dog", "##s", "☃", "<eos>")
    assert tokens.special == (True, False, False, False, False, True)
    assert tokens.unknown == (False, False, False, False, True, False)
    assert source.text(tokens.ids[:4]) == "a dogs"
    with pytest.raises(EmptyText):
        source.encode(" ", "source")
    with pytest.raises(CannotExport, match="its texts are cut by the rules of another program"):
        export.files(found)


def test_pieces_of_another_size_than_the_network_has_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"vocab.txt": of_size(SIZE + 1)}) / "vocab.txt"
    with pytest.raises(BadSetting, match=r"source_vocab cannot be used: it has 29 entries, and the network has 28 ids"):
        load(GOLDEN / "000_tiny_a.pt", SETTINGS["000_tiny_a"] | {"source_vocab": str(path)}, CPU)
