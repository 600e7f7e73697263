"""Bars of rows and the picture of the lens show the numbers that they are given."""

import numpy as np
import pytest

from tests import traces
from viz.figures.lens import MOST_WORDS, lens
from viz.figures.row_entropy import entropy
from viz.figures.theme import LIGHT

WORDS = np.array(
    [[["a", "<b>"], ["$x$", "d"]], [["e", "f"], ["a very long word indeed", "h"]]], object
)  # [layer, position, candidate]
# Both [layer, position, candidate].
CHANCES = np.array([[[0.6, 0.2], [0.5, 0.25]], [[0.9, 0.05], [0.7, 0.1]]])


def test_each_row_has_its_bar_and_a_mark_at_what_it_could_be() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.self")
    values, most = np.linspace(0, 2, 12), np.log(np.arange(1, 13))
    figure = entropy(trace, attention, values, most, dark=False, query=3)
    bars, marks = figure.data
    assert list(bars.x) == list(values)
    assert list(marks.x) == list(most)
    assert bars.orientation == "h"
    assert [i for i, colour in enumerate(bars.marker.color) if colour == LIGHT.accent] == [3]
    assert list(figure.layout.yaxis.range) == [11.5, -0.5]
    assert figure.layout.yaxis.labelalias["2"] == "young → dogs"
    assert bars.customdata[0] == "&lt;sos&gt; → two"
    assert figure.layout.xaxis.range[1] > most.max()


def test_a_cell_of_the_lens_has_the_likeliest_token_and_hovering_the_others() -> None:
    figure = lens(["<sos> → a", "a → b"], ["1", "2"], WORDS, CHANCES, dark=False, title="query: decoder", query=1)
    (cells,) = figure.data
    assert np.array_equal(cells.z, [[0.6, 0.9], [0.5, 0.7]]), "positions from top to bottom, layers from left to right"
    assert [list(row) for row in cells.text] == [["a", "e"], ["&#36;x&#36;", "a very long w…"]]
    assert cells.customdata[0][0] == "&lt;sos&gt; → a<br><b>a</b>  0.6000<br><b>&lt;b&gt;</b>  0.2000"
    (short,) = lens(["<sos> → a", "a → b"], ["1", "2"], WORDS, CHANCES, dark=False, title="t", form=".2f").data
    assert short.customdata[0][0].endswith("<b>a</b>  0.60<br><b>&lt;b&gt;</b>  0.20"), "in big mode"
    assert cells.customdata[1][1].startswith("a → b<br><b>a very long word indeed</b>")
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("after layer", "query: decoder")
    assert [(s.y0, s.y1) for s in figure.layout.shapes] == [(0.5, 1.5)]


@pytest.mark.parametrize(("layers", "worded"), [(MOST_WORDS, True), (MOST_WORDS + 1, False)])
def test_many_layers_have_colours_only(layers: int, worded: bool) -> None:
    words, chances = np.repeat(WORDS[:1], layers, axis=0), np.repeat(CHANCES[:1], layers, axis=0)
    (cells,) = lens(["p", "q"], [str(i) for i in range(layers)], words, chances, dark=True, title="t").data
    assert (cells.texttemplate is not None) == worded
