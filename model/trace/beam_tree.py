"""The tree of a beam search: every continuation that it considered, and whether it was kept. Plain values; no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Fate: TypeAlias = Literal["kept", "finished", "pruned"]
"""What became of a continuation: followed further, ended, or dropped."""


@dataclass(frozen=True)
class Node:
    """One node: a hypothesis that was extended by one token.

    Attributes:
        step: decoding step, counted from 0.
        parent: index in the tree of the node that it extends; -1: the prompt.
        id: id of the token that it adds.
        text: text of that token.
        log_probability: natural log-probability of that token after its parent.
        total: sum of the log-probabilities of all tokens written so far.
        fate: `kept`: the search went on from here; `finished`: it ended the target; `pruned`: it was not among the likeliest.
        rank: rank among the hypotheses that the search ended with, 0 the best; -1: it is none of them.
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
        """Mean log-probability of the tokens written: the search ranks its hypotheses by it."""
        return self.total / (self.step + 1)


def path(tree: Sequence[Node], index: int) -> tuple[int, ...]:
    """Indices of the nodes from the first token to the node at `index`."""
    places: list[int] = []
    # From the last token back to the first; -1 stands for the prompt.
    while index >= 0:
        places.append(index)
        index = tree[index].parent
    return tuple(reversed(places))


def hypotheses(tree: Sequence[Node]) -> tuple[int, ...]:
    """Indices of the last nodes of the hypotheses that the search ended with, the best first."""
    return tuple(sorted((index for index, node in enumerate(tree) if node.rank >= 0), key=lambda index: tree[index].rank))
