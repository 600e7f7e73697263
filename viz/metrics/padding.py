"""Effect of padding a source: the same run with and without padding, compared in numbers."""

import itertools
from dataclasses import dataclass

import numpy as np

from model.trace.types import Trace

ROUNDING = {"float32": 2e-5, "bfloat16": 3e-2, "float16": 4e-3}
"""Largest difference explained by another order of summation, by precision, as a share of the largest logit: for float32 335 times
the unit roundoff, for the lower ones 8 times, since most of their roundings are equal in both runs."""


@dataclass(frozen=True)
class PaddingEffect:
    """Difference between a run and the same run with padding after the source.

    Attributes:
        added: number of padding tokens.
        sites: number of attention sites whose keys include the padding.
        largest_weight: largest weight on a padding key, over those sites.
        rows: number of compared rows of logits, those after equal target prefixes.
        rows_without: rows of the run without padding.
        largest_difference: largest absolute difference of a logit in those rows; NaN without rows.
        largest_logit: largest absolute logit of those rows, the scale of the difference.
        rounding: relative difference explained by rounding: an entry of ROUNDING.
    """

    added: int
    sites: int
    largest_weight: float
    rows: int
    rows_without: int
    largest_difference: float
    largest_logit: float
    rounding: float

    @property
    def is_rounding(self) -> bool:
        """Whether rounding explains the difference."""
        return self.largest_difference <= self.rounding * max(1.0, self.largest_logit)


def padding_effect(without: Trace, padded: Trace) -> PaddingEffect:
    """Compares a run with the same run whose source was padded.

    Args:
        without: the run without padding.
        padded: the run with padding.
    """
    length = len(without.tokens["source"])
    on_padding = [a.weights[:, :, length:] for a in padded.attention.values() if a.key_tokens == "source"]
    rows = _rows_alike(without, padded)
    first, second = (np.zeros((0, 1)) if t.logits is None else t.logits[:rows].astype(np.float64) for t in (without, padded))
    return PaddingEffect(
        added=len(padded.tokens["source"]) - length,
        sites=len(on_padding),
        largest_weight=max((float(weights.max(initial=0.0)) for weights in on_padding), default=0.0),
        rows=rows,
        rows_without=0 if without.logits is None else len(without.logits),
        largest_difference=float(np.abs(first - second).max()) if rows else np.nan,
        largest_logit=float(np.abs(first).max()) if rows else np.nan,
        rounding=ROUNDING[str(without.model.get("dtype", "float32"))],
    )


def _rows_alike(first: Trace, second: Trace) -> int:
    """How many rows of logits, from the first on, followed the same target tokens in both runs."""
    if first.logits is None or second.logits is None:
        return 0
    pairs = zip(first.tokens["target"].ids[: len(first.logits)], second.tokens["target"].ids[: len(second.logits)], strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))
