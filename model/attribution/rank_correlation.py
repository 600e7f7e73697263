"""Rank correlations between the measures of words. No torch; pandas computes them.

Compared are amounts, whatever their sign: |measure|. Inputs that come after a token, and measures that are not there, do not count.

Source: Spearman 1904, "The Proof and Measurement of Association between Two Things"; used for attention by Jain and Wallace 2019,
"Attention is not Explanation", section 4.1 (with Kendall's τ there).
"""

import numpy as np

from model.attribution.results import WordEffects
from model.trace.types import Array

MEASURES = ("unknown", "padding", "gradient", "integrated", "attention", "rollout")
"""The measures of words, by the fields of WordEffects, in the order of the axes of correlations."""


def rank_correlations(effects: WordEffects, strip: str = "") -> Array:
    """Spearman's ρ between all pairs of MEASURES, for each target token.

    Args:
        strip: compare only the inputs of one strip; empty: all of them.

    Returns:
        [token, measure, measure]; NaN where fewer than two inputs can be compared, or a measure has the same amount for all.
    """
    import pandas as pd  # takes a third of a second: the command line starts without it

    own = np.array([not strip or name == strip for name in effects.strips])
    amounts = [np.abs(getattr(effects, name)[:, own]) for name in MEASURES]
    each = [pd.DataFrame(dict(zip(MEASURES, token, strict=True))) for token in zip(*amounts, strict=True)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.stack([table.corr(method="spearman", min_periods=2).to_numpy() for table in each])


def mean_correlation(effects: WordEffects, first: str, second: str, strip: str = "") -> float:
    """The mean over the target tokens of the correlation of two measures; NaN where no token has one."""
    found = rank_correlations(effects, strip)[:, MEASURES.index(first), MEASURES.index(second)]
    return float(np.nanmean(found)) if np.isfinite(found).any() else float("nan")
