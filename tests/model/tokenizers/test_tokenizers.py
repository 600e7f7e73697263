"""Words and ids: nothing typed is lost, interpreted, or mistaken for a special token."""

import json
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSetting, EmptyText, TokenOutOfRange
from model.tokenizers.words import (
    LONGEST_SUFFIX,
    SPECIALS,
    SpacySplit,
    Split,
    WordTokenizer,
    _suffix,
    from_json,
    learn_vocabulary,
    split_words,
    to_json,
)

WORDS = ("hund", "ein", "<pad>", "ball", ".", "schnee")
TOKENIZER = WordTokenizer("spacy-de", SPECIALS + WORDS)
SPLITS: tuple[Split, ...] = ("spacy-de", "spacy-en", "words", "characters")  # those that lose nothing but blanks

HOSTILE = {
    "markup": "</script><img src=x onerror=alert(1)>",
    "special tokens": "<pad> <sos> <eos> <unk>",
    "NUL and controls": "ein\x00hund\x07\x1b[31m \x7f",
    "right to left": "שלום עולם \u202eabc\u202c",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 👍🏽",
    "Chinese": "一只狗在雪地里玩球",
    "combining": "e\u0301\u0323\u0308 a\u030a",
    "half a character": "ein \ud800 hund \udfff",
    "formulas": "$x$ **b** :red[x] `code` {gap} %s",
    "line ends": "ein\nhund\r\n\u2028ball\tx",
    "one letter": "x",
    "no blank": "x" * 20_000,
    "2,000 words": "hund " * 2_000,
}


def test_words_are_those_of_spacy_lower_cased() -> None:
    text = "Zwei junge Hunde spielen z.B. mit Peters Ball (im Schnee)!"
    assert split_words(text, "spacy-de") == [token.text.lower() for token in spacy.blank("de").tokenizer(text)]
    assert split_words("Don't stop: it's U.S. time.", "spacy-en") == ["do", "n't", "stop", ":", "it", "'s", "u.s.", "time", "."]


UNTOUCHED: dict[str, Any] = {language: spacy.blank(language) for language in ("de", "en")}
HARD = st.text(st.sampled_from("()[]\"'.,:;!?-/…$€%°0159aAzZmkgKF中http@_\u200d😀 "), max_size=300)


@pytest.mark.parametrize("language", ["de", "en"])
@given(HARD, st.sampled_from(["", "." * 70, "." * 64, "(" * 130, "km" * 40, "9" * 70 + "€", "a" * 61 + "..."]))
def test_words_are_those_of_spacy_where_words_are_long_and_full_of_signs(language: str, text: str, long: str) -> None:
    expected = [token.text.lower() for token in UNTOUCHED[language].tokenizer((text + long).strip())]
    assert split_words(text + long, f"spacy-{language}") == expected  # type: ignore[arg-type]  # one of Split


@pytest.mark.parametrize("sign", ["(", "):", "'", "€"])
def test_a_word_of_4096_signs_takes_as_long_as_so_many_signs_apart_and_not_the_square(sign: str) -> None:
    searched: list[int] = []
    suffixes = UNTOUCHED["en"].tokenizer.suffix_search.__self__

    class Counting:
        def search(self, word: str, start: int = 0) -> re.Match[str] | None:
            searched.append(len(word) - start)
            found: re.Match[str] | None = suffixes.search(word, start)
            return found

    word = (sign * 4096)[:4096]
    while word and (found := _suffix(Counting(), word)):  # type: ignore[arg-type]
        word = word[: found.start()]
    assert sum(searched) <= 4096 * (LONGEST_SUFFIX + 1)


@pytest.mark.parametrize(
    ("split", "text", "words"),
    [
        ("words", "Call us. Don't: it's 10:30!", ["call", "us", ".", "don't", ":", "it's", "10:30", "!"]),
        ("words", "(Well-known) “3.5,” he said...", ["(", "well-known", ")", "“", "3.5", ",", "”", "he", "said", ".", ".", "."]),
        ("characters", "联系 我们。Tom", ["联", "系", "我", "们", "。", "T", "o", "m"]),
        ("characters", "2718", ["2", "7", "1", "8"]),
        ("basic-english", 'It\'s "so"; he (Tom) left: yes!', ["it", "'", "s", "so", "he", "(", "tom", ")", "left", "yes", "!"]),
        ("basic-english", "the <unk> 's<br />end , 3.5", ["the", "<unk>", "'", "s", "end", ",", "3", ".", "5"]),
    ],
)
def test_words_by_the_other_ways_to_split(split: Split, text: str, words: list[str]) -> None:
    assert split_words(text, split) == words


