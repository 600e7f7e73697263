"""Rotary positions as numbers and pictures: against complex numbers, where a rotation is a product."""

import numpy as np
import pytest

from model.trace.types import Array
from viz.figures import rotary
from viz.metrics.rotary import position_vectors, scores_by_distance, turned

HALVES = np.array([[0, 2, 1.0], [1, 3, 0.05]])
NEIGHBORS = np.array([[0, 1, 1.0], [2, 3, 0.05]])
PARTIAL = np.array([[1, 2, 0.3]])


def complex_turned(vector: Array, rotation: Array, position: float) -> Array:
    result = vector.astype(complex).real.copy()
    for first, second, angle in rotation:
        point = (vector[int(first)] + 1j * vector[int(second)]) * np.exp(1j * angle * position)
        result[int(first)], result[int(second)] = point.real, point.imag
    return np.asarray(result)


@pytest.mark.parametrize("rotation", [HALVES, NEIGHBORS, PARTIAL])
def test_turning_is_a_product_of_complex_numbers(rotation: Array) -> None:
    vector = np.array([0.3, -2.0, 1.5, 0.7])
    for position in (0, 1, 17, -3):
        np.testing.assert_allclose(turned(vector, rotation, position), complex_turned(vector, rotation, position), atol=1e-12)
    np.testing.assert_allclose(turned(turned(vector, rotation, 5), rotation, -5), vector, atol=1e-12)


@pytest.mark.parametrize("rotation", [HALVES, NEIGHBORS, PARTIAL])
def test_the_score_at_a_distance_is_that_of_a_key_that_stands_there(rotation: Array) -> None:
    rng = np.random.default_rng(1)
    query, key = rng.normal(size=(2, 4))
    compared = complex_turned(query, rotation, 9), complex_turned(key, rotation, 6)
    found = scores_by_distance(*compared, rotation, 0.5, 3, np.arange(-2, 8))
    wanted = [0.5 * complex_turned(query, rotation, 9) @ complex_turned(key, rotation, 9 - apart) for apart in range(-2, 8)]
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert found[5] == pytest.approx(0.5 * compared[0] @ compared[1])  # 3 apart, as it was


def test_the_similarity_of_positions_is_the_mean_cosine() -> None:
    vectors = position_vectors(HALVES, 12)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for one, other in ((0, 0), (3, 8), (11, 2)):
        assert unit[one] @ unit[other] == pytest.approx(np.cos((one - other) * HALVES[:, 2]).mean())


def test_arrows_have_the_direction_of_each_pair() -> None:
    before = np.array([3.0, 0.0, 4.0, -2.0])
    after = turned(before, HALVES, 2)
    figure = rotary.arrows(before, after, HALVES, dark=False, position=2)
    circle, dotted, arrow = figure.data[:3]
    assert np.hypot(circle.x, circle.y) == pytest.approx(np.ones(60))
    assert (dotted.x[1], dotted.y[1]) == pytest.approx((0.6, 0.8))
    assert (arrow.x[1], arrow.y[1]) == pytest.approx((after[0] / 5, after[2] / 5))
    assert "length 5.000" in arrow.text
    assert arrow.text.endswith("0.32")  # 2 radians of 6.28
    assert len(figure.data) == 3 * len(HALVES)


def test_a_phone_has_room_for_the_arrows_of_a_row() -> None:
    many = np.stack([np.arange(32), np.arange(32, 64), 10000.0 ** -(np.arange(32) / 32)], axis=1)
    layout = rotary.arrows(np.ones(64), np.ones(64), many, dark=True, position=1).layout
    rooms = [(layout[f"xaxis{place}"].domain, layout[f"yaxis{place}"].domain) for place in range(1, rotary.MOST_ARROWS + 1)]
    assert all(right - left > 0.2 for (left, right), _ in rooms)
    for place, (across, down) in enumerate(rooms):
        for other_across, other_down in rooms[:place]:
            beside = across[0] >= other_across[1] or across[1] <= other_across[0]
            assert beside or down[0] >= other_down[1] or down[1] <= other_down[0]


def test_many_pairs_are_shown_from_the_fastest_to_the_slowest() -> None:
    many = np.stack([np.arange(32), np.arange(32, 64), 10000.0 ** -(np.arange(32) / 32)], axis=1)
    shown = rotary.shown_pairs(many)
    assert (shown[0], shown[-1], len(shown)) == (0, 31, rotary.MOST_ARROWS)


def test_the_score_of_the_run_is_marked_on_its_curve() -> None:
    distances = np.arange(5)
    curve, mark = rotary.score_curve(distances, distances**2.0, (2, 4.0), dark=True).data
    assert list(curve.y) == [0, 1, 4, 9, 16]
    assert (list(mark.x), list(mark.y)) == ([2], [4.0])


def test_the_chosen_head_lies_above_the_others() -> None:
    table = np.arange(6.0).reshape(2, 3)
    lines = rotary.bias_curves(table, (-1, 0, 1), ("one", "two"), 0, dark=False).data
    assert [line.name for line in lines] == ["two", "one"]
    assert list(lines[-1].y) == [0, 1, 2]
    assert lines[-1].line.width > lines[0].line.width
