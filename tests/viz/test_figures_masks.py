"""Both forms of a mask show the same cells."""

import numpy as np
import pytest

from tests import traces
from viz.figures import masks
from viz.figures.theme import ALLOWED, LIGHT
from viz.labels.tokens import MaskForm


@pytest.mark.parametrize("form", ["boolean", "additive"])
def test_each_cell_has_its_value_colour_and_sign(form: MaskForm) -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.self")
    cells = masks.mask(trace, attention, attention.mask, form, dark=False).data[0]
    signs = {"boolean": {True: "✓", False: "✗"}, "additive": {True: "0", False: "−∞"}}[form]
    for query, key in np.ndindex(attention.mask.shape):
        assert cells.z[query][key] == (1 if key <= query else 0)
        assert cells.text[query][key] == signs[key <= query]
    off, on = cells.colorscale[0][1], cells.colorscale[-1][1]
    assert (off, on) == (LIGHT.masked, LIGHT.weights[ALLOWED])
    assert cells.texttemplate == "%{text}"


def test_the_legend_says_what_the_colours_mean_and_cannot_be_clicked_away() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.self")
    figure = masks.mask(trace, attention, attention.mask, "additive", dark=False)
    named = {marker.name: marker.marker.color for marker in figure.data[1:]}
    assert named == {"0  allowed": LIGHT.weights[ALLOWED], "−∞  masked": LIGHT.masked}
    assert figure.layout.showlegend
    assert figure.layout.legend.itemclick is False


def test_the_padding_mask_of_the_first_example_has_signs() -> None:
    """With four tokens of padding it has 14 columns: only legend and hover said what they mean."""
    trace = traces.translation(source=["wort"] * 14, layers=1)
    attention = trace.at("encoder.0.0.self")
    assert masks.mask(trace, attention, attention.mask, "boolean", dark=True).data[0].texttemplate == "%{text}"


@pytest.mark.parametrize("count", [masks.MOST_SIGNS + 1, 40])
def test_where_signs_no_longer_fit_legend_and_hover_say_them(count: int) -> None:
    trace = traces.translation(source=["wort"] * count, layers=1)
    attention = trace.at("encoder.0.0.self")
    figure = masks.mask(trace, attention, attention.mask, "additive", dark=True)
    assert figure.data[0].texttemplate is None
    assert [entry.name for entry in figure.data[1:]] == ["0  allowed", "−∞  masked"]
    assert "%{text}" in figure.data[0].hovertemplate
