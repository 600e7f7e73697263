"""Strips: the tokens of a run as far as they are known when a row is computed, and the places that tokens of an edit name."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import torch
from torch import Tensor

from model.errors import BadEdit, Phrase, phrase
from model.spec.edits import Edit, Token
from model.trace.types import Site, Tokens


class Strips:
    """The token strips of one run.

    Args:
        given: the strips as far as they are known before the run.
        growing: the strip that the run itself writes, `source` or `target`; empty: none.
        text_of: the text of an id of that strip.

    Attributes:
        valid: [position] of bool, which positions of the encoder's input are no padding; None: all.
    """

    def __init__(self, given: Mapping[str, Tokens], growing: str, text_of: Callable[[int], str]) -> None:
        self.given = given
        self.growing = growing
        self._text_of = cache(text_of)
        self._rows: list[tuple[str, ...]] = []
        self.valid: Tensor | None = None

    def read(self, ids: Tensor) -> None:
        """Takes the ids [row, position] that the next call of the decoder reads."""
        if self.growing:
            given = self.given[self.growing].texts if self.growing in self.given else ()
            self._rows = [given[: len(row)] + tuple(map(self._text_of, row[len(given) :])) for row in ids.tolist()]

    def queries(self, site: Site) -> str:
        """The strip of a site's queries."""
        return "source" if site.stack == "encoder" or site.kind == "memory" else self.of_stack(site.stack)

    def keys(self, site: Site) -> str:
        """The strip of a site's keys."""
        return "source" if site.kind == "cross" else self.queries(site)

    def of_stack(self, stack: str) -> str:
        """The strip that a stack reads."""
        alone = "target" not in self.given and self.growing != "target"
        return "source" if stack == "encoder" or alone else "target"

    def rows(self, strip: str) -> Sequence[tuple[str, ...]]:
        """The texts that are known, for each row of a batch, or once where they are the same for all."""
        return self._rows if strip == self.growing and self._rows else [self.given[strip].texts] if strip in self.given else [()]

    def match(self, tokens: Sequence[Token], strip: str, start: int, count: int) -> Tensor:
        """Which of the positions from `start` on are among `tokens`: bool [row or 1, count]; all where no token is named."""
        if not tokens:
            return torch.ones(1, count, dtype=torch.bool)
        positions = range(start, start + count)
        found = [[any(_is(token, position, texts) for token in tokens) for position in positions] for texts in self.rows(strip)]
        return torch.tensor(found)

    def places(self, edit: Edit, token: Token, strip: str) -> tuple[int, ...]:
        """All places of a token in a strip that is known before the run.

        Raises:
            BadEdit: it is not there.
        """
        texts = self.given[strip].texts if strip in self.given else ()
        found = tuple(position for position in range(len(texts)) if _is(token, position, texts))
        if not found:
            raise edit.refuse(self.absent(token, strip))
        return found

    def absent(self, token: Token, strip: str) -> Phrase:
        """Why a strip does not have a token."""
        if strip not in self.given:
            return phrase(
                "{strip} is not known before the run generates it: give the index of a token, or give {strip} yourself", strip=strip
            )
        texts = self.given[strip].texts
        if isinstance(token, int):
            return phrase(
                "{strip} has {count:,} tokens, counted from 0, and none is number {token}",
                strip=strip,
                count=len(texts),
                token=token,
            )
        return phrase(
            "{strip} has no token “{token}”. Available: {names}",
            strip=strip,
            token=token,
            names=", ".join(dict.fromkeys(texts)),
        )

    def check(self, edit: Edit, tokens: Sequence[Token], strips: Sequence[str]) -> None:
        """Refuses tokens that none of the strips has. Nothing is refused that the run may write.

        Raises:
            BadEdit: the sentence names what is there.
        """
        if self.growing in strips:
            return
        for token in tokens:
            if not any(_is(token, i, self.given[s].texts) for s in strips for i in range(len(self.given[s].texts))):
                raise BadEdit(edit=str(edit), reason=self.absent(token, strips[0]))


def _is(token: Token, position: int, texts: Sequence[str]) -> bool:
    if isinstance(token, int):
        return token == position
    return position < len(texts) and token in (texts[position], texts[position].strip())
