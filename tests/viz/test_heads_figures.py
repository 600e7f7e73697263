"""The pictures of all heads of a survey: each head once, at its place, with the color and the area of its numbers."""

import numpy as np
import pytest

from viz.figures import heads as figures
from viz.figures.heads import LARGEST, Shade, grid, scatter
from viz.figures.theme import scheme
from viz.labels import survey as labels

NAMES, KINDS = ["one", "two", "thr<ee", "four"], ["self", "cross", "self", "self"]
ACROSS, UP = np.array([0.0, 1.0, 2.0, np.nan]), np.array([1.0, 0.5, 0.2, 0.1])


def dots(**options: object) -> dict[int, dict[str, object]]:
    figure = scatter(NAMES, KINDS, ACROSS, UP, ("x", "y"), ["", "first", "", ""], 2, False, **options)  # type: ignore[arg-type]
    found: dict[int, dict[str, object]] = {}
    for trace in figure.data[:-1]:
        for at, (name, head, told) in enumerate(trace.customdata):
            colour = trace.marker.color
            found[head] = {
                "at": (trace.x[at], trace.y[at]),
                "name": name,
                "told": told,
                "color": colour if isinstance(colour, str) else colour[at],
                "size": trace.marker.size[at],
                "symbol": trace.marker.symbol,
            }
    return found


def test_each_head_with_both_numbers_has_a_dot_and_the_selected_one_a_ring() -> None:
    rings = scatter(NAMES, KINDS, ACROSS, UP, ("x", "y"), ["", "first", "", ""], 2, False).data[-1]
    assert list(zip(rings.x, rings.y, rings.marker.opacity, strict=True)) == [(0.0, 1.0, 0), (1.0, 0.5, 0), (2.0, 0.2, 1)]
    assert [rings.customdata[place][1] for place in rings.selectedpoints] == [2]
    found = dots()
    assert {head: dot["at"] for head, dot in found.items()} == {0: (0.0, 1.0), 1: (1.0, 0.5), 2: (2.0, 0.2)}
    assert found[2]["name"] == "thr&lt;ee"
    assert found[0]["symbol"] != found[1]["symbol"]
    assert found[0]["color"] != found[1]["color"]
    assert found[1]["told"] == "<br>first"


def test_colors_are_a_measure_and_areas_another() -> None:
    loss = Shade(np.array([0.4, 0.1, -0.2, 9.0]), "loss")
    found = dots(shade=Shade(np.array([1.0, 2.0, 3.0, 4.0]), "entropy"), weight=loss)
    assert [found[head]["color"] for head in range(3)] == [1.0, 2.0, 3.0]
    sizes = [float(found[head]["size"]) for head in range(2)]  # type: ignore[arg-type]
    assert sizes[0] ** 2 / sizes[1] ** 2 == pytest.approx(4, rel=0.01) or sizes[1] == 5.0
    assert max(sizes) <= LARGEST
    assert found[1]["told"] == "<br>first<br>entropy: 2.000<br>loss: 0.100"
    assert found[2]["told"] == "<br>entropy: 3.000<br>loss: −0.200"


def test_a_head_without_the_number_that_colors_is_empty() -> None:
    found = dots(shade=Shade(np.array([1.0, 2.0, np.nan, 4.0]), "copying"))
    assert [found[head]["color"] for head in range(3)] == [1.0, 2.0, scheme(False).card]
    assert found[2]["told"] == "<br>copying: –"


def test_areas_are_in_proportion_to_the_losses() -> None:
    sizes = figures._sizes(4, Shade(np.array([0.9, 0.1, -1.0, np.nan]), "loss"))
    assert sizes[0] == LARGEST
    assert sizes[0] ** 2 / sizes[1] ** 2 == pytest.approx(9)
    assert sizes[2] == sizes[3] < sizes[1]


def test_numbers_on_both_sides_of_zero_have_two_hues() -> None:
    colours = scheme(False)
    marker = Shade(np.array([-0.2, 0.5, np.nan, 0.1]), "copying").marker(colours, [0, 1])
    assert (marker["cmin"], marker["cmax"]) == (-0.5, 0.5)
    assert marker["colorscale"][0][1] == colours.diverging[0]
    assert Shade(np.array([0.2, 0.5]), "entropy").marker(colours, [0])["cmin"] == 0.2


def test_the_grid_has_a_cell_for_each_head_and_frames_for_the_selected_and_the_marked_ones() -> None:
    places = [(0, 0), (0, 1), (1, 0)]
    shade = Shade(np.array([0.1, np.nan, 0.3]), "m")
    figure = grid(NAMES[:3], ["layer 1", "layer 2"], places, "head", shade, 2, [0], True)
    np.testing.assert_array_equal(figure.data[0].z, [[0.1, np.nan], [0.3, np.nan]])
    assert [tuple(each) for each in figure.data[1].customdata] == [("one", 0), ("two", 1), ("thr&lt;ee", 2)]
    assert list(figure.data[1].text) == ["0.100", "–", "0.300"]
    frames = [((shape.x0 + shape.x1) / 2, (shape.y0 + shape.y1) / 2, shape.line.width) for shape in figure.layout.shapes]
    assert frames == [(1, 0, 1), (1, 1, 3)]
    assert list(figure.data[0].x) == list(figure.layout.xaxis.tickvals) == [1, 2]
    assert list(figure.data[1].x) == [1, 2, 1]


def test_an_error_is_never_rounded_to_zero_and_a_histogram_has_a_sign_for_each_bin() -> None:
    assert labels.with_error(0.5104, 0.0002, 2) == ("0.5104", "0.0002")
    assert labels.with_error(0.5104, 0.013, 2) == ("0.51", "0.01")
    assert labels.with_error(0.5104, 0.0, 3) == ("0.510", "0.000")
    assert labels.with_error(0.5104, float("nan"), 2)[0] == "0.51"
    assert labels.spread(np.array([0, 1, 50, 100]), 8.0) == "0 ▁▂▅█ 8"
    assert labels.spread(np.zeros(4, int), 1.0) == ""
