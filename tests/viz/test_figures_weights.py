"""Pictures of weights: what they hold is what they were given."""

import numpy as np
import pytest

from viz.figures import weights


@pytest.mark.parametrize("shape", [(3, 5), (128, 128), (129, 400), (64, 1000)])
def test_a_pooled_cell_is_the_number_of_its_block_that_is_farthest_from_0(shape: tuple[int, int]) -> None:
    values = np.random.default_rng(0).normal(size=shape)
    cells, (rows, columns) = weights.pooled(values)
    assert cells.shape == (-(-shape[0] // rows), -(-shape[1] // columns))
    assert max(cells.shape) <= weights.MOST_CELLS
    for row in range(0, cells.shape[0], 7):
        for column in range(0, cells.shape[1], 7):
            block = values[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
            assert cells[row, column] == max(block.flatten(), key=abs)
    if max(shape) <= weights.MOST_CELLS:
        np.testing.assert_array_equal(cells, values)


def test_a_number_that_is_no_number_is_not_pooled_away() -> None:
    values = np.ones((1, 300))
    values[0, 7] = np.nan
    assert np.isnan(weights.pooled(values)[0]).sum() == 1
    figure = weights.matrix(values, "a", "b", dark=False)
    assert figure.data[0].zmax == 1


def test_the_scale_of_a_matrix_is_centred_at_0() -> None:
    values = np.array([[0.5, -3.0], [1.0, 2.0]])
    heat = weights.matrix(values, "row", "column", dark=True).data[0]
    np.testing.assert_array_equal(heat.z, values)
    assert (heat.zmin, heat.zmax) == (-3.0, 3.0)
    assert (list(heat.x), list(heat.y)) == ([1, 2], [1, 2])
    assert weights.matrix(np.zeros((2, 2)), "row", "column", dark=True).data[0].zmax == 1


def test_singular_values_of_the_head_lie_over_those_of_the_others() -> None:
    values = np.array([[3.0, 1.0], [5.0, 2.0], [4.0, 0.0]])
    lines = weights.singular(values, 1, "x", dark=False).data
    assert [list(line.y) for line in lines] == [[3.0, 1.0], [4.0, 0.0], [5.0, 2.0]]
    assert [line.showlegend for line in lines] == [True, False, True]
    assert lines[-1].name == "head 2"
    alone = weights.singular(values[:1], 0, "x", dark=False).data
    assert [line.name for line in alone] == ["head 1"]
