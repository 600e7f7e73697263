"""The catalogue of measures: one number for each head in one run, a mean over those rows of its map for which it has a meaning.

A row counts where it has a choice: it may attend to at least two keys, and all its weights are finite. With one key, its weight
is 1 whatever the head does. A measure may ask for more: the first token has no previous one. Without such a row, the number is NaN.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Unit: TypeAlias = Literal["share", "nats", "tokens", "length"]

VERSION = 3
"""Version of the formulas. A survey of another version is not added to or compared."""

OF_HEADS = ("variation", "copying")
"""Numbers of a head that are no means over texts: how much its map varies from text to text, and its copying score."""


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        name: in tables, links, claims and files.
        formula: of a row, or of the whole map; w is a weight, q the row, k the key, n the number of rows, m of keys.
        rows: which of the rows that have a choice count.
        unit: `share` of a row's weight, from 0 to 1; `nats`; `tokens`; or `length` of a vector.
        highest: end of the last bin of its histogram; larger numbers count in it.
        of: the kinds of sites that have it: `self`, `cross`, or both; `memory` and `unknown` sites have the measures of both.
    """

    name: str
    formula: str
    rows: str = "all"
    unit: Unit = "share"
    highest: float = 1.0
    of: tuple[str, ...] = ("self", "cross")

    def exists_in(self, kind: str) -> bool:
        """Whether sites of a kind have it."""
        return kind in self.of or kind not in ("self", "cross")


_CATALOGUE = (
    Measure("entropy", "−Σ w ln w", unit="nats", highest=8.0),
    Measure("largest", "max w"),
    Measure("coverage", "of a whole map: mean over keys of min(1, Σ_q w)", of=("cross",)),
    Measure("monotony", "of a whole map: share of neighboring rows whose mean key Σ k w does not step back", of=("cross",)),
    Measure("distance", "Σ w · |k − p(q)|", unit="tokens", highest=64.0),
    Measure("near_diagonal", "weight where |k − p(q)| ≤ 1"),
    Measure("antidiagonal", "weight where |(m − 1 − k) − p(q)| ≤ 1: near the diagonal of the keys read backwards", of=("cross",)),
    Measure("previous", "weight on k = q − 1", "those that may attend to it", of=("self",)),
    Measure("next", "weight on k = q + 1", "those that may attend to it", of=("self",)),
    Measure("same", "weight on k = q", "those that may attend to it", of=("self",)),
    Measure("first", "weight on k = 0, the row's own token excepted", "those that may attend to it"),
    Measure("last", "weight on k = m − 1, the row's own token excepted", "those that may attend to it"),
    Measure(
        "special",
        "weight on tokens that stand for no text, the row's own token excepted",
        "those that may attend to such tokens and to others",
    ),
    Measure(
        "punctuation",
        "weight on tokens of punctuation alone, the row's own token excepted",
        "those that may attend to such tokens and to others",
    ),
    Measure("duplicate", "weight on the same token elsewhere", "those that may attend to one", of=("self",)),
    Measure("induction", "weight on tokens that follow the same token elsewhere", "those that may attend to one", of=("self",)),
    Measure("norm", "length ‖Σ w v‖ of the context vector, before W_O", unit="length", highest=16.0),
    Measure(
        "alignment_error",
        "of a whole map: 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)",
        "texts whose words somebody aligned",
        of=("cross",),
    ),
)

MEASURES: Mapping[str, Measure] = MappingProxyType({measure.name: measure for measure in _CATALOGUE})
"""All measures by name, in the order of a table."""


def units(names: Sequence[str]) -> list[Unit]:
    """The units of measures."""
    return [MEASURES[name].unit for name in names]