@given(st.text(max_size=60))
def test_basic_english_does_what_torchtext_writes_as_replacements_in_turn(text: str) -> None:
    """The rules as torchtext documents them: one pattern after the other on the lower-cased text, then split on blanks."""
    expected = unicodedata.normalize("NFC", text).strip().lower()
    rules = [("'", " '  "), ('"', ""), (r"\.", " . "), ("<br />", " "), (",", " , "), (r"\(", " ( "), (r"\)", " ) ")]
    for pattern, replacement in [*rules, (r"\!", " ! "), (r"\?", " ? "), (";", " "), (":", " "), (r"\s+", " ")]:
        expected = re.sub(pattern, replacement, expected)
    assert split_words(text, "basic-english") == expected.split()


@given(st.text(max_size=60), st.sampled_from(["words", "characters"]))
def test_what_is_split_is_all_there_but_blanks(text: str, split: Split) -> None:
    words = split_words(text, split)
    assert not any(character.isspace() for word in words for character in word)
    joined = unicodedata.normalize("NFC", text) if split == "characters" else unicodedata.normalize("NFC", text).lower()
    assert "".join(words) == "".join(joined.split())


def test_a_text_without_a_frame_goes_on() -> None:
    open_ended = WordTokenizer("spacy-de", SPECIALS + WORDS, framed=False)
    assert open_ended.encode("ein hund", "source").texts == ("ein", "hund")
    assert (open_ended.ends, TOKENIZER.ends) == (False, True)
    assert from_json(json.loads(json.dumps(to_json(open_ended)))) == open_ended


def test_characters_are_joined_without_blanks() -> None:
    learned = learn_vocabulary(["联系我们。"], "characters", 1)
    assert learned.text(learned.encode("我们。", "target").ids) == "我们。"


def test_a_corpus_own_unknown_word_is_the_unknown_token() -> None:
    learned = learn_vocabulary(["the <unk> <eos> the"], "basic-english", 1, framed=False)
    assert learned.vocabulary == (*SPECIALS, "the")
    assert learned.encode("the <unk>", "source").ids == (4, 0)


def test_composed_and_decomposed_letters_are_one_word() -> None:
    decomposed = unicodedata.normalize("NFD", "Übergröße Mädchen")
    assert decomposed != "Übergröße Mädchen"
    assert split_words(decomposed, "spacy-de") == split_words("Übergröße Mädchen", "spacy-de") == ["übergröße", "mädchen"]


def test_a_text_gets_its_start_and_end_and_unknown_words_keep_their_text() -> None:
    strip = TOKENIZER.encode("Ein Einhorn, ein Ball.", "source")
    assert strip.name == "source"
    assert strip.texts == ("<sos>", "ein", "einhorn", ",", "ein", "ball", ".", "<eos>")
    assert strip.ids == (2, 5, 0, 0, 5, 7, 8, 3)
    assert strip.special == (True, False, False, False, False, False, False, True)
    assert strip.unknown == (False, False, True, True, False, False, False, False)


def test_a_typed_special_token_is_text_like_any_other() -> None:
    assert TOKENIZER.ids == {word: 4 + i for i, word in enumerate(WORDS)}
    pad = split_words("<pad>", "spacy-de")
    assert "".join(pad) == "<pad>"
    for text in SPECIALS:
        strip = TOKENIZER.encode(f"hund {text} hund", "source")
        assert strip.special == (True, *[False] * (len(strip) - 2), True)
        assert not {1, 2, 3} & set(strip.ids[1:-1])
    whole = WordTokenizer("spacy-de", (*SPECIALS, "<", "pad", ">"))
    assert whole.encode("<pad>", "source").ids == (2, *(whole.ids[piece] for piece in pad), 3)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_is_text(text: str, split: Split) -> None:
    strip = WordTokenizer(split, SPECIALS + WORDS).encode(text, "source")
    assert len(strip.ids) == len(strip.texts) == len(strip.special) == len(strip.unknown) == len(strip)
    assert strip.texts[0] == "<sos>"
    assert strip.texts[-1] == "<eos>"
    assert not any(strip.special[1:-1])
    blanks = "".join(text.split()).replace("\ud800", "\ufffd").replace("\udfff", "\ufffd")
    whole = unicodedata.normalize("NFC", blanks)
    assert "".join("".join(strip.texts[1:-1]).split()) == (whole if split == "characters" else whole.lower())
    json.dumps(strip.texts).encode("utf-8")
    "".join(strip.texts).encode("utf-8")


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("text", ["", " ", "\n\t\r ", "\u00a0\u2003\u2028\u3000", "\x1c\x1d"])
def test_nothing_but_blanks_is_refused_in_words(text: str, split: Split) -> None:
    with pytest.raises(EmptyText) as caught:
        WordTokenizer(split, SPECIALS).encode(text, "source")
    assert str(caught.value) == "The source text is empty. Type at least one word."


