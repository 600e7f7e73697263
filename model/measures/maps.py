"""What the measures of one site need besides its weights: where rows may attend, how far keys are, which tokens they are."""

import unicodedata
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from model.measures.words import MARKS
from model.trace.types import Array, Attention, Trace


@dataclass(frozen=True, eq=False)
class Map:
    """The map of one site without its weights.

    Attributes:
        kind: of the site.
        allowed: [query, key] of bool.
        queries, keys: ids of the tokens of its rows and columns; empty where they have none.
        special, punctuation: [key] of bool: tokens that stand for no text; tokens of punctuation alone.
        made: what patterns have made of it, which is the same for all heads.
    """

    kind: str
    allowed: Array
    queries: Array
    keys: Array
    special: Array
    punctuation: Array
    made: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def choice(self) -> Array:
        """[query], whether a row may attend to at least two keys: with one, its weights could not be others."""
        return np.asarray(self.allowed.sum(axis=1) >= 2)

    @cached_property
    def steps(self) -> int:
        """By what `scaled_offset` is scaled: 1 where rows and columns are the same tokens."""
        return max(len(self.allowed) - 1, 1) if self.kind == "cross" else 1

    @cached_property
    def scaled_offset(self) -> Array:
        """[query, key], `offset` times `steps`, in whole numbers: a key at a distance of 1 is not lost to rounding."""
        queries, keys = self.allowed.shape
        rows = np.arange(queries) * (keys - 1 if self.kind == "cross" else 1)
        return np.asarray(np.arange(keys)[None, :] * self.steps - rows[:, None])

    @cached_property
    def offset(self) -> Array:
        """[query, key], key minus the row's place p(q) among the keys, in tokens.

        In self-attention p(q) = q. In cross-attention p(q) = q (m - 1) / (n - 1): the first of n rows stands at the first of m
        keys, and the last at the last.
        """
        return np.asarray(self.scaled_offset / self.steps)

    @cached_property
    def elsewhere(self) -> Array:
        """[query, key], whether a key is another token than the row's own: in cross-attention all are."""
        return np.asarray((self.scaled_offset != 0) | (self.kind == "cross"))

    def equal(self, shift: int = 0) -> Array:
        """[query, key], whether the token `shift` before an allowed key is the row's own, at another position."""
        queries, keys = self.allowed.shape
        same = np.zeros((queries, keys), bool)
        if len(self.queries) and len(self.keys):
            # Column k is compared with the token at k - shift: for shift 1, the key behind an earlier occurrence, as in induction.
            same[:, shift:] = self.queries[:, None] == self.keys[None, : keys - shift]
            same &= (np.arange(keys) - shift)[None, :] != np.arange(queries)[:, None]
        return same & self.allowed


def map_of(attention: Attention, trace: Trace) -> Map:
    """What the measures need of one site of a run."""
    queries, keys = attention.mask.shape
    rows, columns = trace.tokens[attention.query_tokens], trace.tokens[attention.key_tokens]
    special = np.array(columns.special[:keys], bool)
    punctuation = np.array([is_punctuation(text) for text in columns.texts[:keys]], bool) & ~special
    allowed = np.broadcast_to(np.asarray(attention.mask, bool), (queries, keys))
    return Map(attention.site.kind, allowed, np.array(rows.ids[:queries]), np.array(columns.ids[:keys]), special, punctuation)


@lru_cache(maxsize=4096)
def is_punctuation(text: str) -> bool:
    """Whether a token is punctuation alone, besides the signs of its tokenizer."""
    bare = text.strip(MARKS) or text.strip()
    return bool(bare) and all(unicodedata.category(sign).startswith("P") for sign in bare)
