"""A vocabulary file with rules that cut words into pieces, as the tokenizer of one strip."""

from collections.abc import Sequence
from dataclasses import dataclass

from model.errors import EmptyText, TokenOutOfRange
from model.tokenizers.subwords.process import TokenizerProcess
from model.tokenizers.subwords.writing import written
from model.trace.types import Tokens


class Subwords(tuple[str, ...]):
    """The texts of a vocabulary by id, and the process that cuts texts into them.

    Attributes:
        process: cuts texts.
    """

    process: TokenizerProcess

    @classmethod
    def of(cls, process: TokenizerProcess) -> "Subwords":
        """All texts that the process knows; an id without one has an empty text."""
        texts = cls(process.tokens.get(id_, "") for id_ in range(max(process.tokens, default=-1) + 1))
        texts.process = process
        return texts


@dataclass(frozen=True)
class SubwordTokenizer:
    """Cuts texts by the rules of a foreign file. What the rules put around a text is left out: the network's own ids are added.

    Attributes:
        vocabulary: texts by id, and their process.
        special: ids that stand for no text.
        unknown: the id of what is unknown; None: there is none.
        first, last: ids that are added around a typed text.
    """

    vocabulary: Subwords
    special: frozenset[int]
    unknown: int | None
    first: tuple[int, ...]
    last: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many ids there are."""
        return len(self.vocabulary)

    @property
    def ends(self) -> bool:
        """Whether an end token is added to a typed text."""
        return bool(self.last)

    def encode(self, text: str, name: str) -> Tokens:
        """The strip of a typed text; a piece that is not known keeps its text.

        Raises:
            EmptyText: there is nothing but blanks.
            TooManyTokens, TokenizerFailed: the rules went beyond their bounds.
        """
        if not text.strip():
            raise EmptyText(what=f"{name} text")
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # half of a character is none
        cut = self.vocabulary.process.encode(whole, name, special=False)
        known = self.tokens(cut.ids, name)
        texts = (own if unknown and own else text for own, unknown, text in zip(cut.typed, known.unknown, known.texts, strict=True))
        middle = Tokens(name, known.ids, tuple(texts), known.special, known.unknown)
        return self.tokens(self.first, name).then(middle).then(self.tokens(self.last, name))

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of ids that are taken as they are.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        for id_ in ids:
            if not 0 <= id_ < self.size:
                raise TokenOutOfRange(what=name, found=id_, last=f"{self.size - 1:,}")
        special = tuple(id_ in self.special and id_ != self.unknown for id_ in ids)
        byte_level = self.vocabulary.process.byte_level
        texts = tuple(
            self.vocabulary[id_] if own else written(self.vocabulary[id_], byte_level)
            for id_, own in zip(ids, special, strict=True)
        )
        return Tokens(name, tuple(ids), texts, special, tuple(id_ == self.unknown for id_ in ids))

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out.

        Raises:
            TokenizerFailed: the rules went beyond their bounds.
        """
        return self.vocabulary.process.decode([id_ for id_ in ids if id_ not in self.special])
