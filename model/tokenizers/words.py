"""Word tokenizers: from typed text to the ids that a network reads, and back to text.

A tokenizer has a way to split texts, a vocabulary, and special tokens that it adds. A word that is not in the vocabulary keeps its
text on screen; the network is given the unknown token instead.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from random import Random
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from model.errors import BadSetting, EmptyText, TokenOutOfRange, phrase
from model.requests.validation import read
from model.tokenizers import bpe
from model.trace.types import Tokens

Split: TypeAlias = Literal["spacy-de", "spacy-en", "words", "basic-english", "characters"]
"""Ways to split a text into words; the first two are spaCy's."""

UNKNOWN, PAD, START, END = "<unk>", "<pad>", "<sos>", "<eos>"
SPECIALS = (UNKNOWN, PAD, START, END)
"""Texts of the ids 0, 1, 2, 3 in vocabularies built here, as in reference document 000 (docs/references.md)."""


class Tokenizer(Protocol):
    """The interface of a tokenizer."""

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of `text`, with the special tokens that the tokenizer adds."""

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip `name` of ids, which are used as they are."""

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids: words joined by spaces, without special tokens."""

    @property
    def size(self) -> int:
        """Number of ids."""

    @property
    def ends(self) -> bool:
        """Whether an end token is added to a typed text."""


MOST_NEW_STRINGS = 5_000
"""Strings that spaCy may store before its tokenizer is replaced by a new one; it never frees a string of the texts it has split."""

LONGEST_SUFFIX = 64
"""Characters at the end of a word in which spaCy's suffixes are searched first. Apart from rows of dots they have at most five."""


class SpacySplit:
    """spaCy's tokenizer of a language, with bounded memory and linear time.

    Memory: spaCy stores every word that it has seen. Its memory zones would free them, but they would also clear the cache that
    makes frequent words fast, and they work in one thread only. So the tokenizer is replaced when it has stored too many strings.

    Time: for each character that spaCy takes off either end of a word it searches the whole rest of the word, which takes 8 s for
    4,096 brackets. So the search is limited to the ends.

    Args:
        language: language code, such as `de`.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._rules: Any = None
        self._most = 0

    def __call__(self, text: str) -> list[str]:
        """The words of a text, lower-cased."""
        rules = self._rules or self._fresh()
        words = [token.text.lower() for token in rules(text)]
        # a new tokenizer forgets the words of all texts so far
        if self.strings > self._most:
            self._fresh()
        return words

    @property
    def strings(self) -> int:
        """Number of strings that spaCy stores."""
        return len(self._rules.vocab.strings)

    def _fresh(self) -> Any:
        import spacy  # takes a second, and many networks read no words of spaCy's

        rules: Any = spacy.blank(self._language).tokenizer
        prefixes, suffixes = (getattr(rules, name).__self__ for name in ("prefix_search", "suffix_search"))  # re.Pattern
        rules.prefix_search = prefixes.match  # each of its alternatives begins with ^
        rules.suffix_search = partial(_suffix, suffixes)
        self._most = len(rules.vocab.strings) + MOST_NEW_STRINGS
        self._rules = rules
        return rules


def _suffix(suffixes: re.Pattern[str], word: str) -> re.Match[str] | None:
    """The match of `suffixes.search(word)`, found faster: every alternative of the pattern ends with $."""
    # a match that begins where the search began may be part of a longer one
    near = max(0, len(word) - LONGEST_SUFFIX)
    match = suffixes.search(word, near)
    return suffixes.search(word) if match and match.start() == near else match  # dots may begin earlier


def _words(text: str) -> list[str]:
    """Lower-cased words. A punctuation mark is a word, except one mark between letters or digits: don't, 10:30, well-to-do."""
    return re.findall(r"\w+(?:['’.,:-]\w+)*|[^\w\s]", text.lower())


_BASIC_ENGLISH = str.maketrans({"'": " '  ", '"': "", ".": " . ", ",": " , ", "(": " ( ", ")": " ) ", "!": " ! ", "?": " ? "})


def basic_english(text: str) -> list[str]:
    """Words as torchtext's tokenizer "basic_english" splits them: lower-cased, punctuation separate, some of it dropped."""
    return re.sub("<br />|[;:]", " ", text.lower().translate(_BASIC_ENGLISH)).split()


def _characters(text: str) -> list[str]:
    return [character for character in text if not character.isspace()]


_SPLITS: Mapping[Split, Callable[[str], list[str]]] = MappingProxyType(
    {
        "spacy-de": SpacySplit("de"),
        "spacy-en": SpacySplit("en"),
        "words": _words,
        "basic-english": basic_english,
        "characters": _characters,
    }
)


