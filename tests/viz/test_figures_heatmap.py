"""The one-head heatmap says what the trace says, and token text stays text."""

import json
import re

import numpy as np
import pytest

from model.errors import UnknownHead
from model.trace.types import Trace
from tests import traces
from viz.figures.heatmap import Cells, cells, head_weights
from viz.figures.layout import literal
from viz.figures.theme import DARK, LIGHT

HOSTILE = ["<sos>", "<b>bold</b>", "</script><img src=x onerror=alert(1)>", "$x$", "&lt;", "%{z}", "%{customdata[1]}", "<eos>"]


@pytest.fixture(scope="module")
def trace() -> Trace:
    return traces.translation(layers=1)


def test_cells_are_the_weights_and_masked_ones_are_a_layer_of_their_own(trace: Trace) -> None:
    attention = trace.at("decoder.0.0.self")
    shown, masked = head_weights(trace, attention, 2, dark=False).data
    for query, key in np.ndindex(attention.mask.shape):
        layer, other = (shown, masked) if attention.mask[query, key] else (masked, shown)
        assert layer.z[query][key] == attention.weights[2, query, key]
        assert np.isnan(other.z[query][key])
    assert {colour for _place, colour in masked.colorscale} == {LIGHT.masked}
    assert (shown.zmin, shown.zmax) == (0, 1)
    assert [colour for _place, colour in shown.colorscale] == list(LIGHT.weights)


def test_a_row_that_may_look_nowhere_keeps_its_numbers_under_the_mask() -> None:
    trace = traces.translation(layers=1)
    attention = trace.at("decoder.0.0.cross")
    mask = attention.mask.copy()
    mask[1] = False
    uniform = attention.weights.copy()
    uniform[:, 1] = 1 / mask.shape[1]
    emptied = type(attention)(attention.site, "target", "source", uniform, mask)
    masked = head_weights(trace, emptied, 0, dark=True).data[1]
    assert np.allclose(masked.z[1], 1 / mask.shape[1])
    assert "masked" in masked.hovertemplate


def test_a_site_without_masked_cells_has_one_layer(trace: Trace) -> None:
    assert len(head_weights(trace, trace.at("encoder.0.0.self"), 0, dark=False).data) == 1


def test_axes_say_whose_tokens_they_carry_and_run_down_and_right(trace: Trace) -> None:
    layout = head_weights(trace, trace.at("decoder.0.0.cross"), 0, dark=False).layout
    assert layout.yaxis.title.text == "query: decoder (English)"
    assert layout.xaxis.title.text == "key: encoder (German)"
    assert list(layout.yaxis.range) == [11.5, -0.5]
    assert list(layout.xaxis.range) == [-0.5, 11.5]
    assert layout.yaxis.labelalias["2"] == "young → dogs"
    assert layout.xaxis.labelalias["2"] == "junge"


def test_repeated_tokens_keep_their_own_places() -> None:
    trace = traces.translation(source=["<sos>", "der", "der", "der", "<eos>"], layers=1)
    figure = head_weights(trace, trace.at("encoder.0.0.self"), 0, dark=False)
    assert list(figure.layout.xaxis.categoryarray) == [0, 1, 2, 3, 4]
    assert list(figure.data[0].x) == [0, 1, 2, 3, 4]
    assert [figure.layout.xaxis.labelalias[str(i)] for i in (1, 2, 3)] == ["der", "der", "der"]


def test_hovering_reads_whole_labels_and_four_decimals() -> None:
    word = "donaudampfschifffahrtsgesellschaft"
    trace = traces.translation(source=["<sos>", word, "<eos>"], layers=1)
    figure = head_weights(trace, trace.at("decoder.0.0.cross"), 0, dark=False)
    assert figure.data[0].customdata[2][1].tolist() == ["young → dogs", word]
    assert "%{z:.4f}" in figure.data[0].hovertemplate
    assert figure.layout.xaxis.labelalias["1"] == word[:13] + "…"


def test_token_text_is_neither_markup_nor_formula_nor_template() -> None:
    trace = traces.translation(source=HOSTILE, target=HOSTILE, layers=1)
    figure = head_weights(trace, trace.at("decoder.0.0.self"), 0, dark=False)
    plain = head_weights(traces.translation(layers=1), traces.translation(layers=1).at("decoder.0.0.self"), 0, dark=False)
    assert [layer.hovertemplate for layer in figure.data] == [layer.hovertemplate for layer in plain.data]
    texts = [*figure.layout.xaxis.labelalias.values(), *figure.layout.yaxis.labelalias.values(), *figure.data[0].customdata.ravel()]
    assert not [text for text in texts if re.search(r"[<>$]", text)]
    assert texts[:2] == ["&lt;sos&gt;", "&lt;b&gt;bold&lt;/b&gt;"]
    assert "<img" not in json.dumps(figure.to_plotly_json(), default=str)


