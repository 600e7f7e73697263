"""The pictures of all heads of a survey: each head once, at its place, with the color and the area of its numbers."""

import numpy as np
import pytest

from tests.traces import translation
from viz.canvas.wire.transport import unpack
from viz.features.survey import dots_scene, labels
from viz.features.survey import heads_figure as figures
from viz.features.survey.heads_figure import LARGEST, Dot, Shade, grid, scatter
from viz.figures.theme import scheme

NAMES, KINDS = ["one", "two", "thr<ee", "four"], ["self", "cross", "self", "self"]
PLACES = [("encoder.0.0.self", 0), ("decoder.0.0.cross", 0), ("encoder.0.0.self", 1), ("encoder.0.0.self", 2)]
ACROSS, UP = np.array([0.0, 1.0, 2.0, np.nan]), np.array([1.0, 0.5, 0.2, 0.1])


def dots(shade: Shade | None = None, weight: Shade | None = None) -> dict[int, Dot]:
    return {dot.head: dot for dot in figures.dots(NAMES, KINDS, ACROSS, UP, ["", "first", "", ""], shade, weight)}


def painted(shade: Shade | None = None) -> dict[tuple[float, float], object]:
    """The color of each dot by its place, as it is printed."""
    figure = scatter(list(dots(shade).values()), KINDS[:2], ("x", "y"), 2, False, shade)
    found: dict[tuple[float, float], object] = {}
    for trace in figure.data[:-1]:
        for at, place in enumerate(zip(trace.x, trace.y, strict=True)):
            colour = trace.marker.color
            found[place] = colour if isinstance(colour, str) else colour[at]
    return found


def test_each_head_with_both_numbers_has_a_dot_and_the_selected_one_a_ring() -> None:
    found = dots()
    assert {head: dot.at for head, dot in found.items()} == {0: (0.0, 1.0), 1: (1.0, 0.5), 2: (2.0, 0.2)}
    assert (found[2].name, found[1].told, found[1].label) == ("thr<ee", ("first",), ("first",))
    assert found[0].kind == found[2].kind != found[1].kind
    figure = scatter(list(found.values()), KINDS[:2], ("x", "y"), 2, False)
    rings, colours = figure.data[-1], painted()
    assert list(zip(rings.x, rings.y, rings.marker.opacity, strict=True)) == [(0.0, 1.0, 0), (1.0, 0.5, 0), (2.0, 0.2, 1)]
    assert colours[0.0, 1.0] == colours[2.0, 0.2] != colours[1.0, 0.5]
    assert len({trace.marker.symbol for trace in figure.data[:-1]}) == 2


def test_the_scene_has_the_numbers_of_the_dots() -> None:
    shade = Shade(np.array([1.0, np.nan, 3.0, 4.0]), "entropy")
    scene = dots_scene.scene(translation(), list(dots(shade).values()), PLACES, KINDS[:2], ("x", "y"), 2, [0], "said", shade)
    header = unpack(scene)[0]
    assert [dot["chooses"] for dot in header["dots"]] == [{"site": site, "head": head} for site, head in PLACES[:3]]
    assert [(dot["head"], dot["at"], dot["shade"]) for dot in header["dots"]] == [
        (0, [0.0, 1.0], 1.0),
        (1, [1.0, 0.5], None),
        (2, [2.0, 0.2], 3.0),
    ]
    assert (header["selected"], header["marked"], header["announce"]) == (2, [0], "thr<ee")
    assert (header["scale"]["low"], header["scale"]["high"], header["scale"]["both"]) == (1.0, 4.0, False)


def test_colors_are_a_measure_and_areas_another() -> None:
    loss = Shade(np.array([0.4, 0.1, -0.2, 9.0]), "loss")
    found = dots(shade=Shade(np.array([1.0, 2.0, 3.0, 4.0]), "entropy"), weight=loss)
    assert [found[head].shade for head in range(3)] == [1.0, 2.0, 3.0]
    sizes = [found[head].size for head in range(2)]
    assert sizes[0] ** 2 / sizes[1] ** 2 == pytest.approx(4, rel=0.01) or sizes[1] == 5.0
    assert max(sizes) <= LARGEST
    assert found[1].told == ("first", "entropy: 2.000", "loss: 0.100")
    assert found[2].told == ("entropy: 3.000", "loss: −0.200")


def test_a_head_without_the_number_that_colors_is_empty() -> None:
    shade = Shade(np.array([1.0, 2.0, np.nan, 4.0]), "copying")
    assert painted(shade) == {(0.0, 1.0): 1.0, (1.0, 0.5): 2.0, (2.0, 0.2): scheme(False).card}
    assert dots(shade=shade)[2].told == ("copying: –",)


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
