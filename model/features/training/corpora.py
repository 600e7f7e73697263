"""Corpora: the texts of training and evaluation. There is one class for each file format; the `[data]` of a recipe names it.

A corpus returns the texts of a split, each as a tuple with one text for every strip of the network: source and target, or the
source only. Splits have the names of the corpus's files; where it is split here, they are called train, val and test.
"""

import gzip
import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

from model.errors import BadSetting, DataError, MissingSetting
from model.requests.validation import Between, read
from model.tokenizers.words import split_words

Texts: TypeAlias = Sequence[tuple[str, ...]]
Seed: TypeAlias = Annotated[int, Between(0, 2**32)]
Length: TypeAlias = Annotated[int, Between(1, 10**4)]
HeldOut: TypeAlias = Annotated[float, Between(0.0, 0.49)]

PARTS = ("train", "val", "test")
"""Splits of a corpus that is split here, at random."""


class Corpus(Protocol):
    """The interface that training and evaluation use."""

    @property
    def train(self) -> str:
        """Name of the training split."""

    @property
    def validation(self) -> str:
        """Name of the validation split."""

    def texts(self, folder: Path | None, split: str) -> Texts:
        """The texts of one split, in the order of the corpus.

        Raises:
            DataError: a file is missing or damaged; the message names the file and the line.
            BadSetting: there is no such split (MissingSetting: no folder was given).
        """


@dataclass(frozen=True)
class Parallel:
    """A parallel corpus: two files with one sentence in each line, aligned by line.

    Attributes:
        source, target: names of the files, with a gap for the split: "{split}.de".
        train, validation: names of these splits.
        origin: where the files come from.
    """

    source: str
    target: str
    train: str = "train"
    validation: str = "val"
    origin: str = "the corpus of the checkpoint's CARD.md"

    def texts(self, folder: Path | None, split: str) -> Texts:
        """Sentence pairs. Raises DataError where Corpus.texts does."""
        names = [name.replace("{split}", split) for name in (self.source, self.target)]
        layout = "one UTF-8 sentence a line, source and target aligned by line"
        sides = [read_lines(folder, name, self.origin, layout) for name in names]
        if len(sides[0]) != len(sides[1]):
            detail = f"split {split} has {len(sides[0])} source and {len(sides[1])} target lines"
            raise DataError(path=folder, detail=detail, do="align the two files line by line")
        pairs = list(zip(*sides, strict=True))
        for number, pair in enumerate(pairs, start=1):
            if not all(text.strip() for text in pair):
                detail = f"line {number} of split {split} is empty"
                raise DataError(path=folder, detail=detail, do="mend or remove that line in both files")
        return pairs


@dataclass(frozen=True)
class Table:
    """One file with a sentence pair and its attribution in each line, separated by TAB; split at random.

    Pairs whose sources differ only in case and punctuation are always in the same split.

    Attributes:
        file: name of the file.
        seed: seed of the split.
        held_out: share of sources in val, and the same share in test.
        origin: where the file comes from.
    """

    file: str
    seed: Seed
    held_out: HeldOut
    origin: str

    train, validation = "train", "val"  # not fields: they are the same for every table

    def texts(self, folder: Path | None, split: str) -> Texts:
        """Sentence pairs; see Corpus.texts."""
        _refuse_unknown(split)
        lines = read_lines(folder, self.file, self.origin, "one pair a line: source TAB target TAB attribution, in UTF-8")
        pairs = [_columns(folder, self.file, number, line) for number, line in enumerate(lines, start=1)]
        return [pair for pair in pairs if lot(self.seed, _key(pair[0]), self.held_out) == split]


@dataclass(frozen=True)
class RunningText:
    """Running text for a language model: files with a paragraph in each line; empty lines are skipped.

    Attributes:
        file: name of the files, with a gap for the split: "{split}.txt".
        train, validation: names of these splits.
        window: number of tokens that one example predicts.
        origin: where the files come from.
    """

    file: str
    train: str
    validation: str
    window: Length
    origin: str

    def texts(self, folder: Path | None, split: str) -> Texts:
        """Paragraphs. Raises DataError where Corpus.texts does."""
        name = self.file.replace("{split}", split)
        lines = read_lines(folder, name, self.origin, "UTF-8 text, a paragraph a line")
        if not (texts := [(line,) for line in lines if line.strip()]):
            raise DataError(path=folder, detail=f"{name} holds nothing but blanks", do="fetch it again")
        return texts


@dataclass(frozen=True)
class Reversal:
    """A task without files: reverse a string of digits. Strings are generated, and split at random.

    Attributes:
        shortest, longest: fewest and most digits of a string; all lengths are equally likely.
        strings: number of strings generated; equal ones count once.
        seed: seed of the strings and of the split.
        held_out: share of strings in val, and the same share in test.
    """

    shortest: Length
    longest: Length
    strings: Annotated[int, Between(10, 10**7)]
    seed: Seed
    held_out: HeldOut

    train, validation = "train", "val"

    def __post_init__(self) -> None:
        """Checks that the lengths are in order.

        Raises:
            BadSetting: the shortest is longer than the longest.
        """
        _check_order(self.shortest, self.longest)

    def texts(self, folder: Path | None, split: str) -> Texts:
        """Strings and their reversals; `folder` is not used. See Corpus.texts."""
        _refuse_unknown(split)
        strings = dict.fromkeys(self._draw())
        return [(string, string[::-1]) for string in strings if lot(self.seed, string, self.held_out) == split]

    def _draw(self) -> Iterator[str]:
        draws = random.Random(self.seed)
        for _ in range(self.strings):
            yield "".join(draws.choices("0123456789", k=draws.randint(self.shortest, self.longest)))


