"""Examples: texts as ids, and padded batches of them. A translation's source is read whole; a language model has none."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor

from model.errors import BadSetting
from model.tokenizers.bpe import Speller
from model.tokenizers.words import END, PAD, SPECIALS, WordTokenizer
from model.trace.types import Tokens
from model.training.corpora import Corpus, RunningText, Texts

PAD_ID, END_ID = SPECIALS.index(PAD), SPECIALS.index(END)


@dataclass(frozen=True)
class Pair:
    """One example as ids: what is read, and what is written, its first token given. A language model reads nothing else."""

    source: tuple[int, ...]
    target: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Padded ids: source [batch, key], None for a language model; target [batch, position]."""

    source: Tensor | None
    target: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same on another device."""
        return Batch(None if self.source is None else self.source.to(device), self.target.to(device))

    @property
    def fed(self) -> tuple[Tensor, ...]:
        """What the network is called with: the source where there is one, and the target without its last token."""
        inputs = self.target[:, :-1]
        return (inputs,) if self.source is None else (self.source, inputs)

    @property
    def following(self) -> Tensor:
        """[batch, query], what each fed target token should predict."""
        return self.target[:, 1:]

    @property
    def predicted(self) -> int:
        """How many target tokens are predicted: all but each example's first and padding."""
        return int((self.following != PAD_ID).sum())

    @property
    def twice(self) -> "Batch":
        """Every example two times, the second half equal to the first."""
        return Batch(None if self.source is None else self.source.repeat(2, 1), self.target.repeat(2, 1))

    def share(self, number: int, of: int) -> "Batch":
        """The part of the batch that process `number` of `of` works on; where there are too few examples, the first."""
        rows = slice(number, None, of) if number < len(self.target) else slice(1)
        return Batch(None if self.source is None else self.source[rows], self.target[rows])


class Encoder(Protocol):
    """What training needs of a tokenizer."""

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of a text."""


@dataclass(frozen=True)
class Varied:
    """A tokenizer whose words are spelled by `spell`: with other pieces each time."""

    tokenizer: WordTokenizer
    spell: Speller

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of a text."""
        return self.tokenizer.encode(text, name, self.spell)


def examples(corpus: Corpus, texts: Texts, tokenizers: Mapping[str, Encoder]) -> list[Pair]:
    """Texts as ids: a pair for each where there is a source and a target, else stretches of the text as a whole.

    Raises:
        BadSetting: there are no texts.
    """
    if not texts:
        raise BadSetting(name="split", found="empty", allowed="made of at least one text: take a larger corpus or hold out more")
    if isinstance(corpus, RunningText):
        return windows([text for (text,) in texts], tokenizers["source"], corpus.window)
    source, target = tokenizers["source"], tokenizers["target"]
    return [Pair(source.encode(s, "source").ids, target.encode(t, "target").ids) for s, t in texts]


def windows(paragraphs: Sequence[str], tokenizer: Encoder, window: int) -> list[Pair]:
    """Stretches of one long text, paragraphs ended by `<eos>`: each predicts `window` tokens, the last one what is left.

    Every token but the first is predicted once.
    """
    ids = tuple(chain.from_iterable((*tokenizer.encode(text, "source").ids, END_ID) for text in paragraphs))
    return [Pair((), ids[start : start + window + 1]) for start in range(0, len(ids) - 1, window)]


def collate(pairs: Sequence[Pair]) -> Batch:
    """One padded batch, in the order of `pairs`."""

    def pad(rows: Sequence[tuple[int, ...]]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD_ID)

    return Batch(pad([p.source for p in pairs]) if pairs[0].source else None, pad([p.target for p in pairs]))


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
