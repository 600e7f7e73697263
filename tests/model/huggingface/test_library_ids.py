"""Ids of a text are those of the library's own tokenizer of the folder; where that cannot be, a note says so."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from model.checkpoints import loader
from model.errors import TokenWithoutRow
from model.huggingface import tokenizer
from model.huggingface.folder import open_folder
from model.huggingface.tokenizer import LibraryTokenizer
from model.inference.run import run
from model.requests.request import RunRequest
from model.tokenizers.subwords.process import TokenizerProcess
from tests import folders

CPU = torch.device("cpu")
TEXTS = ("The DOGS play, Ätna café.", "a dog<extra> the<new>dog <|end|>", "  two  [MASK] dogs", "<|endoftext|> </s> s")
EXTRA = {"content": "<extra>", "special": True, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
SETTINGS = "tokenizer_config.json"
GENERIC = {"tokenizer_class": "PreTrainedTokenizerFast"}
ENDS = {"tokenizer_class": "LlamaTokenizer", "add_bos_token": True, "add_eos_token": True}
BESIDE: dict[str, tuple[str, Tokenizer, str, dict[str, Any]]] = {
    "do_lower_case": ("bert", folders.word_pieces(), SETTINGS, {"do_lower_case": False}),
    "add_prefix_space": ("gpt2", folders.byte_pairs(), SETTINGS, {"add_prefix_space": True}),
    "added_tokens_decoder": ("gpt2", folders.byte_pairs(), SETTINGS, {"added_tokens_decoder": {"260": EXTRA}}),
    "additional_special_tokens": ("gpt2", folders.byte_pairs(), SETTINGS, {"additional_special_tokens": ["<new>"]}),
    "split_special_tokens": ("gpt2", folders.byte_pairs(), SETTINGS, GENERIC | {"split_special_tokens": True}),
    "added_tokens.json": ("gpt2", folders.byte_pairs(), "added_tokens.json", {"<extra>": 261}),
    "special_tokens_map.json": (
        "gpt2",
        folders.byte_pairs(),
        "special_tokens_map.json",
        {"additional_special_tokens": ["<new>"]},
    ),
    "add_bos_token": ("llama", folders.sentence_pieces(), SETTINGS, ENDS),
}


def folder_of(path: Path, family: str, tokenizer: Tokenizer, files: dict[str, Any]) -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps({"model_type": family}))
    tokenizer.save(str(path / "tokenizer.json"))
    for name, content in files.items():
        (path / name).write_text(json.dumps(content))
    return path


def opened(path: Path) -> TokenizerProcess:
    folder = open_folder(path)
    assert folder.rules is not None
    return TokenizerProcess(folder.vocabulary, folder.rules, 1 << 20)


@pytest.mark.parametrize("name", BESIDE)
def test_what_lies_beside_tokenizer_json_counts_as_for_the_library(name: str, tmp_path: Path) -> None:
    family, tokenizer, file, content = BESIDE[name]
    path = folder_of(tmp_path, family, tokenizer, {file: content})
    theirs, found = transformers.AutoTokenizer.from_pretrained(path), opened(path)
    ids = {text: list(found.encode(text, "source").ids) for text in TEXTS}
    assert ids == {text: theirs(text)["input_ids"] for text in TEXTS}
    assert found.failure == ""
    alone = opened(folder_of(tmp_path / "alone", family, tokenizer, {}))
    assert any(list(alone.encode(text, "source").ids) != ids[text] for text in TEXTS)


def test_code_beside_it_is_not_run(tmp_path: Path) -> None:
    settings = {"tokenizer_class": "Evil", "auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}}
    path = folder_of(tmp_path, "unheard_of", folders.word_pieces(), {"tokenizer_config.json": settings})
    (path / "evil.py").write_text("raise SystemExit('executed')")
    found, alone = opened(path), opened(folder_of(tmp_path / "alone", "bert", folders.word_pieces(), {}))
    assert found.encode("the dogs", "source").ids == alone.encode("the dogs", "source").ids
    assert found.failure


def test_a_folder_whose_ids_may_be_others_says_so(tmp_path: Path) -> None:
    folders.save(tmp_path, "bert")
    folders.word_pieces().save(str(tmp_path / "tokenizer.json"))
    assert [str(note) for note in loader.load(tmp_path, {}, CPU).notes if "alone" in str(note)] == [
        "Texts are tokenized by tokenizer.json alone. Without tokenizer_config.json the library would use the defaults of its "
        "class for bert, with which ids may differ."
    ]
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "MistralCommonBackend"}')
    notes = [str(note) for note in loader.inspect(tmp_path, {}).notes if "alone" in str(note)]
    assert notes
    assert "because the library cannot read the files beside it, which may change ids: " in notes[0]


def test_the_files_beside_it_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    folders.save(tmp_path, "bert")
    folders.word_pieces().save(str(tmp_path / "tokenizer.json"))
    before = open_folder(tmp_path).fingerprint()
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert open_folder(tmp_path).fingerprint() != before


def test_a_token_without_a_row_is_named(tmp_path: Path) -> None:
    """It said that the prompt had no token with the id 260, which it had."""
    made = folders.byte_pairs()
    made.add_special_tokens(["<mask>"])
    folders.save(tmp_path, "gpt2", vocab_size=260)
    made.save(str(tmp_path / "tokenizer.json"))
    found = loader.load(tmp_path, {}, CPU)
    assert isinstance(found.tokenizers["source"], LibraryTokenizer)
    with pytest.raises(TokenWithoutRow) as refused:
        run(found, RunRequest("x", "a <mask>"), CPU, "CPU")
    assert str(refused.value) == (
        "The tokenizer makes the token “<mask>” of this text, with the id 260, but the network has no row for it: its ids run from "
        "0 to 259. Type a text without it, or use the tokenizer that was saved with these weights."
    )


def test_vocabulary_files_are_read_for_an_embedding_model_too(tmp_path: Path) -> None:
    """Which has the tokenizer of its family, and is opened like an architecture without a row."""
    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaModel"]}')
    assert tokenizer.vocabulary_files_of(open_folder(tmp_path)) == "tokenizer.model"
    (tmp_path / "config.json").write_text('{"model_type": "falcon"}')
    assert tokenizer.vocabulary_files_of(open_folder(tmp_path)) == ""
    assert tokenizer.slow_rules_of(open_folder(tmp_path)) is None
