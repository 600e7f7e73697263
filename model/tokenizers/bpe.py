"""Byte pair encoding: splits words into pieces, so that a word that training never saw can be read: `leder` and `##tasche`.

Learning starts from single letters. The most frequent pair of neighbors is joined into one piece, again and again, until the
vocabulary has the wanted size. A word is then encoded by applying the same joins in the same order, so frequent words stay whole.

Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", section 3.2; Provilkov et al. 2020,
    "BPE-Dropout: Simple and Effective Subword Regularization", section 3.2, for joins that are skipped in training.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from random import Random
from typing import TypeAlias

from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import WhitespaceSplit
from tokenizers.trainers import BpeTrainer

Speller: TypeAlias = Callable[[str], list[tuple[str, int]]]
"""Encodes a word without blanks: returns its pieces, each as text and id. An unknown piece keeps its text and has the id 0."""

CONTINUING = "##"
"""Prefix of a piece that continues a word."""

MOST_LETTERS = 80
"""Size of the alphabet: the most frequent letters; all others are unknown."""


def learn(texts: Iterable[Sequence[str]], size: int, specials: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Learns a vocabulary of pieces, and the joins that make them.

    Args:
        texts: the texts, each as a list of words without blanks.
        size: most entries in the vocabulary, special tokens included.
        specials: the first entries of the vocabulary; the first of them is the unknown token.

    Returns:
        The vocabulary; and the joins in the order in which they were learned, each as two pieces with a blank between them.
    """
    spelled = list(texts)
    counts = Counter(letter for words in spelled for word in words for letter in word)
    letters = sorted(sorted(counts, key=lambda letter: (-counts[letter], letter))[:MOST_LETTERS])
    known = [*specials, *letters, *(CONTINUING + letter for letter in letters)]  # given, since the library's order is random
    learned = Tokenizer(BPE(unk_token=specials[0], continuing_subword_prefix=CONTINUING))
    learned.pre_tokenizer = WhitespaceSplit()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=known,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        continuing_subword_prefix=CONTINUING,
        show_progress=False,
    )
    learned.train_from_iterator(map(" ".join, spelled), trainer)
    rules = json.loads(learned.to_str())["model"]
    return tuple(sorted(rules["vocab"], key=rules["vocab"].__getitem__)), tuple(map(" ".join, rules["merges"]))


def misfit(vocabulary: Sequence[str], joins: Sequence[str]) -> str | None:
    """The first entry that occurs twice, or the first join whose pieces or result are not in the vocabulary; None: all fit."""
    known = Counter(vocabulary)
    twice = (text for text, times in known.items() if times > 1)
    wrong = (join for join, pair in zip(joins, _pairs(joins), strict=True) if not {*pair, _joined(*pair)} <= known.keys())
    return next(chain(twice, wrong), None)


def speller(vocabulary: Sequence[str], joins: Sequence[str]) -> Speller:
    """A function that encodes words with the joins that `learn` returned."""
    ids = {text: id_ for id_, text in enumerate(vocabulary)}
    rules = Tokenizer(BPE(ids, _pairs(joins), unk_token=vocabulary[0], continuing_subword_prefix=CONTINUING))

    def spell(word: str) -> list[tuple[str, int]]:
        encoding = rules.encode(word, add_special_tokens=False)
        return [
            (f"{CONTINUING if start else ''}{word[start:end]}", id_)
            for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        ]

    return spell


def varied_speller(vocabulary: Sequence[str], joins: Sequence[str], share: float, chance: Random) -> Speller:
    """A function that encodes words with BPE-dropout: each possible join is skipped at random, so a word's pieces vary.

    Used in training only: the network sees more words in pieces, and each word in several ways. The library has BPE-dropout too,
    but without a seed.

    Args:
        share: probability that a join is skipped.
        chance: source of random numbers.
    """
    ids = {text: id_ for id_, text in enumerate(vocabulary)}
    ranks = {pair: rank for rank, pair in enumerate(_pairs(joins))}

    def spell(word: str) -> list[tuple[str, int]]:
        spelled = [word[:1], *(CONTINUING + letter for letter in word[1:])]
        # each round makes the earliest learned join that is possible and not skipped
        while open_ := [
            (ranks[pair], at) for at, pair in enumerate(pairwise(spelled)) if pair in ranks and chance.random() >= share
        ]:
            _, at = min(open_)
            spelled[at : at + 2] = [_joined(spelled[at], spelled[at + 1])]
        return [(piece, ids.get(piece, 0)) for piece in spelled]

    return spell


def _pairs(joins: Sequence[str]) -> list[tuple[str, str]]:
    """The two pieces of each join, in the order in which they were learned."""
    return [(left, right) for left, _, right in (join.partition(" ") for join in joins)]


def _joined(left: str, right: str) -> str:
    return left + right.removeprefix(CONTINUING)
