"""Rank correlation: whether two measures put the same things first.

Spearman's ρ: the correlation of the ranks, equal values sharing their mean rank. 1: the same order; 0: no relation; -1: reversed.

Source: Spearman 1904, "The Proof and Measurement of Association between Two Things".
"""

import math

import numpy as np
import pandas as pd

from model.trace.types import Array

FEWEST = 3
"""Fewest pairs that have a rank correlation."""


def spearman(first: Array, second: Array) -> float:
    """ρ of two measures of the same things, where both are numbers; NaN if there are too few, or if one of them is constant."""
    both = pd.DataFrame({"one": np.ravel(first), "other": np.ravel(second)}).replace([np.inf, -np.inf], np.nan).dropna()
    if len(both) < FEWEST or both.nunique().min() < 2:
        return math.nan
    ranks = both.rank()
    return float(ranks["one"].corr(ranks["other"]))