@given(st.text(st.characters(codec=None), max_size=40))
def test_any_text_gives_a_strip_or_is_empty(text: str) -> None:
    try:
        strip = TOKENIZER.encode(text, "source")
    except EmptyText:
        assert not text.strip()
        return
    assert all(0 <= id_ < TOKENIZER.size for id_ in strip.ids)
    assert all(word and (WORDS[id_ - 4] == word if id_ else unknown) for word, id_, unknown in inner(strip))


def inner(strip: Any) -> list[tuple[str, int, bool]]:
    return list(zip(strip.texts, strip.ids, strip.unknown, strict=True))[1:-1]


def test_ids_are_taken_as_they_are() -> None:
    strip = TOKENIZER.tokens([2, 0, 4, 1, 1], "target")
    assert strip.ids == (2, 0, 4, 1, 1)
    assert strip.texts == ("<sos>", "<unk>", "hund", "<pad>", "<pad>")
    assert strip.special == (True, False, False, True, True)
    assert strip.unknown == (False, True, False, False, False)


@pytest.mark.parametrize("id_", [-1, -4, 10, 10**12])
def test_an_id_that_the_vocabulary_does_not_have_is_refused_in_words(id_: int) -> None:
    with pytest.raises(TokenOutOfRange) as caught:
        TOKENIZER.tokens([2, id_], "source")
    assert str(caught.value) == f"The source has no token with the id {id_}: its ids run from 0 to 9."


def test_text_leaves_out_start_end_and_padding_but_not_what_is_unknown() -> None:
    assert TOKENIZER.text([2, 5, 0, 4, 3, 1, 1]) == "ein <unk> hund"


def test_a_vocabulary_is_learned_by_frequency_then_alphabet() -> None:
    learned = learn_vocabulary(["b a c", "B a d", "b", "E"], "spacy-en", min_freq=1)
    assert learned.vocabulary == (*SPECIALS, "b", "a", "c", "d", "e")
    assert learn_vocabulary(["b a c", "B a d", "b"], "spacy-en", min_freq=2).vocabulary == (*SPECIALS, "b", "a")
    assert learned.size == 9


def test_a_learned_vocabulary_never_holds_a_special_token_twice_by_accident() -> None:
    learned = learn_vocabulary(["<unk> <unk>"] * 3, "spacy-en", min_freq=1)
    assert learned.encode("<unk>", "source").special == (True, *[False] * (len(learned.encode("<unk>", "source")) - 2), True)


def test_a_tokenizer_comes_back_from_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(TOKENIZER)))) == TOKENIZER


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"split": "spacy-xx", "vocabulary": list(SPECIALS)},
        {"split": "spacy-de"},
        {"split": ["spacy-de"], "vocabulary": list(SPECIALS)},
        {"split": "spacy-de", "vocabulary": "<unk><pad>"},
        {"split": "spacy-de", "vocabulary": ["<pad>", "<unk>", "<sos>", "<eos>"]},
        {"split": "spacy-de", "vocabulary": [*SPECIALS, 4]},
        {"split": "spacy-de", "vocabulary": []},
        {"split": "spacy-de", "vocabulary": list(SPECIALS), "framed": 1},
        {"split": "spacy-de", "vocabulary": list(SPECIALS), "lower": True},
    ],
    ids=str,
)
def test_what_is_no_tokenizer_is_refused_in_words(data: Any) -> None:
    with pytest.raises(BadSetting, match=r"^tokenizer(\.split|\.vocabulary(\[4\])?|\.framed)?(: “.*” is not| has no field)"):
        from_json(data)


def test_threads_share_a_tokenizer() -> None:
    texts = [f"Hund{i} spielt's z.B. mit Ball{i % 7}." for i in range(400)]
    alone = [split_words(text, "spacy-de") for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda text: split_words(text, "spacy-de"), texts)) == alone


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "en"])
def test_spacy_does_not_keep_every_word_that_was_ever_typed(language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.tokenizers.words.MOST_NEW_STRINGS", 500)
    split, chance = SpacySplit(language), Random(3)
    split("a first word")
    before, most = split.strings, 0
    for _ in range(12):
        words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(100)]
        assert split(" ".join(words)) == words
        most = max(most, split.strings)
    assert before < most <= before + 500
    assert split("Don't stop.") == SpacySplit(language)("Don't stop.")
