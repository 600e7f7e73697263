"""Subword tokenizers: a foreign tokenizer file as the tokenizer of one strip."""

from collections.abc import Sequence
from dataclasses import dataclass

from model.errors import EmptyText
from model.tokenizers.subwords.process import TokenizerProcess
from model.tokenizers.subwords.writing import written
from model.tokenizers.words import check_ids
from model.trace.types import Tokens


class Subwords(tuple[str, ...]):
    """The texts of a vocabulary by id, with the process that encodes texts.

    Attributes:
        process: encodes and decodes.
    """

    process: TokenizerProcess

    @classmethod
    def of(cls, process: TokenizerProcess) -> "Subwords":
        """The vocabulary of a process; an id that has no text gets an empty one."""
        texts = cls(process.tokens.get(id_, "") for id_ in range(max(process.tokens, default=-1) + 1))
        texts.process = process
        return texts


@dataclass(frozen=True)
class SubwordTokenizer:
    """Encodes texts with a foreign tokenizer. Its own special tokens are left out; those that the network needs are added instead.

    Attributes:
        vocabulary: texts by id, with their process.
        special: ids of the special tokens.
        unknown: id of the unknown token; None: there is none.
        first, last: ids that are added before and after a typed text.
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
        """The strip of a typed text; a piece that is not in the vocabulary keeps its text.

        Raises:
            EmptyText: the text holds only blanks.
            TooManyTokens, TokenizerFailed: the tokenizer went beyond its limits.
        """
        if not text.strip():
            raise EmptyText(strip=name)
        cut = self.vocabulary.process.encode(text, name, special=False)
        middle = cut.keep_unknown(self.tokens(cut.ids, name))
        return self.tokens(self.first, name).then(middle).then(self.tokens(self.last, name))

    def tokens(self, ids: Sequence[int], name: str) -> Tokens:
        """The strip of ids that are taken as they are.

        Raises:
            TokenOutOfRange: the vocabulary does not have an id.
        """
        check_ids(name, ids, self.size)
        special = tuple(id_ in self.special and id_ != self.unknown for id_ in ids)
        byte_level = self.vocabulary.process.byte_level
        texts = tuple(
            self.vocabulary[id_] if is_special else written(self.vocabulary[id_], byte_level)
            for id_, is_special in zip(ids, special, strict=True)
        )
        return Tokens(name, tuple(ids), texts, special, tuple(id_ == self.unknown for id_ in ids))

    def text(self, ids: Sequence[int]) -> str:
        """The text of ids, special tokens left out.

        Raises:
            TokenizerFailed: the tokenizer went beyond its limits.
        """
        return self.vocabulary.process.decode([id_ for id_ in ids if id_ not in self.special])
