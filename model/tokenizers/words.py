"""Tokenizers: from typed text to the ids that a network reads, and back to words that can be shown.

A tokenizer is a way to split, a vocabulary, and what it adds around a text. Splitting loses nothing: a piece that the vocabulary
does not know keeps its text on screen, while the network is given the unknown token.
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

import spacy

from model.errors import BadSetting, EmptyText, TokenOutOfRange
from model.spec.validation import read
from model.tokenizers import bpe
from model.trace.types import Tokens

Split: TypeAlias = Literal["spacy-de", "spacy-en", "words", "basic-english", "characters"]

UNKNOWN, PAD, START, END = "<unk>", "<pad>", "<sos>", "<eos>"
SPECIALS = (UNKNOWN, PAD, START, END)
"""Texts of the ids 0, 1, 2, 3 in vocabularies built here, as in reference document 000 (docs/references.md)."""


class Tokenizer(Protocol):
    """What a model needs of its tokenizer."""

    def encode(self, text: str, name: str) -> Tokens:
        """The strip `name` of `text`, with what the tokenizer adds around it."""

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip `name` of ids that are taken as they are."""

    def text(self, ids: Sequence[int]) -> str:
        """Words joined by spaces, special tokens left out."""

    @property
    def size(self) -> int:
        """How many ids there are."""

    @property
    def ends(self) -> bool:
        """Whether an end token is added to a typed text."""


MOST_NEW_STRINGS = 5_000
"""Strings that spaCy may keep of the texts it has split; it never forgets one, so it is then replaced by a fresh one."""

LONGEST_SUFFIX = 64
"""Characters at the end of a word among which spaCy's suffixes are looked for first. Dots apart, they have at most five."""


class SpacySplit:
    """spaCy's rules of a language, in memory that does not grow with the words that were split, and in time that grows with the
    text alone.

    The library searches the whole rest of a word for each sign that it takes off either end: 8 s for 4,096 brackets.

    A memory zone of spaCy would forget the words too, but with them the cache that makes frequent words fast, and it is for one
    thread alone.

    Args:
        language: code, such as `de`.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._rules: Any = None
        self._most = 0

    def __call__(self, text: str) -> list[str]:
        """The words of a text, lower-cased."""
        rules = self._rules or self._fresh()
        words = [token.text.lower() for token in rules(text)]
        if self.strings > self._most:
            self._fresh()
        return words

    @property
    def strings(self) -> int:
        """How many strings spaCy keeps."""
        return len(self._rules.vocab.strings)

    def _fresh(self) -> Any:
        rules: Any = spacy.blank(self._language).tokenizer
        prefixes, suffixes = (getattr(rules, name).__self__ for name in ("prefix_search", "suffix_search"))  # re.Pattern
        rules.prefix_search = prefixes.match  # each of its alternatives begins with ^
        rules.suffix_search = partial(_suffix, suffixes)
        self._most = len(rules.vocab.strings) + MOST_NEW_STRINGS
        self._rules = rules
        return rules


def _suffix(suffixes: re.Pattern[str], word: str) -> re.Match[str] | None:
    """What `suffixes.search(word)` finds; each of the alternatives ends with $."""
    near = max(0, len(word) - LONGEST_SUFFIX)
    found = suffixes.search(word, near)
    return suffixes.search(word) if found and found.start() == near else found  # dots may begin earlier


def _words(text: str) -> list[str]:
    """What blanks part, lower-cased; signs stand alone, but for one between letters or digits: don't, 10:30, well-to-do."""
    return re.findall(r"\w+(?:['’.,:-]\w+)*|[^\w\s]", text.lower())


_BASIC_ENGLISH = str.maketrans({"'": " '  ", '"': "", ".": " . ", ",": " , ", "(": " ( ", ")": " ) ", "!": " ! ", "?": " ? "})