def split_words(text: str, split: Split) -> list[str]:
    """The words of `text`, after Unicode composition (NFC) and without blanks at either end.

    With spaCy, runs of blanks inside a text are words too, as in the tokenizer of reference document 000 (docs/references.md).
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # a lone surrogate becomes U+FFFD
    return _SPLITS[split](unicodedata.normalize("NFC", whole).strip())


@dataclass(frozen=True)
class WordTokenizer:
    """A way to split texts, and a vocabulary of the words that were frequent enough in training.

    Attributes:
        split: the way to split.
        vocabulary: the text of each id; the index is the id. The first four are SPECIALS.
        framed: whether a text is put between `<sos>` and `<eos>`; not for a language model, which continues it.
        joins: the joins of a byte pair encoding (model/tokenizers/bpe.py), which splits words into pieces; empty: words are not
            split.
    """

    split: Split
    vocabulary: tuple[str, ...]
    framed: bool = True
    joins: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id by text, without the special tokens: a typed "<pad>" is text like any other."""
        return {text: i for i, text in enumerate(self.vocabulary) if i >= len(SPECIALS)}

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.vocabulary)

    @property
    def ends(self) -> bool:
        """Whether an end token is added."""
        return self.framed

    def encode(self, text: str, name: str, spell: bpe.Speller | None = None) -> Tokens:
        """The strip of a text: its words or their pieces, between `<sos>` and `<eos>` where texts are framed.

        Args:
            spell: splits words into pieces in place of the usual rules; for training.

        Raises:
            EmptyText: the text holds only blanks.
        """
        words = split_words(text, self.split)
        # with joins a word has a piece for each part, else it is one piece, known or not
        if self.joins:  # runs of blanks are dropped where words are split into pieces
            spell = spell or self._spell
            pieces = [piece for word in words if not word.isspace() for piece in spell(word)]
        else:
            pieces = [(word, self.ids.get(word, SPECIALS.index(UNKNOWN))) for word in words]
        if not pieces:
            raise EmptyText(strip=name)
        texts, ids = zip(*pieces, strict=True)
        strip = Tokens(name, ids, texts, (False,) * len(ids), tuple(id_ == SPECIALS.index(UNKNOWN) for id_ in ids))
        if not self.framed:
            return strip
        first, last = (self.tokens([SPECIALS.index(text)], name) for text in (START, END))
        return first.then(strip).then(last)

    @cached_property
    def _spell(self) -> bpe.Speller:
        return bpe.speller(self.vocabulary, self.joins)

    def varied(self, share: float, chance: Random) -> bpe.Speller:
        """BPE-dropout: a function that splits words into varying pieces by skipping joins (model/tokenizers/bpe.py)."""
        return bpe.varied_speller(self.vocabulary, self.joins, share, chance)

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of `ids`, with the vocabulary's texts.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        check_ids(name, ids, self.size)
        count = len(SPECIALS)
        return Tokens(
            name,
            tuple(ids),
            tuple(map(self.vocabulary.__getitem__, ids)),
            tuple([0 < i < count for i in ids]),
            tuple([i == 0 for i in ids]),
        )

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, without start, end and padding tokens: words joined by spaces, characters without."""
        return self.joined(self.vocabulary[i] for i in ids if i == 0 or i >= len(SPECIALS))

    def joined(self, words: Iterable[str]) -> str:
        """Joins words, or pieces of words, into one text. Blanks that splitting dropped do not come back."""
        text = ("" if self.split == "characters" else " ").join(words)
        return text.replace(f" {bpe.CONTINUING}", "") if self.joins else text


def learn_vocabulary(texts: Iterable[str], split: Split, min_freq: int, framed: bool = True) -> WordTokenizer:
    """A tokenizer with the words that occur at least `min_freq` times: by frequency, then alphabetically.

    Words that are written like a special token, such as the `<unk>` in some corpora, are left out.
    """
    counts = Counter(word for text in texts for word in split_words(text, split) if word not in SPECIALS)
    words = sorted((word for word, n in counts.items() if n >= min_freq), key=lambda word: (-counts[word], word))
    return WordTokenizer(split, SPECIALS + tuple(words), framed)


def learn_pieces(texts: Iterable[str], split: Split, size: int, framed: bool = True) -> WordTokenizer:
    """A tokenizer with at most `size` words and pieces of words, special tokens included, learned by byte pair encoding."""
    words = ([word for word in split_words(text, split) if not word.isspace()] for text in texts)
    vocabulary, joins = bpe.learn(words, size, SPECIALS)
    return WordTokenizer(split, vocabulary, framed, joins)


def to_json(tokenizer: WordTokenizer) -> dict[str, Any]:
    """The tokenizer as plain JSON values."""
    plain: dict[str, Any] = {"split": tokenizer.split, "framed": tokenizer.framed, "vocabulary": list(tokenizer.vocabulary)}
    return plain | ({"joins": list(tokenizer.joins)} if tokenizer.joins else {})


def from_json(data: Any) -> WordTokenizer:
    """Reads a tokenizer from JSON values; every field is checked.

    Raises:
        BadSetting: a field or the way to split is unknown, the vocabulary does not begin with SPECIALS, or the joins do not fit it.
    """
    tokenizer = read(WordTokenizer, data, "tokenizer")
    if tokenizer.vocabulary[: len(SPECIALS)] != SPECIALS:
        first = ", ".join(tokenizer.vocabulary[: len(SPECIALS)])
        raise BadSetting(
            name="tokenizer.vocabulary",
            found=first,
            allowed=phrase("a list of strings that begins with {names}", names=", ".join(SPECIALS)),
        )
    if tokenizer.joins and (wrong := bpe.misfit(tokenizer.vocabulary, tokenizer.joins)) is not None:
        raise BadSetting(
            name="tokenizer.joins", found=wrong, allowed=phrase("pairs of pieces of the vocabulary that join to one of it")
        )
    return tokenizer


def check_ids(name: str, ids: Iterable[int], size: int) -> None:
    """Checks that a vocabulary of `size` texts has all of `ids`.

    Args:
        name: what the ids are, `source`, `target` or `begin`; the error says it.

    Raises:
        TokenOutOfRange: it does not have one of them.
    """
    for id_ in ids:
        if not 0 <= id_ < size:
            raise TokenOutOfRange(found=id_, last=size - 1, strip=name)
