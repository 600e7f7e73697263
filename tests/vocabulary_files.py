"""Vocabulary files as trainers write them, each learned from a few lines."""

import io
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from tokenizers import ByteLevelBPETokenizer

LINES = ["the dogs play in the snow", "a man and a woman walk", "two dogs run", "zwei Hunde spielen im Schnee", "Hello, world 12!"]
WORD_PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] the a dog dogs play ##s ##ing in snow . , é".split()


@cache
def sentence_pieces(
    size: int = 60, kind: str = "unigram", pad: int = -1, unknown: int = 0, start: int = 1, end: int = 2, lines: int = 5
) -> bytes:
    """A SentencePiece model, learned from the first `lines` lines."""
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(LINES[:lines] * 30),
        model_writer=model,
        vocab_size=size,
        model_type=kind,
        hard_vocab_limit=False,
        pad_id=pad,
        unk_id=unknown,
        bos_id=start,
        eos_id=end,
        byte_fallback=kind == "bpe",
        minloglevel=2,
    )
    return model.getvalue()


def byte_pairs() -> dict[str, bytes]:
    """vocab.json and merges.txt of GPT-2's kind."""
    learned = ByteLevelBPETokenizer()
    learned.train_from_iterator(LINES * 30, vocab_size=300, special_tokens=["<|endoftext|>"])
    rules = json.loads(learned.to_str())["model"]
    merges = "\n".join(" ".join(pair) for pair in rules["merges"])
    return {"vocab.json": json.dumps(rules["vocab"]).encode(), "merges.txt": f"#version: 0.2\n{merges}\n".encode()}


def marian() -> dict[str, bytes]:
    """Two SentencePiece models and the one vocabulary of both, in an order of its own; some pieces of the target are not in it."""
    source, target = sentence_pieces(lines=4), sentence_pieces()
    pieces = SentencePieceProcessor(model_proto=source)
    known = sorted({pieces.id_to_piece(id_) for id_ in range(pieces.get_piece_size())} - {"<s>", "</s>", "<unk>"})
    vocabulary = {text: id_ for id_, text in enumerate(["</s>", "<unk>", *known, "<pad>"])}
    return {"source.spm": source, "target.spm": target, "vocab.json": json.dumps(vocabulary).encode()}


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """The folder with the files in it."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
