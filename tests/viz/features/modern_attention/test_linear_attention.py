"""Linear attention's map, against the recurrent form, and what it costs, against products counted by hand."""

import numpy as np
import pytest

from viz.features.modern_attention.linear_attention import operations, weights
from viz.i18n.translate import amount_of_bytes


@pytest.mark.parametrize("causal", [True, False])
def test_the_map_weighs_values_as_a_running_sum_does(causal: bool) -> None:
    rng = np.random.default_rng(4)
    q, k, v = rng.normal(size=(6, 4)) * 2, rng.normal(size=(6, 4)) * 2, rng.normal(size=(6, 3))
    allowed = np.tril(np.ones((6, 6), bool)) if causal else np.ones((6, 6), bool)
    found = weights(q, k, allowed)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for row in range(6):
        sums, total = np.zeros((4, 3)), np.zeros(4)
        for key in range(row + 1 if causal else 6):
            feature = np.array([x + 1 if x > 0 else np.exp(x) for x in k[key]])
            sums += np.outer(feature, v[key])
            total += feature
        one = np.array([x + 1 if x > 0 else np.exp(x) for x in q[row]])
        np.testing.assert_allclose(found[row] @ v, one @ sums / (one @ total), rtol=1e-12)


def test_a_row_without_a_key_is_empty() -> None:
    allowed = np.array([[True, True], [False, False]])
    found = weights(np.ones((2, 3)), np.ones((2, 3)), allowed)
    np.testing.assert_array_equal(found, [[0.5, 0.5], [np.nan, np.nan]])


def test_operations_by_hand() -> None:
    adding, reading = 2 * 5 * 7, 2 * 5 * 7  # φ(k) vᵀ is added to the sum; φ(q) times the sum
    assert operations(10, 3, 5, 7) == 10 * 3 * (adding + reading)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1536, "1.536 kB"), (999_999, "1000 kB"), (2.5e12, "2.5 TB"), (7e15, "7000 TB")]
)
def test_an_amount_of_bytes_has_a_unit(size: float, text: str) -> None:
    assert amount_of_bytes(size) == text
