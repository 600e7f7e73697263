"""The parses of texts: parts of speech and dependencies of words, as CoNLL-U holds them, and how tokens get them."""

from dataclasses import dataclass

from model.measures.words import words_of
from model.trace.types import Tokens


@dataclass(frozen=True)
class Word:
    """One word of a parse.

    Attributes:
        part: its part of speech (UPOS), `_` where none is given.
        head: number of the word that it depends on, counted from 0; -1: none, it is the root or its head is not given.
        relation: the name of the dependency (DEPREL).
    """

    part: str
    head: int
    relation: str


def parse(tree: str) -> tuple[Word, ...]:
    """The words of a parse as a text of a survey holds it: PART:HEAD:RELATION for each word, heads counted from 1."""
    words = []
    for entry in tree.split():
        part, head, relation = entry.split(":", 2)
        words.append(Word(part, int(head) - 1, relation))
    return tuple(words)


def parts_of(tokens: Tokens, source: str | tuple[int, ...], tree: str) -> tuple[str, ...]:
    """The part of speech of the word that each token is a part of, empty for tokens that stand for no text.

    (): the tokens are not those of the text that was parsed, or do not match its words.

    Args:
        source, tree: of the text.
    """
    words = parse(tree)
    if not words or not isinstance(source, str) or tokens.name != "source":
        return ()
    word_of = words_of(tokens, source.split())
    return () if word_of is None else tuple(words[number].part if number >= 0 else "" for number in word_of)