def test_literal_can_be_read_back_and_is_its_own_inverse_of_nothing() -> None:
    import html

    for text in (*HOSTILE, "a < b & c > d", "&amp;", "100 $"):
        assert html.unescape(literal(text)) == text
        assert not set(literal(text)) & set("<>$")


def test_the_selected_row_has_an_outline(trace: Trace) -> None:
    attention = trace.at("decoder.0.0.cross")
    (outline,) = head_weights(trace, attention, 0, dark=True, query=3).layout.shapes
    assert (outline.y0, outline.y1, outline.x0, outline.x1) == (2.5, 3.5, -0.5, attention.weights.shape[2] - 0.5)
    assert outline.line.color == DARK.text
    for absent in (-1, attention.weights.shape[1]):
        assert not head_weights(trace, attention, 0, dark=True, query=absent).layout.shapes


def test_a_wide_picture_is_lower_and_never_a_ribbon() -> None:
    words = ["<sos>"] + ["wort"] * 200

    def height(rows: int, columns: int) -> int:
        trace = traces.translation(source=words[:columns], target=words[: rows + 1], layers=1)
        return int(head_weights(trace, trace.at("decoder.0.0.cross"), 0, dark=False).layout.height)

    assert 250 < height(2, 100) == height(20, 100) < height(9, 15) < height(13, 13) < height(60, 6) < 600


def test_a_head_that_is_not_there_is_refused(trace: Trace) -> None:
    with pytest.raises(UnknownHead, match=r"There is no head 8 at encoder\.0\.0\.self: its heads are numbered from 0 to 7"):
        head_weights(trace, trace.at("encoder.0.0.self"), 8, dark=False)


@pytest.mark.parametrize("dark", [False, True])
def test_the_ground_is_the_page_and_nothing_floats_over_the_picture(trace: Trace, dark: bool) -> None:
    figure = head_weights(trace, trace.at("encoder.0.0.self"), 0, dark=dark)
    assert figure.layout.paper_bgcolor == figure.layout.plot_bgcolor == "rgba(0,0,0,0)"
    assert figure.layout.font.color == (DARK if dark else LIGHT).text


def test_a_reading_that_is_no_probability_has_colours_up_to_its_largest_value_and_says_what_it_is(trace: Trace) -> None:
    attention = trace.at("decoder.0.0.cross")
    values = attention.weights[0] * 3.5
    figure = cells(trace, attention, Cells(values, "length <moved>", probabilities=False), dark=False)
    (layer,) = figure.data
    assert (layer.zmin, layer.zmax) == (0, values.max())
    assert figure.layout.title.text == "length &lt;moved&gt;"
    assert layer.colorbar.tickvals[-1] == values.max()
    assert "length &lt;moved&gt;: " in layer.hovertemplate
    assert "weight" not in layer.hovertemplate


def test_hidden_keys_have_no_column_and_the_others_keep_their_names(trace: Trace) -> None:
    attention = trace.at("decoder.0.0.self")
    keys = np.array([2, 5, 6])
    figure = cells(trace, attention, Cells(attention.weights[1][:, keys], "share", keys=keys), dark=False)
    shown, masked = figure.data
    assert list(figure.layout.xaxis.labelalias.values()) == ["young", "with", "a"]
    assert shown.customdata[7][1][1] == "with"
    assert shown.z[7][1] == attention.weights[1, 7, 5]
    assert np.isnan(shown.z[3][1])
    assert masked.z[3][1] == attention.weights[1, 3, 5]
    assert list(figure.layout.xaxis.range) == [-0.5, 2.5]


def test_what_is_no_number_is_left_empty(trace: Trace) -> None:
    attention = trace.at("encoder.0.0.self")
    values = attention.weights[0].copy()
    values[3] = np.nan
    (layer,) = cells(trace, attention, Cells(values, "share", probabilities=False), dark=False).data
    assert np.isnan(layer.z[3]).all()
    assert layer.zmax == np.nanmax(values)
    assert layer.hoverongaps is False
