"""The picture of queries and keys: each dot once, at its place, in the color of its group or number."""

import numpy as np

from viz.features.survey.plane_figure import GROUPS, plane
from viz.figures.theme import scheme

POINTS = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
KEYS = np.array([False, False, True, True])
LABELS, PLACES = ["a", "b<i>", "c", "d"], np.array([[0, 1], [1, 1], [0, 2], [1, 2]])
SAID = ("query %{text} %{customdata[1]}", "key %{text}")


def drawn(**options: object) -> tuple[dict[int, dict[str, object]], list[str]]:
    """Each dot by its number, and the names in the legend."""
    figure = plane(POINTS, KEYS, LABELS, SAID, PLACES, ("queries", "keys"), ("x", "y"), False, **options)  # type: ignore[arg-type]
    dots: dict[int, dict[str, object]] = {}
    for trace in figure.data:
        colours = trace.marker.color
        for at, number in enumerate(each[0] for each in trace.customdata):
            colour = colours if isinstance(colours, str) else float(colours[at])
            dots[int(number)] = {
                "at": (trace.x[at], trace.y[at]),
                "text": trace.text[at],
                "symbol": trace.marker.symbol,
                "color": colour,
                "told": list(trace.customdata[at]),
                "said": trace.hovertemplate,
            }
    assert all(trace.type == "scattergl" for trace in figure.data)
    return dots, [trace.name for trace in figure.data if trace.showlegend]


def test_queries_and_keys_differ_in_color_and_shape() -> None:
    dots, legend = drawn()
    assert legend == ["queries", "keys"]
    assert [dots[n]["at"] for n in range(4)] == [tuple(point) for point in POINTS]
    assert [dots[n]["symbol"] for n in range(4)] == ["circle", "circle", "diamond", "diamond"]
    assert dots[0]["color"] == dots[1]["color"] != dots[2]["color"] == dots[3]["color"]
    assert (dots[1]["text"], dots[1]["said"]) == ("b&lt;i&gt;", "query %{text} %{customdata[1]}<extra></extra>")
    assert (dots[3]["told"], dots[3]["said"]) == ([3, 1, 2], "key %{text}<extra></extra>")


def test_groups_have_colors_and_one_name_each() -> None:
    dots, legend = drawn(groups=(np.array([0, 1, 0, -1]), ["the", "dog"]))
    assert legend == ["the", "dog"]
    assert dots[0]["color"] == dots[2]["color"] != dots[1]["color"]
    assert dots[3]["color"] == scheme(False).faint
    many, legend = drawn(groups=(np.array([0, 1, 2, 3]), [str(n) for n in range(GROUPS)]))
    assert len({dot["color"] for dot in many.values()}) == 4


def test_a_finger_scrolls_the_page_until_a_button_is_chosen() -> None:
    figure = plane(POINTS, KEYS, LABELS, SAID, PLACES, ("queries", "keys"), ("x", "y"), False)
    assert figure.layout.dragmode is False


def test_numbers_have_one_scale() -> None:
    dots, _ = drawn(values=(np.array([0, 1, 0, 5]), "position"))
    assert [dots[n]["color"] for n in range(4)] == [0.0, 1.0, 0.0, 5.0]
    figure = plane(
        POINTS, KEYS, LABELS, SAID, PLACES, ("queries", "keys"), ("x", "y"), True, values=(np.array([0, 1, 0, 5]), "position")
    )
    assert {(trace.marker.cmin, trace.marker.cmax) for trace in figure.data} == {(0, 5)}
    assert figure.layout.title.text == "position"
    assert not figure.layout.showlegend
