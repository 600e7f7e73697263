"""The picture of a difference says what was subtracted, cell by cell."""

from dataclasses import replace

import numpy as np
import pytest

from model.errors import UnknownHead
from model.trace.types import Trace
from tests import traces
from viz.features.compare.figures import difference
from viz.figures.theme import DARK, LIGHT
from viz.i18n import translate

SITE = "decoder.0.0.self"


@pytest.fixture(scope="module")
def sides() -> tuple[Trace, Trace]:
    words = [*traces.ENGLISH]
    words[2] = "<b>old</b>"
    return traces.translation(layers=1), traces.translation(target=words, layers=1, seed=1)


@pytest.mark.parametrize("dark", [False, True])
def test_cells_are_second_minus_first_on_a_scale_that_is_centred_at_zero(sides: tuple[Trace, Trace], dark: bool) -> None:
    first, second = ((trace, trace.at(SITE)) for trace in sides)
    rows = np.array([0, 1, 2, 5])
    (layer,) = difference(first, second, 3, rows, 6, dark).data
    for place, row in enumerate(rows):
        for key in range(6):
            if key > row:
                assert np.isnan(layer.z[place][key]), "neither side may look there"
            else:
                expected = float(second[1].weights[3, row, key]) - float(first[1].weights[3, row, key])
                assert layer.z[place][key] == pytest.approx(expected, abs=1e-12)
    minus, zero, plus = layer.colorbar.ticktext
    assert (minus[0], zero, plus[0], minus[1:]) == ("−", "0", "+", plus[1:]), "a zero has no sign"
    assert float(plus) == pytest.approx(layer.zmax, rel=0.01)
    assert -layer.zmin == layer.zmax == np.nanmax(np.abs(layer.z))
    assert [colour for _place, colour in layer.colorscale] == list((DARK if dark else LIGHT).diverging)


def test_hovering_names_both_texts_and_both_weights(sides: tuple[Trace, Trace]) -> None:
    first, second = ((trace, trace.at(SITE)) for trace in sides)
    figure = difference(first, second, 0, np.arange(6), 6, dark=False)
    query, key, one, other, change = figure.data[0].customdata[4][2]
    assert key == "young / &lt;b&gt;old&lt;/b&gt;"
    assert query == "play → with"
    assert (one, other) == (f"{first[1].weights[0, 4, 2]:.4f}", f"{second[1].weights[0, 4, 2]:.4f}")
    assert change == f"{second[1].weights[0, 4, 2].astype(float) - first[1].weights[0, 4, 2]:+.4f}".replace("-", "−")
    two = difference(first, second, 0, np.arange(6), 6, dark=False, digits=2).data[0].customdata[4][2]
    assert list(two[2:4]) == [f"{each[1].weights[0, 4, 2]:.2f}" for each in (first, second)], "in big mode"
    with translate.speaking("de"):
        (layer,) = difference(first, second, 0, np.arange(6), 6, dark=False).data
    assert layer.customdata[4][2][2] == one.replace(".", ","), "a German page has no decimal points"
    assert "−" in {text[0] for row in figure.data[0].customdata for *_rest, text in row}, "a hyphen is no minus sign"
    assert figure.layout.xaxis.title.text == "key: decoder (English)"
    assert list(figure.layout.yaxis.range) == [5.5, -0.5]


def test_rounding_is_drawn_as_none_and_does_not_fill_the_scale(sides: tuple[Trace, Trace]) -> None:
    trace = sides[0]
    site = trace.at(SITE)
    nearly = replace(site, weights=site.weights + np.float32(5e-7))
    (layer,) = difference((trace, site), (trace, nearly), 0, np.arange(6), 6, dark=False, rounding=1e-5).data
    assert set(layer.z[~np.isnan(layer.z)].tolist()) == {0.0}
    (raw,) = difference((trace, site), (trace, nearly), 0, np.arange(6), 6, dark=False).data
    assert raw.zmax < 1e-6, "without a limit, rounding fills the scale"


def test_equal_sides_have_a_flat_picture_and_a_head_that_is_not_there_is_refused(sides: tuple[Trace, Trace]) -> None:
    one = (sides[0], sides[0].at(SITE))
    (layer,) = difference(one, one, 0, np.arange(3), 3, dark=False).data
    assert (np.nanmax(layer.z), layer.zmax) == (0, 1)
    with pytest.raises(UnknownHead):
        difference(one, one, 8, np.arange(3), 3, dark=False)