@dataclass(frozen=True)
class Repetition:
    """A task without files, for a language model: words drawn at random, in a block that is repeated until the text is long enough.

    The first copy cannot be foreseen; all later ones can, by whoever looks up what followed the same word before.

    Attributes:
        words: the words, separated by spaces; all are equally likely.
        shortest, longest: fewest and most words of a block; all lengths are equally likely.
        length: number of words of a text.
        texts_drawn: number of texts generated.
        seed: seed of the texts and of the split.
        held_out: share of texts in val, and the same share in test.
    """

    words: str
    shortest: Length
    longest: Length
    length: Length
    texts_drawn: Annotated[int, Between(10, 10**7)]
    seed: Seed
    held_out: HeldOut

    train, validation = "train", "val"

    def __post_init__(self) -> None:
        """Checks that there are words and that the lengths are in order.

        Raises:
            BadSetting: there are fewer than two words, or the shortest block is longer than the longest.
        """
        if len(self.words.split()) < 2:
            raise BadSetting(name="words", found=self.words, allowed="at least two words, separated by spaces")
        _check_order(self.shortest, self.longest)

    def texts(self, folder: Path | None, split: str) -> Texts:
        """Texts of repeated blocks; `folder` is not used. See Corpus.texts."""
        _refuse_unknown(split)
        texts = dict.fromkeys(self._draw())
        return [(text,) for text in texts if lot(self.seed, text, self.held_out) == split]

    def _draw(self) -> Iterator[str]:
        draws, words = random.Random(self.seed), self.words.split()
        for _ in range(self.texts_drawn):
            block = draws.choices(words, k=draws.randint(self.shortest, self.longest))
            yield " ".join(islice(cycle(block), self.length))


_WITH_FILES: dict[str, type[Any]] = {"parallel": Parallel, "table": Table, "text": RunningText}
KINDS: Mapping[str, type[Any]] = _WITH_FILES | {"reversal": Reversal, "repetition": Repetition}


def from_json(data: Mapping[str, Any], name: str) -> Corpus:
    """Reads a corpus from plain values; the default `kind` is "parallel".

    Args:
        name: name of `data` in an error.

    Raises:
        BadSetting: the kind or a field is unknown, or a value is outside its limits.
    """
    kind = data.get("kind", "parallel")
    if kind not in KINDS:
        raise BadSetting(name=f"{name}.kind", found=kind, allowed=", ".join(KINDS))
    corpus: Corpus = read(KINDS[kind], {key: value for key, value in data.items() if key != "kind"}, name)
    return corpus


def lot(seed: int, text: str, held_out: float) -> str:
    """The split of `text`, drawn from the text and the seed alone: val and test each have the probability `held_out`."""
    drawn = random.Random(f"{seed} {text}").random()
    return "val" if drawn < held_out else "test" if drawn < 2 * held_out else "train"


def read_lines(folder: Path | None, name: str, origin: str, layout: str) -> list[str]:
    """The lines of `folder/name` or `folder/name.gz`, without line ends.

    Raises:
        MissingSetting: no folder was given.
        DataError: there is no such file, or it is not UTF-8 text.
    """
    wanted = f"{name} of {origin}{{}}, plain or as {name}.gz: {layout}"
    if folder is None:
        raise MissingSetting(name="--data", needed=f"a folder with {wanted.format('')}")
    hint = f"put {wanted.format(' there')}"
    plain, packed = folder / name, folder / f"{name}.gz"
    path = packed if packed.is_file() else plain
    try:
        raw = gzip.decompress(packed.read_bytes()) if path == packed else plain.read_bytes()
    except FileNotFoundError as error:
        raise DataError(path=folder, detail=f"there is neither {name} nor {name}.gz", do=hint) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path=path, detail=str(error), do=hint) from error
    return _decoded(raw, path).replace("\r\n", "\n").removesuffix("\n").split("\n")


def _decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(path=path, detail=f"line {line} is not UTF-8 text", do="mend or remove that line") from error


def _columns(folder: Path | None, file: str, number: int, line: str) -> tuple[str, str]:
    """Source and target of one line of a table."""
    columns = line.split("\t")
    if len(columns) != 3 or not all(column.strip() for column in columns):
        detail = f"line {number} of {file} is not source TAB target TAB attribution"
        raise DataError(path=folder, detail=detail, do="mend or remove that line")
    return columns[0], columns[1]


def _key(source: str) -> str:
    """A source without case and punctuation: sources with equal keys are in the same split."""
    return " ".join(word for word in split_words(source, "words") if any(map(str.isalnum, word)))


def _check_order(shortest: int, longest: int) -> None:
    if shortest > longest:
        raise BadSetting(name="shortest", found=shortest, allowed=f"at most {longest}, the longest")


def _refuse_unknown(split: str) -> None:
    if split not in PARTS:
        raise BadSetting(name="split", found=split, allowed=", ".join(PARTS))
