"""Training examples: texts as ids, in padded batches, and the losses of a batch, in nats per predicted token.

A translation has a source and a target; a language model only a target.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import torch
from torch import Tensor, nn

from model.errors import BadSetting
from model.features.training.corpora import Corpus, RunningText, Texts
from model.tokenizers.bpe import Speller
from model.tokenizers.words import END, PAD, SPECIALS, WordTokenizer
from model.trace.types import Tokens

PAD_ID, END_ID = SPECIALS.index(PAD), SPECIALS.index(END)


@dataclass(frozen=True)
class Pair:
    """One example as ids: the source, which is empty for a language model, and the target, whose first token is given."""

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
        """Arguments of the network: the source, if there is one, and the target without its last token."""
        inputs = self.target[:, :-1]
        return (inputs,) if self.source is None else (self.source, inputs)

    @property
    def following(self) -> Tensor:
        """[batch, query], the token that each position of the target should predict."""
        return self.target[:, 1:]

    @property
    def predicted(self) -> int:
        """Number of target tokens that are predicted: all except the first of each example and padding."""
        return int((self.following != PAD_ID).sum())

    @property
    def twice(self) -> "Batch":
        """The batch repeated: the second half is equal to the first."""
        return Batch(None if self.source is None else self.source.repeat(2, 1), self.target.repeat(2, 1))

    def share(self, number: int, of: int) -> "Batch":
        """The part of the batch for process `number` of `of`; the first example where there are fewer examples than processes."""
        # A process without an example would leave the others waiting for its gradients, so it repeats the first
        # one.
        rows = slice(number, None, of) if number < len(self.target) else slice(1)
        return Batch(None if self.source is None else self.source[rows], self.target[rows])


class Encoder(Protocol):
    """The interface of a tokenizer that training uses."""

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of a text."""


@dataclass(frozen=True)
class Varied:
    """A tokenizer that splits words into varying pieces, with `spell` (BPE-dropout)."""

    tokenizer: WordTokenizer
    spell: Speller

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of a text."""
        return self.tokenizer.encode(text, name, self.spell)


def examples(corpus: Corpus, texts: Texts, tokenizers: Mapping[str, Encoder]) -> list[Pair]:
    """Texts as ids: one example for each pair of source and target; for a language model windows over running
    text, or one example for each text.

    Raises:
        BadSetting: there are no texts.
    """
    if not texts:
        raise BadSetting(name="split", found="empty", allowed="made of at least one text: take a larger corpus or hold out more")
    if isinstance(corpus, RunningText):
        return windows([text for (text,) in texts], tokenizers["source"], corpus.window)
    if "target" not in tokenizers:
        return [Pair((), tokenizers["source"].encode(text, "source").ids) for (text,) in texts]
    source, target = tokenizers["source"], tokenizers["target"]
    return [Pair(source.encode(s, "source").ids, target.encode(t, "target").ids) for s, t in texts]


def windows(paragraphs: Sequence[str], tokenizer: Encoder, window: int) -> list[Pair]:
    """Windows over one long text, in which `<eos>` ends each paragraph. Each predicts `window` tokens, the last one the rest.

    Every token except the first is predicted exactly once.
    """
    ids = tuple(chain.from_iterable((*tokenizer.encode(text, "source").ids, END_ID) for text in paragraphs))
    return [Pair((), ids[start : start + window + 1]) for start in range(0, len(ids) - 1, window)]


def collate(pairs: Sequence[Pair]) -> Batch:
    """One padded batch, in the order of `pairs`."""

    def pad(rows: Sequence[tuple[int, ...]]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], batch_first=True, padding_value=PAD_ID)

    return Batch(pad([p.source for p in pairs]) if pairs[0].source else None, pad([p.target for p in pairs]))


def batches(pairs: Sequence[Pair], size: int, seed: int | None = None) -> Iterator[Batch]:
    """Batches of sentences of similar length, so that there is little padding.

    Args:
        size: number of sentences in a batch.
        seed: seed of the order; equal seeds give equal batches. None: sorted by length, for evaluation.
    """
    order = random.Random(seed)
    # A little noise on the lengths: sentences meet others of about their length, but not the same ones in each
    # epoch.
    noise = [order.random() if seed is not None else 0.0 for _ in pairs]
    ranked = sorted(range(len(pairs)), key=lambda i: (len(pairs[i].target) + 2 * noise[i], len(pairs[i].source)))
    starts = list(range(0, len(ranked), size))
    if seed is not None:
        order.shuffle(starts)
    for start in starts:
        yield collate([pairs[i] for i in ranked[start : start + size]])


def cross_entropy(logits: Tensor, batch: Batch, smoothing: float) -> Tensor:
    """Mean cross entropy of `logits` [batch, query, vocab] over all predicted tokens, without padding.

    Args:
        smoothing: label smoothing, the share of the target probability that is spread over the vocabulary.

    Source: Szegedy et al. 2016, "Rethinking the Inception Architecture", section 7, for the smoothing.
    """
    return nn.functional.cross_entropy(
        logits.float().flatten(0, 1), batch.following.flatten(), ignore_index=PAD_ID, label_smoothing=smoothing
    )


def divergence(logits: Tensor, batch: Batch) -> Tensor:
    """Distance between the predictions for the two halves of a batch, which hold the same sentences (with different dropout).

    It is the mean of both Kullback-Leibler divergences, Σ (p - q)(log p - log q) / 2.

    Args:
        logits: [batch, query, vocab].

    Source: Liang et al. 2021, "R-Drop", equation 2.
    """
    first, second = (
        half[real].float().log_softmax(-1) for half, real in zip(logits.chunk(2), (batch.following != PAD_ID).chunk(2), strict=True)
    )
    return ((first.exp() - second.exp()) * (first - second)).sum(-1).mean() / 2


def validation_loss(network: nn.Module, pairs: Sequence[Pair], device: torch.device, size: int = 128) -> float:
    """Mean cross entropy over all predicted tokens of `pairs`, end tokens included, without label smoothing and dropout."""
    network.eval()
    total, count = 0.0, 0
    with torch.inference_mode():
        for batch in batches(pairs, size):
            on = batch.to(device)
            total += float(cross_entropy(network(*on.fed), on, 0.0)) * batch.predicted
            count += batch.predicted
    return total / count
