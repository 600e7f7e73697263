"""Tokenizers for checkpoints of other programs: a vocabulary file, a way to split texts, and the ids of special tokens.

Without a vocabulary, ids are shown as numbers, and typed text is refused with an error that says what to give.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from model.errors import BadSetting, DoesNotFit, EmptyText, HeadlightError, NoVocabulary, phrase
from model.requests.validation import read
from model.tokenizers import words
from model.tokenizers.words import Tokenizer, WordTokenizer, basic_english, check_ids, split_words
from model.trace.types import Tokens

STARTS, ENDS = ("<sos>", "<bos>", "<s>"), ("<eos>", "</s>")
PADS, UNKNOWNS = ("<pad>", "[PAD]"), ("<unk>", "[UNK]")
"""Texts that special tokens have in common vocabularies."""

_MOST_DIGITS = 12

SPLITS: Mapping[str, Callable[[str], list[str]]] = MappingProxyType(
    {
        "spacy-de": lambda text: split_words(text, "spacy-de"),
        "spacy-en": lambda text: split_words(text, "spacy-en"),
        "split": str.split,
        "chars": list,
        "basic-english": basic_english,
    }
)
"""Functions that split a text, by the names that `--set tokenizer=` takes."""


@dataclass(frozen=True)
class Specials:
    """Ids of the special tokens; None: there is none, or it is not known."""

    pad: int | None = None
    start: int | None = None
    end: int | None = None
    unknown: int | None = None

    def __contains__(self, id_: int) -> bool:
        """Whether an id is that of padding, start or end."""
        return id_ in (self.pad, self.start, self.end)


@dataclass(frozen=True)
class IdTokenizer:
    """The tokenizer of a checkpoint whose vocabulary is not known: it reads and shows ids as numbers.

    Attributes:
        size: number of ids.
        specials: ids of the special tokens.
    """

    size: int
    specials: Specials = Specials()

    @property
    def ends(self) -> bool:
        """False: no end token is added."""
        return False

    def encode(self, text: str, name: str) -> Tokens:
        """Reads ids that were typed with blanks or commas between them.

        Raises:
            EmptyText: the text holds only blanks.
            NoVocabulary: something other than ids was typed; the message says what to give instead.
            TokenOutOfRange: there is no such id.
        """
        typed = text.replace(",", " ").split()
        if not typed:
            raise EmptyText(strip=name)
        if all(word.isascii() and word.isdigit() and len(word) < _MOST_DIGITS for word in typed):
            return self.tokens([int(word) for word in typed], name)
        raise self.refusal(text if len(text) < 80 else f"{text[:80]}…", name)

    def refusal(self, text: str, name: str) -> HeadlightError:
        """The error for a text that cannot be read; its message says what to do."""
        return NoVocabulary(strip=name, found=text)

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of ids, each shown as its number.

        Raises:
            TokenOutOfRange: there is no such id.
        """
        return _strip(ids, name, self.size, str, self.specials)

    def text(self, ids: Sequence[int]) -> str:
        """Ids joined by spaces, special ones left out."""
        return " ".join(str(id_) for id_ in ids if id_ not in self.specials)


@dataclass(frozen=True)
class VocabularyTokenizer:
    """A tokenizer made of a way to split texts and a vocabulary in any order.

    Attributes:
        split: a name in SPLITS.
        vocabulary: the text of each id; the index is the id.
        specials: ids of the special tokens.
        starts, ends: whether a start and an end token are added to a typed text.
    """

    split: str
    vocabulary: tuple[str, ...]
    specials: Specials
    starts: bool
    ends: bool

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id by text; where a text occurs twice, its first id."""
        return {text: id_ for id_, text in reversed(list(enumerate(self.vocabulary)))}

    @property
    def size(self) -> int:
        """How many ids there are."""
        return len(self.vocabulary)

    def encode(self, text: str, name: str) -> Tokens:
        """Splits `text` and looks each piece up, first as typed, then in lower case.

        Raises:
            EmptyText: the text holds only blanks.
            BadSetting: a piece is not in the vocabulary, and there is no unknown token.
        """
        pieces = SPLITS[self.split](text)
        if not pieces or not text.strip():
            raise EmptyText(strip=name)
        # a vocabulary of lower-case words reads capitals as well
        ids = [self.ids.get(piece, self.ids.get(piece.lower(), self.specials.unknown)) for piece in pieces]
        for piece, id_ in zip(pieces, ids, strict=True):
            if id_ is None:
                raise DoesNotFit(name=name, reason=phrase("“{piece}” is not in the vocabulary, which has no <unk>", piece=piece))
        middle = Tokens(
            name,
            tuple(id_ for id_ in ids if id_ is not None),
            tuple(pieces),
            tuple(id_ in self.specials for id_ in ids if id_ is not None),
            tuple(id_ == self.specials.unknown and piece not in UNKNOWNS for piece, id_ in zip(pieces, ids, strict=True)),
        )
        first = self.tokens(_present(self.starts, self.specials.start), name)
        last = self.tokens(_present(self.ends, self.specials.end), name)
        return first.then(middle).then(last)

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of ids with the vocabulary's texts.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        return _strip(ids, name, self.size, self.vocabulary.__getitem__, self.specials)

    def text(self, ids: Sequence[int]) -> str:
        """The pieces joined by spaces, without start, end and padding tokens."""
        return " ".join(self.vocabulary[id_] for id_ in ids if id_ not in self.specials)


def to_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """A WordTokenizer, VocabularyTokenizer or IdTokenizer as plain JSON values.

    Raises:
        BadSetting: it is another kind of tokenizer.
    """
    match tokenizer:
        case WordTokenizer():
            return words.to_json(tokenizer)
        case VocabularyTokenizer() | IdTokenizer():
            return asdict(tokenizer)
    raise BadSetting(name="tokenizer", found=type(tokenizer).__name__, allowed=phrase("a tokenizer that tokenizer.json can hold"))


def from_json(data: Any) -> Tokenizer:
    """Reads a tokenizer from JSON values.

    Raises:
        BadSetting: the values do not describe a tokenizer, or they name an unknown way to split.
    """
    # told apart by their fields: only these two have `specials`
    if not isinstance(data, dict) or "specials" not in data:
        return words.from_json(data)
    if "vocabulary" not in data:
        return read(IdTokenizer, data, "tokenizer")
    tokenizer = read(VocabularyTokenizer, data, "tokenizer")
    if tokenizer.split not in SPLITS:
        raise BadSetting(name="tokenizer.split", found=tokenizer.split, allowed=", ".join(SPLITS))
    return tokenizer


def _present(added: bool, id_: int | None) -> tuple[int, ...]:
    return () if id_ is None or not added else (id_,)


def _strip(ids: Sequence[int], name: str, size: int, text_of: Callable[[int], str], specials: Specials) -> Tokens:
    check_ids(name, ids, size)
    return Tokens(
        name,
        tuple(ids),
        tuple(map(text_of, ids)),
        tuple(id_ in specials for id_ in ids),
        tuple(id_ == specials.unknown for id_ in ids),
    )


def place_of(texts: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The id of the first text of `wanted` that is in the vocabulary `texts`; None: none of them is."""
    return next((texts.index(text) for text in wanted if text in texts), None)
