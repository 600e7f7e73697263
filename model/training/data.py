"""Parallel corpora: two files, one sentence a line, aligned by line; plain text or gzip. And batches made of them."""

import gzip
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model.errors import DataError
from model.tokenizers import PAD, SPECIALS, Tokenizer

PAD_ID = SPECIALS.index(PAD)

HINT = (
    "put the corpus of the checkpoint's CARD.md there: one UTF-8 sentence a line, source and target aligned by line, "
    "plain or with .gz at the end of the name"
)


@dataclass(frozen=True)
class Pair:
    """One sentence pair as ids, start and end tokens included."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Padded ids: source [batch, key], target [batch, position]."""

    source: Tensor
    target: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        return Batch(self.source.to(device), self.target.to(device))

    @property
    def predicted(self) -> int:
        """How many target tokens are predicted: all but the start token and padding."""
        return int((self.target[:, 1:] != PAD_ID).sum())


def read_lines(folder: Path, name: str) -> list[str]:
    """The lines of `folder/name` or `folder/name.gz`, without their ends.

    Raises:
        DataError: there is no such file, or it is not UTF-8 text.
    """
    plain, packed = folder / name, folder / f"{name}.gz"
    try:
        raw = gzip.decompress(packed.read_bytes()) if packed.is_file() else plain.read_bytes()
        return raw.decode("utf-8").replace("\r\n", "\n").removesuffix("\n").split("\n")
    except FileNotFoundError as error:
        raise DataError(path=folder, detail=f"there is neither {name} nor {name}.gz", do=HINT) from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise DataError(path=packed if packed.is_file() else plain, detail=str(error), do=HINT) from error


def read_parallel(folder: Path, split: str, source: str, target: str) -> list[tuple[str, str]]:
    """The sentence pairs of one split.

    Args:
        source, target: names of the two files, with a gap for the split: "{split}.de".

    Raises:
        DataError: a file is missing, or source and target differ in length or have an empty line.
    """
    sides = [read_lines(folder, name.replace("{split}", split)) for name in (source, target)]
    if len(sides[0]) != len(sides[1]):
        detail = f"split {split} has {len(sides[0])} source and {len(sides[1])} target lines"
        raise DataError(path=folder, detail=detail, do="align the two files line by line")
    pairs = list(zip(*sides, strict=True))
    for number, pair in enumerate(pairs, start=1):
        if not all(text.strip() for text in pair):
            raise DataError(
                path=folder, detail=f"line {number} of split {split} is empty", do="mend or remove that line in both files"
            )
    return pairs


def encode(pairs: Sequence[tuple[str, str]], source: Tokenizer, target: Tokenizer) -> list[Pair]:
    """The pairs as ids."""
    return [Pair(source.encode(s, "source").ids, target.encode(t, "target").ids) for s, t in pairs]


def collate(pairs: Sequence[Pair]) -> Batch:
    """One padded batch, in the order of `pairs`."""

    def pad(rows: Sequence[tuple[int, ...]]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD_ID)

    return Batch(pad([p.source for p in pairs]), pad([p.target for p in pairs]))


def batches(pairs: Sequence[Pair], size: int, seed: int | None = None) -> Iterator[Batch]:
    """Batches of sentences of like length, so that little is padding.

    Args:
        size: sentences in a batch.
        seed: of the order; the same seed gives the same batches. None: by length, for evaluation.
    """
    order = random.Random(seed)
    noise = [order.random() if seed is not None else 0.0 for _ in pairs]
    ranked = sorted(range(len(pairs)), key=lambda i: (len(pairs[i].target) + 2 * noise[i], len(pairs[i].source)))
    starts = list(range(0, len(ranked), size))
    if seed is not None:
        order.shuffle(starts)
    for start in starts:
        yield collate([pairs[i] for i in ranked[start : start + size]])
