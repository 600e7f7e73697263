"""Vocabularies that come with foreign checkpoints: a file of texts, a way to split, and ids that stand for no text.

Without one, ids are shown as they are: a strip says "5", and typed text is refused in a sentence.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

from model.errors import BadSetting, EmptyText, HeadlightError, NoVocabulary, TokenOutOfRange
from model.spec.validation import read
from model.tokenizers import words
from model.tokenizers.words import Tokenizer, WordTokenizer, basic_english, split_words
from model.trace.types import Tokens

STARTS, ENDS = ("<sos>", "<bos>", "<s>"), ("<eos>", "</s>")
PADS, UNKNOWNS = ("<pad>", "[PAD]"), ("<unk>", "[UNK]")
"""Texts by which a vocabulary names its special tokens."""

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
"""Ways to split a text, by the names that `--set tokenizer=` takes."""


@dataclass(frozen=True)
class Specials:
    """Ids that stand for no text; None: there is none, or nobody told."""

    pad: int | None = None
    start: int | None = None
    end: int | None = None
    unknown: int | None = None

    def __contains__(self, id_: int) -> bool:
        return id_ in (self.pad, self.start, self.end)


@dataclass(frozen=True)
class IdTokenizer:
    """Stands in where nobody told the vocabulary: ids are all that can be read and shown.

    Attributes:
        size: how many ids there are.
        specials: those that stand for no text.
    """

    size: int
    specials: Specials = Specials()

    @property
    def ends(self) -> bool:
        """Nothing is added to a text."""
        return False

    def encode(self, text: str, name: str) -> Tokens:
        """Ids that were typed with blanks or commas between them, taken as they are.

        Raises:
            EmptyText: there is nothing but blanks.
            NoVocabulary: something else than ids was typed; the sentence says what to give instead.
            TokenOutOfRange: there is no such id.
        """
        typed = text.replace(",", " ").split()
        if not typed:
            raise EmptyText(what=f"{name} text")
        if all(word.isascii() and word.isdigit() and len(word) < _MOST_DIGITS for word in typed):
            return self.tokens([int(word) for word in typed], name)
        raise self.refusal(text if len(text) < 80 else f"{text[:80]}…", name)

    def refusal(self, text: str, name: str) -> HeadlightError:
        """Why a text cannot be read, and what to do."""
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
    """A way to split and a vocabulary of any order.

    Attributes:
        split: a name in SPLITS.
        vocabulary: texts, the index is the id.
        specials: ids that stand for no text.
        starts, ends: whether the start and the end token are added around a typed text.
    """

    split: str
    vocabulary: tuple[str, ...]
    specials: Specials
    starts: bool
    ends: bool

    @cached_property
    def ids(self) -> dict[str, int]:
        """Id by text; of equal texts the first."""
        return {text: id_ for id_, text in reversed(list(enumerate(self.vocabulary)))}

    @property
    def size(self) -> int:
        """How many ids there are."""
        return len(self.vocabulary)

    def encode(self, text: str, name: str) -> Tokens:
        """The pieces of `text` as typed or in lower case, whichever the vocabulary knows.

        Raises:
            EmptyText: there is nothing but blanks.
            BadSetting: the vocabulary does not know a piece and has no unknown token.
        """
        pieces = SPLITS[self.split](text)
        if not pieces or not text.strip():
            raise EmptyText(what=f"{name} text")
        ids = [self.ids.get(piece, self.ids.get(piece.lower(), self.specials.unknown)) for piece in pieces]
        for piece, id_ in zip(pieces, ids, strict=True):
            if id_ is None:
                raise BadSetting(name=f"{name} text", found=piece, allowed="made of words of the vocabulary, which has no <unk>")
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
        """Pieces joined by spaces, start, end and padding left out."""
        return " ".join(self.vocabulary[id_] for id_ in ids if id_ not in self.specials)


def to_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """Any tokenizer as plain JSON values: words by the rules of the networks trained here, a vocabulary that came along, or ids."""
    match tokenizer:
        case WordTokenizer():
            return words.to_json(tokenizer)
        case VocabularyTokenizer() | IdTokenizer():
            return asdict(tokenizer)
    raise BadSetting(name="tokenizer", found=type(tokenizer).__name__, allowed="one that has a form in tokenizer.json")


def from_json(data: Any) -> Tokenizer:
    """The tokenizer in JSON values.

    Raises:
        BadSetting: they describe none, or one without a way to split.
    """
    if not isinstance(data, dict) or "specials" not in data:
        return words.from_json(data)
    if "vocabulary" not in data:
        return read(IdTokenizer, data, "tokenizer")
    tokenizer = read(VocabularyTokenizer, data, "tokenizer")
    if tokenizer.split not in SPLITS:
        raise BadSetting(name="tokenizer split", found=tokenizer.split, allowed=" or ".join(SPLITS))
    return tokenizer


def _present(added: bool, id_: int | None) -> tuple[int, ...]:
    return () if id_ is None or not added else (id_,)


def _strip(ids: Sequence[int], name: str, size: int, text_of: Callable[[int], str], specials: Specials) -> Tokens:
    for id_ in ids:
        if not 0 <= id_ < size:
            raise TokenOutOfRange(what=name, found=id_, last=f"{size - 1:,}")
    return Tokens(
        name,
        tuple(ids),
        tuple(map(text_of, ids)),
        tuple(id_ in specials for id_ in ids),
        tuple(id_ == specials.unknown for id_ in ids),
    )


def place_of(texts: Sequence[str], wanted: Sequence[str]) -> int | None:
    """The id of the first of the texts `wanted` that a vocabulary has; None: it has none of them."""
    return next((texts.index(text) for text in wanted if text in texts), None)
