"""Rank correlation."""

import math

import numpy as np
import pytest

from viz.metrics.ranks import spearman


def by_hand(one: list[float], other: list[float]) -> float:
    """ρ by its textbook formula for ranks without ties: 1 - 6 Σd² / (n(n² - 1))."""
    n = len(one)
    first, second = ([sorted(values).index(value) for value in values] for values in (one, other))
    apart = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
    return 1 - 6 * apart / (n * (n * n - 1))


def test_it_is_what_the_formula_for_ranks_without_ties_gives() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=20), rng.normal(size=20)
    assert spearman(one, other) == pytest.approx(by_hand(one.tolist(), other.tolist()))
    assert spearman(one, np.exp(one)) == pytest.approx(1)
    assert spearman(one, -(one**3)) == pytest.approx(-1)


def test_equal_values_share_their_mean_rank() -> None:
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2.5, 2.5, 4])) == pytest.approx(1)
    assert spearman(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(math.sqrt(3) / 2)


def test_what_is_no_number_is_left_out_and_too_few_have_none() -> None:
    assert spearman(np.array([1.0, 2, 3, np.nan]), np.array([1.0, 2, 3, -9])) == pytest.approx(1)
    assert math.isnan(spearman(np.array([1.0, 2]), np.array([1.0, 2])))
    assert math.isnan(spearman(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])))
