"""Tokenizers: from typed text to the ids that a network reads, and back to words that can be shown.

A tokenizer is a way to split, a vocabulary, and what it adds around a text. Splitting loses nothing: a piece that the vocabulary
does not know keeps its text on screen, while the network is given the unknown token.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, Protocol, TypeAlias

import spacy

from model.errors import BadSetting, EmptyText, TokenOutOfRange
from model.trace import Tokens

Split: TypeAlias = Literal["spacy-de", "spacy-en"]

UNKNOWN, PAD, START, END = "<unk>", "<pad>", "<sos>", "<eos>"
SPECIALS = (UNKNOWN, PAD, START, END)
"""Texts of the ids 0, 1, 2, 3 in vocabularies built here, as in reference document 000."""


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


@cache
def _spacy(language: str) -> Callable[[str], Iterable[Any]]:
    tokenizer: Callable[[str], Iterable[Any]] = spacy.blank(language).tokenizer
    return tokenizer


def split_words(text: str, split: Split) -> list[str]:
    """The lower-cased words of `text` by spaCy's rules for one language; composed characters, outer blanks gone.

    Runs of blanks inside a text are words too, as in the tokenizer that reference document 000 uses.
    """
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half of a character is none: it becomes U+FFFD
    language = split.removeprefix("spacy-")
    return [token.text.lower() for token in _spacy(language)(unicodedata.normalize("NFC", whole).strip())]


@dataclass(frozen=True)
class WordTokenizer:
    """Words by spaCy's rules, and a vocabulary of those that training saw often enough.

    Attributes:
        split: the rules.
        vocabulary: texts, the index is the id. The first four are SPECIALS.
    """

    split: Split
    vocabulary: tuple[str, ...]

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
        """An end token is added."""
        return True

    def encode(self, text: str, name: str) -> Tokens:
        """`<sos>`, the words, `<eos>`.

        Raises:
            EmptyText: there is nothing but blanks.
        """
        words = split_words(text, self.split)
        if not words:
            raise EmptyText(what=f"{name} text")
        unknown_id = SPECIALS.index(UNKNOWN)
        ids = [self.ids.get(word, unknown_id) for word in words]
        return Tokens(
            name,
            ids=(SPECIALS.index(START), *ids, SPECIALS.index(END)),
            texts=(START, *words, END),
            special=(True, *(False for _ in words), True),
            unknown=(False, *(i == unknown_id for i in ids), False),
        )

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of `ids`, with the vocabulary's texts.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        for id_ in ids:
            if not 0 <= id_ < self.size:
                raise TokenOutOfRange(what=name, found=id_, size=self.size)
        return Tokens(
            name,
            tuple(ids),
            tuple(self.vocabulary[i] for i in ids),
            tuple(0 < i < len(SPECIALS) for i in ids),
            tuple(i == 0 for i in ids),
        )

    def text(self, ids: Sequence[int]) -> str:
        """Words joined by spaces, without start, end and padding."""
        return " ".join(self.vocabulary[i] for i in ids if i == 0 or i >= len(SPECIALS))


def learn_vocabulary(texts: Iterable[str], split: Split, min_freq: int) -> WordTokenizer:
    """The words that occur at least `min_freq` times, the most frequent first, equal ones in alphabetical order."""
    counts = Counter(word for text in texts for word in split_words(text, split))
    words = sorted((word for word, n in counts.items() if n >= min_freq), key=lambda word: (-counts[word], word))
    return WordTokenizer(split, SPECIALS + tuple(words))


def to_json(tokenizer: WordTokenizer) -> dict[str, Any]:
    """The tokenizer as plain JSON values."""
    return {"split": tokenizer.split, "vocabulary": list(tokenizer.vocabulary)}


def from_json(data: Any) -> WordTokenizer:
    """The tokenizer in JSON values.

    Raises:
        BadSetting: an unknown way to split, or a vocabulary that is no list of texts beginning with SPECIALS.
    """
    split, vocabulary = (data.get("split"), data.get("vocabulary")) if isinstance(data, dict) else (None, None)
    if split not in ("spacy-de", "spacy-en"):
        raise BadSetting(name="tokenizer split", found=split, allowed="spacy-de or spacy-en")
    if not isinstance(vocabulary, list) or tuple(vocabulary[:4]) != SPECIALS or not all(isinstance(t, str) for t in vocabulary):
        raise BadSetting(
            name="tokenizer vocabulary", found=type(vocabulary).__name__, allowed=f"a list of texts beginning {SPECIALS}"
        )
    return WordTokenizer(split, tuple(vocabulary))
