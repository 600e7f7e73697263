"""The probability of each written token in two runs: the effect of an alteration on the output."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from model.trace.types import Trace
from viz.features.compare.run_difference import ROUNDING, written
from viz.labels import tokens as labels
from viz.metrics.alignment import align


@dataclass(frozen=True)
class Both:
    """A token at an aligned place of both runs.

    Attributes:
        text: as written.
        place: its position in the first run, counted from 0.
        first, second: its natural log-probability in each run.
    """

    text: str
    place: int
    first: float
    second: float

    @property
    def change(self) -> float:
        """p₂ - p₁; 0 where it is not larger than rounding."""
        change = math.exp(self.second) - math.exp(self.first)
        return 0.0 if abs(change) <= ROUNDING else change


def both(first: Trace, second: Trace, since: int = 0) -> tuple[Both, ...]:
    """The tokens that both runs have at aligned places with a log-probability each, the largest change of the probability first.

    Args:
        since: the first position of the first run to count.
    """
    sides = [written(trace, labels.written_strip(trace)) for trace in (first, second)]
    pairs_ = list[Both]()
    for pair in align(*([token.text for token in side] for side in sides)):
        if not pair.same or pair.first is None or pair.second is None or pair.first < since:
            continue
        log_a, log_b = sides[0][pair.first].log_probability, sides[1][pair.second].log_probability
        if log_a is not None and log_b is not None:
            pairs_.append(Both(sides[0][pair.first].text, pair.first, log_a, log_b))
    return tuple(sorted(pairs_, key=lambda token: -abs(token.change)))


@dataclass(frozen=True)
class Effect:
    """The change of the log-probability of the output.

    Attributes:
        tokens: how many tokens are counted.
        total: Σ (log p₂ - log p₁) over them, in nats.
        most: the token whose log-probability changed most.
    """

    tokens: int
    total: float
    most: Both


def effect(tokens: Sequence[Both]) -> Effect | None:
    """The effect on the tokens that both runs have; None if there are none."""
    if not tokens:
        return None
    most = max(tokens, key=lambda token: abs(token.second - token.first))
    return Effect(len(tokens), sum(token.second - token.first for token in tokens), most)