def basic_english(text: str) -> list[str]:
    """Words as torchtext's tokenizer "basic_english" splits them: lower-cased, punctuation apart, some of it dropped."""
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
    """The words of `text` by one of the ways to split; composed characters, outer blanks gone.

    By spaCy's rules, runs of blanks inside a text are words too, as in the tokenizer of reference document 000
    (docs/references.md).
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half of a character is none: it becomes U+FFFD
    return _SPLITS[split](unicodedata.normalize("NFC", whole).strip())


@dataclass(frozen=True)
class WordTokenizer:
    """A way to split, and a vocabulary of the words that training saw often enough.

    Attributes:
        split: the way.
        vocabulary: texts, the index is the id. The first four are SPECIALS.
        framed: whether a text stands between `<sos>` and `<eos>`; a language model's does not: it goes on.
        joins: how words are spelled in pieces of the vocabulary (model/tokenizers/bpe.py); none: a word is known as
            a whole or not at all.
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
        """How many ids there are."""
        return len(self.vocabulary)

    @property
    def ends(self) -> bool:
        """Whether an end token is added."""
        return self.framed

    def encode(self, text: str, name: str, spell: bpe.Speller | None = None) -> Tokens:
        """The words or their pieces, between `<sos>` and `<eos>` where texts are framed.

        Args:
            spell: takes the place of the one spelling that a word has, in training.

        Raises:
            EmptyText: there is nothing but blanks.
        """
        found = self._known(split_words(text, self.split), spell)
        if not found:
            raise EmptyText(what=f"{name} text")
        words, ids = zip(*found, strict=True)
        strip = Tokens(name, ids, words, (False,) * len(ids), tuple(id_ == SPECIALS.index(UNKNOWN) for id_ in ids))
        if not self.framed:
            return strip
        first, last = (self.tokens([SPECIALS.index(text)], name) for text in (START, END))
        return first.then(strip).then(last)

    def _known(self, words: Iterable[str], spell: bpe.Speller | None) -> list[tuple[str, int]]:
        """Words, or the pieces that they are spelled with, and their ids; runs of blanks are no word where words are spelled."""
        if not self.joins:
            return [(word, self.ids.get(word, SPECIALS.index(UNKNOWN))) for word in words]
        spell = spell or self._spell
        return [piece for word in words if not word.isspace() for piece in spell(word)]

    @cached_property
    def _spell(self) -> bpe.Speller:
        return bpe.speller(self.vocabulary, self.joins)

    def varied(self, share: float, chance: Random) -> bpe.Speller:
        """Spells words with other pieces each time, a share of the joins left out (model/tokenizers/bpe.py)."""
        return bpe.varied_speller(self.vocabulary, self.joins, share, chance)

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of `ids`, with the vocabulary's texts.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        for id_ in ids:
            if not 0 <= id_ < self.size:
                raise TokenOutOfRange(what=name, found=id_, last=f"{self.size - 1:,}")
        return Tokens(
            name,
            tuple(ids),
            tuple(self.vocabulary[i] for i in ids),
            tuple(0 < i < len(SPECIALS) for i in ids),
            tuple(i == 0 for i in ids),
        )

    def text(self, ids: Sequence[int]) -> str:
        """Words joined by spaces, characters by nothing, without start, end and padding."""
        return self.joined(self.vocabulary[i] for i in ids if i == 0 or i >= len(SPECIALS))

    def joined(self, words: Iterable[str]) -> str:
        """Words as one text, as far as the way to split allows: blanks that it dropped stay away. Pieces become words."""
        text = ("" if self.split == "characters" else " ").join(words)
        return text.replace(f" {bpe.CONTINUING}", "") if self.joins else text


def learn_vocabulary(texts: Iterable[str], split: Split, min_freq: int, framed: bool = True) -> WordTokenizer:
    """The words that occur at least `min_freq` times, the most frequent first, equal ones in alphabetical order.

    A text that is written like a special token, such as a corpus' own `<unk>`, is no word.
    """
    counts = Counter(word for text in texts for word in split_words(text, split) if word not in SPECIALS)
    words = sorted((word for word, n in counts.items() if n >= min_freq), key=lambda word: (-counts[word], word))
    return WordTokenizer(split, SPECIALS + tuple(words), framed)


def learn_pieces(texts: Iterable[str], split: Split, size: int, framed: bool = True) -> WordTokenizer:
    """Words and pieces of words that the texts are best spelled with, `size` at most, special tokens counted."""
    words = ([word for word in split_words(text, split) if not word.isspace()] for text in texts)
    vocabulary, joins = bpe.learn(words, size, SPECIALS)
    return WordTokenizer(split, vocabulary, framed, joins)


def to_json(tokenizer: WordTokenizer) -> dict[str, Any]:
    """The tokenizer as plain JSON values."""
    plain: dict[str, Any] = {"split": tokenizer.split, "framed": tokenizer.framed, "vocabulary": list(tokenizer.vocabulary)}
    return plain | ({"joins": list(tokenizer.joins)} if tokenizer.joins else {})


def from_json(data: Any) -> WordTokenizer:
    """The tokenizer in JSON values, every field checked.

    Raises:
        BadSetting: an unknown field, an unknown way to split, a vocabulary that is no list of texts beginning with SPECIALS, or
            joins that its pieces do not allow.
    """
    tokenizer = read(WordTokenizer, data, "tokenizer")
    if tokenizer.vocabulary[: len(SPECIALS)] != SPECIALS:
        found = ", ".join(tokenizer.vocabulary[: len(SPECIALS)])
        raise BadSetting(name="tokenizer.vocabulary", found=found, allowed=f"a list of texts beginning {', '.join(SPECIALS)}")
    if tokenizer.joins and (wrong := bpe.misfit(tokenizer.vocabulary, tokenizer.joins)) is not None:
        raise BadSetting(name="tokenizer.joins", found=wrong, allowed="pairs of pieces of the vocabulary that join to one of it")
    return tokenizer
