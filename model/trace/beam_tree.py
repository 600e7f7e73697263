"""The tree of a beam search: every continuation that it weighed, and what became of it. Plain values; no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Fate: TypeAlias = Literal["kept", "finished", "pruned"]


@dataclass(frozen=True)
class Node:
    """One continuation by one token: a beginning that goes on, or one that has ended, or one that was dropped.

    Attributes:
        step: of decoding, from 0.
        parent: place of the node that it continues in the tree; -1: the prompt.
        id: the token that it adds.
        text: the token's text.
        log_probability: natural, of that token after its parent.
        total: sum of the log-probabilities of all tokens written so far.
        fate: `kept` went on, `finished` ended the target, `pruned` was not among the likeliest.
        rank: place among the hypotheses that the search ended with, 0 the best; -1: it is none of them.
    """

    step: int
    parent: int
    id: int
    text: str
    log_probability: float
    total: float
    fate: Fate
    rank: int = -1

    @property
    def mean(self) -> float:
        """Log-probability a token written: what the search ranks its hypotheses by."""
        return self.total / (self.step + 1)


def path(tree: Sequence[Node], place: int) -> tuple[int, ...]:
    """The places from the first token to the node at `place`."""
    places: list[int] = []
    while place >= 0:
        places.append(place)
        place = tree[place].parent
    return tuple(reversed(places))


def hypotheses(tree: Sequence[Node]) -> tuple[int, ...]:
    """The places of the hypotheses that the search ended with, the best first."""
    return tuple(sorted((place for place, node in enumerate(tree) if node.rank >= 0), key=lambda place: tree[place].rank))
