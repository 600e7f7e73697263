"""Words in pieces, so that a word that training never saw is not lost: `ledertasche` is read as `leder` and `##tasche`.

Byte pair encoding: of the letters of all words the pair that stands side by side most often is joined, again and again, until the
vocabulary is as large as wanted. A word is spelled by the same joins in the same order, which leaves frequent words whole.

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
"""A word without blanks to its pieces, as texts and ids. What is unknown keeps its text and has the id 0."""

CONTINUING = "##"
"""Stands before a piece that goes on with a word."""

MOST_LETTERS = 80
"""Letters that are spelled with, the most frequent ones; others are unknown."""


def learn(texts: Iterable[Sequence[str]], size: int, specials: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pieces that words are best spelled with.

    Args:
        texts: each as its words, in which no blank stands.
        size: how many texts the vocabulary has at most, special ones counted.
        specials: the first texts of the vocabulary, which stand for no piece; the first one for what is unknown.

    Returns:
        The vocabulary, and the joins: two pieces with a blank between them, the first learned first.
    """
    spelled = list(texts)
    counts = Counter(letter for words in spelled for word in words for letter in word)
    letters = sorted(sorted(counts, key=lambda letter: (-counts[letter], letter))[:MOST_LETTERS])
    known = [*specials, *letters, *(CONTINUING + letter for letter in letters)]  # given, since the library numbers them by chance
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
    """The first text that is there twice, or the first join that is not of two pieces or makes none of the vocabulary."""
    known = Counter(vocabulary)
    twice = (text for text, times in known.items() if times > 1)
    wrong = (join for join, pair in zip(joins, _pairs(joins), strict=True) if not {*pair, _joined(*pair)} <= known.keys())
    return next(chain(twice, wrong), None)


def speller(vocabulary: Sequence[str], joins: Sequence[str]) -> Speller:
    """Spells a word as `learn` would have it."""
    ids = {text: id_ for id_, text in enumerate(vocabulary)}
    rules = Tokenizer(BPE(ids, _pairs(joins), unk_token=vocabulary[0], continuing_subword_prefix=CONTINUING))

    def spell(word: str) -> list[tuple[str, int]]:
        found = rules.encode(word, add_special_tokens=False)
        return [
            (f"{CONTINUING if start else ''}{word[start:end]}", id_)
            for id_, (start, end) in zip(found.ids, found.offsets, strict=True)
        ]

    return spell


def varied_speller(vocabulary: Sequence[str], joins: Sequence[str], share: float, chance: Random) -> Speller:
    """Spells a word with other pieces each time: of the joins that could be made at a moment, each is left out by chance.

    What training reads in place of one spelling: it sees more words in pieces, and a word in more than one. The library could leave
    joins out too, but not by a seed.

    Args:
        share: of the joins left out.
        chance: says which.
    """
    ids = {text: id_ for id_, text in enumerate(vocabulary)}
    ranks = {pair: rank for rank, pair in enumerate(_pairs(joins))}

    def spell(word: str) -> list[tuple[str, int]]:
        spelled = [word[:1], *(CONTINUING + letter for letter in word[1:])]
        while open_ := [
            (ranks[pair], at) for at, pair in enumerate(pairwise(spelled)) if pair in ranks and chance.random() >= share
        ]:
            _, at = min(open_)
            spelled[at : at + 2] = [_joined(spelled[at], spelled[at + 1])]
        return [(piece, ids.get(piece, 0)) for piece in spelled]

    return spell


def _pairs(joins: Sequence[str]) -> list[tuple[str, str]]:
    """What is joined, the first learned first."""
    return [(left, right) for left, _, right in (join.partition(" ") for join in joins)]


def _joined(left: str, right: str) -> str:
    return left + right.removeprefix(CONTINUING)
