"""Words in pieces, against the rules as they were published: joins in the order in which they were learned."""

import json
from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting, EmptyText
from model.tokenizers import bpe
from model.tokenizers.bpe import CONTINUING
from model.tokenizers.words import SPECIALS, WordTokenizer, from_json, learn_pieces, to_json

TEXTS = [
    "Eine Ledertasche und eine Papiermaske liegen neben der Tasche aus Leder.",
    "Eine Frau mit Maske trägt eine Tasche aus Papier, eine andere eine Tasche aus Leder.",
    "Neben der Frau liegt Leder, neben dem Leder eine Maske.",
]
LEARNED = learn_pieces(TEXTS, "spacy-de", 90)
LETTERS = "".join(sorted({letter for text in TEXTS for letter in text.lower() if letter.isalpha()}))
PAIRS = [(left, right) for left, right in (join.split(" ") for join in LEARNED.joins)]
words = st.text(LETTERS, min_size=1, max_size=14)


def by_the_book(word: str) -> list[str]:
    """Every join of the list in turn, everywhere in the word: the published algorithm, slow and plain."""
    spelled = [word[0], *(CONTINUING + letter for letter in word[1:])]
    for left, right in PAIRS:
        at = 0
        while at + 1 < len(spelled):
            if (spelled[at], spelled[at + 1]) == (left, right):
                spelled[at : at + 2] = [left + right.removeprefix(CONTINUING)]
            at += 1
    return spelled


@given(words)
def test_a_word_is_spelled_by_the_joins_in_their_order(word: str) -> None:
    spelled = bpe.speller(LEARNED.vocabulary, LEARNED.joins)(word)
    assert [text for text, _ in spelled] == by_the_book(word)
    assert [LEARNED.vocabulary[id_] for _, id_ in spelled] == by_the_book(word)


def test_the_first_join_is_of_the_pair_that_occurs_most_often() -> None:
    counts = Counter(
        pair
        for text in TEXTS
        for token in LEARNED.encode(text, "source", letter_by_letter).texts[1:-1]
        for pair in pairwise([token[0], *(CONTINUING + letter for letter in token[1:])])
    )
    assert counts[PAIRS[0]] == max(counts.values())


def letter_by_letter(word: str) -> list[tuple[str, int]]:
    return [(word, 0)]


def test_the_same_texts_teach_the_same_pieces_in_the_same_order() -> None:
    for _ in range(3):
        assert learn_pieces(TEXTS, "spacy-de", 90) == LEARNED
    assert len(LEARNED.vocabulary) == 90
    assert LEARNED.vocabulary[:4] == SPECIALS


@given(words, st.floats(0, 1), st.integers(0, 99))
def test_another_spelling_is_one_of_the_same_word_in_known_pieces(word: str, share: float, seed: int) -> None:
    spelled = LEARNED.varied(share, Random(seed))(word)
    assert spelled[0][0] + "".join(text.removeprefix(CONTINUING) for text, _ in spelled[1:]) == word
    assert [LEARNED.vocabulary[id_] for _, id_ in spelled] == [text for text, _ in spelled]
    assert spelled == LEARNED.varied(share, Random(seed))(word)


def test_without_a_join_left_out_there_is_one_spelling_and_without_any_there_are_letters() -> None:
    for text in TEXTS:
        assert LEARNED.encode(text, "source", LEARNED.varied(0.0, Random(1))) == LEARNED.encode(text, "source")
    letters = LEARNED.encode("Leder", "source", LEARNED.varied(1.0, Random(1)))
    assert letters.texts == ("<sos>", "l", "##e", "##d", "##e", "##r", "<eos>")


def test_as_many_joins_are_left_out_as_was_asked() -> None:
    """Of a word of two letters that are always joined, the share of spellings that leave them apart is the share asked for."""
    pair = WordTokenizer("words", (*SPECIALS, "a", "##b", "ab"), joins=("a ##b",))
    spell = pair.varied(0.3, Random(5))
    apart = sum(len(spell("ab")) == 2 for _ in range(4000))
    assert 0.27 < apart / 4000 < 0.33


def test_a_compound_that_was_never_seen_is_read_in_pieces_and_shown_whole() -> None:
    strip = LEARNED.encode("Eine Ledermaske", "source")
    assert strip.texts == ("<sos>", "eine", "leder", "##maske", "<eos>")
    assert not any(strip.unknown)
    assert LEARNED.text(strip.ids) == "eine ledermaske"


def test_what_was_typed_stays_on_screen() -> None:
    strip = LEARNED.encode("Leder☃x  <pad> ##er", "source")
    shown = "".join(text.removeprefix(CONTINUING) if len(text) > 2 else text for text in strip.texts[1:-1])
    assert shown == "leder☃x<pad>##er"
    assert {text for text, unknown in zip(strip.texts, strip.unknown, strict=True) if unknown} >= {"☃", "<", ">"}
    assert LEARNED.encode("lederλ", "source").texts[1:-1] == ("leder", "##λ")
    assert strip.special == (True, *[False] * (len(strip) - 2), True)
    assert not {1, 2, 3} & set(strip.ids[1:-1])


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_gives_a_strip_or_is_empty(text: str) -> None:
    try:
        strip = LEARNED.encode(text, "source")
    except EmptyText:
        assert not text.strip()
        return
    assert all((id_ == 0) == unknown for id_, unknown in zip(strip.ids, strip.unknown, strict=True))
    assert all(LEARNED.vocabulary[id_] == shown for shown, id_ in zip(strip.texts, strip.ids, strict=True) if id_)
    json.dumps(strip.texts).encode("utf-8")


def test_a_word_of_many_letters_takes_no_time_worth_mentioning() -> None:
    assert len(LEARNED.encode("leder" * 20_000, "source")) > 20_000


def test_pieces_come_back_from_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(LEARNED)))) == LEARNED
    assert "joins" not in to_json(WordTokenizer("words", SPECIALS))


@pytest.mark.parametrize(
    ("vocabulary", "joins"),
    [
        (["a", "##b", "ab"], ["a ##c"]),
        (["a", "##b"], ["a ##b"]),
        (["a", "##b", "ab"], ["a##b"]),
        (["a", "##b", "ab"], [""]),
        (["a", "##b", "ab"], ["a ##b "]),
        (["a", "##b", "ab", "a"], ["a ##b"]),
    ],
)
def test_joins_that_the_vocabulary_does_not_allow_are_refused(vocabulary: list[str], joins: list[str]) -> None:
    data: dict[str, Any] = {"split": "words", "vocabulary": [*SPECIALS, *vocabulary], "joins": joins}
    with pytest.raises(BadSetting, match=r"^tokenizer\.joins: “.*” is not accepted. Allowed: pairs of pieces of the vocabulary"):
        from_json(data)
