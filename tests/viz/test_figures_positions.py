"""Positional encodings: the formula against a loop, the pictures against the table."""

import math

import numpy as np
import pytest

from viz.figures import layout, positions
from viz.figures.theme import scheme

TABLE = np.random.default_rng(3).normal(size=(12, 8)).astype(np.float32)


@pytest.mark.parametrize("d_model", [1, 2, 7, 64])
def test_sinusoids_and_wavelengths_are_those_of_the_paper(d_model: int) -> None:
    table, lengths = positions.sinusoids(40, d_model), positions.wavelengths(d_model)
    for column in range(d_model):
        rate = 10000 ** (-(column // 2 * 2) / d_model)
        wave = math.sin if column % 2 == 0 else math.cos
        assert [wave(pos * rate) for pos in range(40)] == pytest.approx(table[:, column].tolist(), abs=1e-12)
        assert lengths[column] == pytest.approx(2 * math.pi / rate, rel=1e-12)
    assert table.shape == (40, d_model)


def test_curves_are_the_chosen_columns_counted_from_one() -> None:
    figure = positions.curves(TABLE, [0, 5], dark=False, used=4)
    assert [curve.name for curve in figure.data] == ["dimension 1", "dimension 6"]
    for curve, column in zip(figure.data, (0, 5), strict=True):
        assert list(curve.x) == list(range(1, 13))
        assert np.array_equal(curve.y, TABLE[:, column])
    assert len({(curve.line.color, curve.line.dash) for curve in figure.data}) == 2
    assert [line.x0 for line in figure.layout.shapes] == [4.5]


@pytest.mark.parametrize("used", [0, 12, 20])
def test_no_mark_where_no_sentence_ends(used: int) -> None:
    assert not positions.curves(TABLE, [0], dark=False, used=used).layout.shapes
    assert not positions.whole_table(TABLE, dark=False, used=used).layout.shapes


def test_every_curve_looks_different() -> None:
    for dark in (False, True):
        curves = positions.curves(TABLE, range(positions.MOST_CURVES), dark=dark).data
        assert len({curve.line.color for curve in curves}) == len({curve.line.dash for curve in curves}) == positions.MOST_CURVES


def test_the_whole_table_is_centred_at_zero_with_position_one_on_top() -> None:
    figure = positions.whole_table(TABLE, dark=False)
    (cells,) = figure.data
    assert np.array_equal(cells.z, TABLE)
    assert cells.zmax == -cells.zmin == pytest.approx(abs(TABLE).max())
    assert list(cells.y) == list(range(1, 13))
    assert list(figure.layout.yaxis.range) == [12.5, 0.5]
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("dimension", "position")


def test_a_few_large_values_do_not_make_the_others_pale_and_the_scale_says_so() -> None:
    """A learned table as BERT's: of 12 × 384 values one is a hundred times as large as the others."""
    learned = np.random.default_rng(3).normal(0, 0.02, (12, 384)).astype(np.float32)
    learned[0, 7] = 1.8
    (cells,) = positions.whole_table(learned, dark=False).data
    assert cells.zmax == -cells.zmin == pytest.approx(np.sort(abs(learned).ravel())[-24], rel=0.02)
    assert np.array_equal(cells.z, learned), "the values that are read under the pointer are not cut"
    end = cells.colorbar.tickvals[2]
    assert list(cells.colorbar.ticktext) == [f"≤ −{end:g}", "0", f"≥ {end:g}"]
    (cosines,) = positions.similarity(learned, dark=False, cosine=True).data
    assert cosines.zmax == pytest.approx(1)
    assert cosines.colorbar.ticktext is None
    (usual,) = positions.whole_table(TABLE, dark=False).data
    assert usual.colorbar.ticktext is None


def test_similarity_is_the_dot_product_or_the_cosine() -> None:
    figures = positions.similarity(TABLE, dark=False), positions.similarity(TABLE, dark=False, cosine=True)
    (dot,), (cosine,) = (figure.data for figure in figures)
    rows = TABLE.astype(float).tolist()
    for i, j in [(0, 0), (1, 7), (7, 1), (11, 3)]:
        product = sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
        assert dot.z[i][j] == pytest.approx(product, rel=1e-5)
        assert cosine.z[i][j] == pytest.approx(product / math.hypot(*rows[i]) / math.hypot(*rows[j]), rel=1e-5)
    assert [figure.layout.title.text for figure in figures] == ["dot product", "cosine"]


def test_positions_without_encoding_are_like_nothing() -> None:
    zeros = np.zeros((3, 4), np.float32)
    assert np.isnan(positions.alike(zeros, cosine=True)).all()
    assert (positions.alike(zeros) == 0).all()
    (cells,) = positions.similarity(zeros, dark=False, cosine=True).data
    assert (cells.zmin, cells.zmax) == (-1, 1)


def test_wavelengths_are_drawn_with_the_models_length_as_a_mark() -> None:
    figure = positions.wavelength_curve(positions.wavelengths(16), dark=False, positions=100, counted="dimension")
    assert figure.data[0].y[0] == pytest.approx(2 * math.pi)
    assert [line.y0 for line in figure.layout.shapes] == [100]
    assert [note.text for note in figure.layout.annotations] == ["100 positions"]
    assert figure.layout.yaxis.type == "log"


@pytest.mark.parametrize("count", [7, 13, 100, 5_000, 15_000])
def test_the_name_of_the_mark_stands_where_the_curve_is_far_from_it(count: int) -> None:
    """The name is about as high as a third of a power of ten and takes a sixth of the width."""
    waves = positions.wavelengths(16)
    (note,) = positions.wavelength_curve(waves, dark=False, positions=count, counted="dimension").layout.annotations
    near = waves[: len(waves) // 6 + 1] if note.x == 0 else waves[-(len(waves) // 6 + 1) :]
    assert {0: "left", 1: "right"}[note.x] == note.xanchor
    assert (abs(np.log10(near / count)) > 1 / 3).all()


@pytest.mark.parametrize(("count", "step"), [(12, 1), (13, 2), (40, 5), (256, 50)])
def test_of_numbers_that_count_on_an_axis_names_round_ones(count: int, step: int) -> None:
    axis = layout.token_axis(scheme(False), "position", [str(number + 1) for number in range(count)])
    assert [int(axis["labelalias"][str(place)]) % step for place in axis["tickvals"]] == [0] * (count // step)
    assert "tickvals" not in layout.token_axis(scheme(False), "token", ["1", "2", "4"])
