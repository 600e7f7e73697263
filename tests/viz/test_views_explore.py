"""Explore on made-up runs: what is drawn, said and taken away is the reading that the link asks for."""

import base64
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.errors import UnknownTensor
from model.measures.rows import entropies
from model.requests.request import RunRequest
from model.trace.rollout import rollout
from model.trace.types import Array, Trace
from tests import traces
from tests.pages import MadeUpEngine, figures, open_view, words
from viz.canvas.wire.transport import unpack
from viz.labels import measures
from viz.metrics import heads
from viz.metrics.aggregation import value_weighted
from viz.metrics.similar_heads import most_alike
from viz.url.parsers import READINGS

CROSS = "decoder.0.1.cross"
SPEC = {
    "encoder": {"positions": "learned", "wiring": "standard"},
    "decoder": {"positions": "learned", "wiring": "standard", "final_norm": False, "norm": "standard"},
    "output": {"bias": True, "softmax": "vocab"},
    "end_id": 3,
}


def with_values(trace: Trace, scale: float = 1.0) -> Trace:
    """The same run, having kept values and hidden states."""
    rng = np.random.default_rng(2)
    found = {}
    for site, one in trace.attention.items():
        v = rng.normal(size=(one.heads, one.weights.shape[2], 8)).astype(np.float32)
        v[:, 0] *= scale
        found[site] = replace(one, v=v)
    hidden = {f"decoder.0.{layer}": rng.normal(size=(12, 16)).astype(np.float32) for layer in range(2)}
    return replace(trace, attention=found, hidden=hidden)


class Engine(MadeUpEngine):
    """Keeps values where they are asked for; has an output projection unless it is `blind`."""

    blind = False
    values = True

    def run(self, request: RunRequest) -> Trace:
        return with_values(self.trace, scale=0.01) if request.keep and self.values else self.trace

    def tensors(self, names: tuple[str, ...]) -> dict[str, Array]:
        if self.blind:
            raise UnknownTensor(asked=names[0], there="nothing")
        shapes = {"output.weight": (50, 16), "output.bias": (50,)}
        return {name: np.random.default_rng(len(name)).normal(size=shapes.get(name, (16, 16))) for name in names}


def engine(**fields: Any) -> Engine:
    return Engine(trace=traces.translation(layers=2, heads=2), spec=SPEC, **fields)


def heat(app: AppTest) -> dict[str, Any]:
    (figure,) = figures(app)[:1]
    return figure


def cells(app: AppTest) -> Array:
    """The values of the first layer of cells, as the browser gets them."""
    return decoded(heat(app)["data"][0]["z"])


def head_drawn(app: AppTest) -> tuple[dict[str, Any], Array]:
    """What the browser gets of the picture whose cells can be opened: its header and its numbers."""
    (found,) = [one.proto.bytes for one in app.get("bidi_component") if one.proto.component_name == "headlight.cells"]
    header, blobs = unpack(found)
    return header, blobs["exact"]


def decoded(array: Any) -> Array:
    """An array of a figure, as plotly writes it for the browser."""
    if not isinstance(array, dict):
        return np.array(array, np.float64)
    flat = np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).astype(np.float64)
    return flat.reshape([int(size) for size in array["shape"].split(",")]) if "shape" in array else flat


def test_without_a_reading_the_raw_head_is_drawn_and_nothing_else_is_asked_for() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, head="1")
    header, drawn = head_drawn(app)
    np.testing.assert_array_equal(drawn, made.trace.at(CROSS).weights[1])
    assert (header["site"], header["head"], header["texts"]["value"]) == (CROSS, 1, "weight")
    assert header["opened"] == [-1, -1]
    assert ">Cross-attention, layer 2, head 2<" in words(app)
    assert not [request for request in made.asked if request.keep]
    assert not figures(app), "what is folded up is not computed"


def test_the_facts_of_the_head_are_its_statistics_each_with_its_meaning() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, head="1")
    (facts,) = [found.proto.body for found in app.get("html") if "fact" in found.proto.body]
    statistics = heads.head_statistics(made.trace, made.trace.at(CROSS), 1)
    assert facts.count('<details class="fact"') == len(heads.SHOWN)
    for name, value in statistics.values.items():
        assert f"<span>{escape(measures.titles()[name])}</span><b>{value:.2f}</b>" in facts
        assert f"{escape(measures.meanings()[name])}</details>" in facts
    assert f"Mean over the {statistics.rows} rows that have a choice" in facts


def lines_drawn(app: AppTest) -> tuple[dict[str, Any], Array]:
    """What the browser gets of the lines: their header and their numbers."""
    (found,) = [one.proto.bytes for one in app.get("bidi_component") if one.proto.component_name == "headlight.lines"]
    header, blobs = unpack(found)
    return header, unpack(blobs["exact"].tobytes())[1]["exact"]


FOLLOW = "These numbers describe the weights of the heads; they do not depend on the chosen view."


@pytest.mark.parametrize("name", ["head", "entropy"])
def test_lines_show_the_weights_where_a_reading_has_no_number_for_each_pair_and_the_page_says_so(name: str) -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, head="1", reading=name)
    header, drawn = lines_drawn(app)
    np.testing.assert_array_equal(drawn, made.trace.at(CROSS).weights[1])
    assert (header["opens"], header["largest"]) == (True, 1.0)
    text = words(app).replace("\\", "")
    assert ("The lines show the weights of the selected head instead." in text, FOLLOW in text) == (name == "entropy",) * 2


def test_lines_leave_hidden_tokens_out_and_statistics_say_that_they_do_not() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, hide="special")
    weights = made.trace.at(CROSS).weights[0].astype(float)
    expected = weights / weights[:, 1:-1].sum(axis=-1, keepdims=True)
    expected[:, [0, -1]] = 0
    header, drawn = lines_drawn(app)
    assert drawn == pytest.approx(expected, rel=1e-5)
    assert not header["opens"]
    assert FOLLOW in words(app)


@pytest.mark.parametrize("name", ["mean", "max", "value", "rollout"])
def test_a_reading_is_drawn_under_its_own_name(name: str) -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, head="1", reading=name)
    attention = with_values(made.trace).at(CROSS)
    assert attention.v is not None
    projection = made.tensors(("decoder.layers.1.cross_attention.output.weight",)).popitem()[1]
    v = with_values(made.trace, scale=0.01).at(CROSS).v
    assert v is not None
    expected = {
        "mean": attention.weights.astype(float).mean(axis=0),
        "max": attention.weights.max(axis=0),
        "value": value_weighted(attention.weights[1], v[1], projection[:, 8:]),
        "rollout": rollout(made.trace, attention.site),
    }[name]
    assert cells(app) == pytest.approx(expected, rel=1e-5)
    header, drawn = lines_drawn(app)
    assert drawn == pytest.approx(expected, rel=1e-5)
    assert header["largest"] == pytest.approx(1.0 if header["opens"] else expected.max())
    assert FOLLOW in words(app)
    assert heat(app)["layout"]["title"]["text"] != "weight"
    titles = {"mean": "Mean over heads", "max": "Maximum over heads", "value": "Weight × value", "rollout": "Rollout"}
    assert titles[name] + " · " in words(app)
    assert bool([request for request in made.asked if "qkv" in request.keep]) == (name == "value")
    assert not app.latex, "what is folded up is not computed"
    assert opened(app, "about-reading").latex


def test_values_are_measured_before_the_projection_where_the_engine_does_not_give_it_and_the_page_says_so() -> None:
    made = engine()
    made.blind = True
    app = open_view("explore", made, site=CROSS, reading="value")
    v = with_values(made.trace, scale=0.01).at(CROSS).v
    assert v is not None
    assert cells(app) == pytest.approx(value_weighted(made.trace.at(CROSS).weights[0], v[0]), rel=1e-5)
    assert "before the output projection" in words(opened(app, "about-reading"))


def test_a_run_that_kept_no_values_shows_the_raw_head_and_says_why() -> None:
    made = engine()
    made.values = False
    app = open_view("explore", made, site=CROSS, reading="value")
    np.testing.assert_array_equal(head_drawn(app)[1], made.trace.at(CROSS).weights[0])
    assert "This run contains no value vectors" in words(app).replace("\\", "")


def test_entropy_has_a_bar_for_each_row() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, reading="entropy")
    bars, marks = heat(app)["data"]
    assert decoded(bars["x"]) == pytest.approx(entropies(made.trace.at(CROSS).weights[0]))
    assert decoded(marks["x"]) == pytest.approx(np.full(12, np.log(12)))


def test_hidden_tokens_lose_their_columns_and_the_page_says_what_they_held() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, hide="special")
    weights = made.trace.at(CROSS).weights[0].astype(float)
    rest = weights[:, 1:-1] / weights[:, 1:-1].sum(axis=-1, keepdims=True)
    assert cells(app) == pytest.approx(rest, rel=1e-5)
    share = f"{np.mean(weights[:, [0, -1]].sum(axis=-1)):.0%}"
    assert f"2 special tokens left out; they held {share} of the weight" in words(app).replace("\\", "")
    assert heat(app)["layout"]["title"]["text"] == "share of the rest"


def test_a_page_opens_without_the_first_token_where_most_heads_look_there_and_one_switch_brings_it_back() -> None:
    made = Engine(trace=traces.at_first(), spec={**SPEC, "encoder": None})
    app = open_view("explore", made, site="decoder.0.1.self", head="1")
    assert not app.exception
    weights = made.trace.at("decoder.0.1.self").weights[1].astype(float)
    rest = weights[:, 1:] / np.where(weights[:, 1:].sum(axis=-1) > 0, weights[:, 1:].sum(axis=-1), np.nan)[:, None]
    drawn = cells(app)
    there = np.tril(np.ones(weights.shape, bool))[:, 1:] & np.isfinite(rest)
    assert drawn[there] == pytest.approx(rest[there], rel=1e-5)
    said = words(app).replace("\\", "")
    assert f"Without the first token, “<sos>”, which holds {weights[1:, 0].mean():.0%} of a row on average." in said
    assert "1 row had all its weight on the first token and is now empty." in said
    assert "hide" not in app.query_params
    app.toggle(key="widget:hide-first").set_value(False).run()
    assert app.query_params["hide"] == "none"
    assert not [figure for figure in figures(app) if "share of the rest" in str(figure)]
    assert "Without the first token" not in words(app)
    app.toggle(key="widget:hide-first").set_value(True).run()
    assert "hide" not in app.query_params
    app.toggle(key="widget:hide").set_value(True).run()
    assert app.query_params["hide"] == "special"


def test_the_first_token_can_be_left_out_of_any_run_and_any_view() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS, hide="first", reading="mean")
    mean = made.trace.at(CROSS).weights.astype(float).mean(axis=0)
    assert cells(app) == pytest.approx(mean[:, 1:] / mean[:, 1:].sum(axis=-1, keepdims=True), rel=1e-5)
    assert "Mean over heads" in words(app)


def test_the_reading_and_the_toggle_are_tied_to_the_link() -> None:
    app = open_view("explore", engine(), site=CROSS)
    app.selectbox(key="widget:reading").set_value("mean").run()
    app.toggle(key="widget:hide").set_value(True).run()
    assert not app.exception
    assert (app.query_params["reading"], app.query_params["hide"]) == ("mean", "special")
    app.toggle(key="widget:hide").set_value(False).run()
    assert "hide" not in app.query_params
    assert list(app.selectbox(key="widget:reading").options) == [
        "This head", "Mean over heads", "Maximum over heads", "Weight × value", "What it writes", "Rollout", "Entropy of each row",
    ]  # fmt: skip
    assert len(READINGS) == 7


@pytest.mark.parametrize(("scale", "said"), [(0.01, "this weight moves little"), (5.0, "this weight does move something")])
def test_a_head_that_rests_on_one_token_is_told_with_numbers(scale: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    attention = made.trace.at(CROSS)
    weights = np.full_like(attention.weights, 0.36 / 11)
    weights[:, :, 0] = 0.64
    resting = {**made.trace.attention, attention.site: replace(attention, weights=weights)}
    made.trace = replace(made.trace, attention=resting)
    kept = with_values(made.trace, scale)
    monkeypatch.setattr(made, "run", lambda request: kept if request.keep else made.trace)
    text = words(open_view("explore", made, site=CROSS)).replace("\\", "")
    assert "64% of a row’s weight goes to “<sos>” (key 1)" in text
    assert said in text


def test_a_silenced_head_is_told() -> None:
    app = open_view("explore", engine(), site=CROSS, head="1", silence=f"{CROSS}:1")
    assert "This head is silenced" in words(app).replace("\\", "")
    assert "silenced" not in words(open_view("explore", engine(), site=CROSS, head="0", silence=f"{CROSS}:1"))


def opened(app: AppTest, part: str) -> AppTest:
    """The page after a folded part of it was opened."""
    app.session_state[part] = True
    app.run()
    assert not app.exception, app.exception
    return app


def test_the_lens_has_a_column_for_each_layer_and_asks_for_states_only_when_it_is_opened() -> None:
    made = engine()
    app = open_view("explore", made, site=CROSS)
    assert not [request for request in made.asked if "hidden" in request.keep]
    found = figures(opened(app, "part-lens"))[0]
    assert [request.keep for request in made.asked if "hidden" in request.keep] == [("hidden",)]
    said = found["data"][0]
    assert (len(said["text"]), len(said["text"][0])) == (12, 2)
    trace = with_values(made.trace)
    tensors = made.tensors(("output.weight", "output.bias"))
    for layer, state in enumerate(trace.hidden.values()):
        logits = state.astype(np.float64) @ tensors["output.weight"].T + tensors["output.bias"]
        assert [row[layer] for row in said["text"]] == [f"word{id_}" for id_ in logits.argmax(axis=-1)]
    assert "Only the last layer’s prediction is the model’s real output" in words(app)


def test_a_model_without_an_output_layer_has_no_lens_and_the_page_says_so() -> None:
    made = engine()
    made.spec = {**SPEC, "output": None}
    app = opened(open_view("explore", made, site=CROSS), "part-lens")
    assert "This model has no output layer" in words(app)
    assert not figures(app)


def test_a_click_on_a_head_that_is_alike_selects_it() -> None:
    made = engine()
    app = opened(open_view("explore", made, site=CROSS, head="1"), "part-alike")
    nearest = most_alike(made.trace, made.trace.at(CROSS), 1)
    buttons = [button for button in app.button if button.key and button.key.startswith("alike-")]
    assert [button.key for button in buttons] == [f"alike-{one.site}-{one.head}" for one in nearest]
    assert f"{nearest[0].divergence:.3f} bits" in buttons[0].label.replace("\\", "")
    buttons[0].click().run()
    assert app.query_params["site"] == str(nearest[0].site)
    assert app.query_params.get("head", "0") in (str(nearest[0].head), [str(nearest[0].head)])


def test_the_table_and_its_file_are_those_of_the_reading() -> None:
    made = engine()
    app = opened(open_view("explore", made, site=CROSS, reading="mean", hide="special"), "part-numbers")
    table = app.dataframe[0].value
    assert table.shape == (12, 10)
    assert table.columns[0] == "2 zwei"
    assert table.to_numpy() == pytest.approx(cells(app), abs=1e-4)
    assert [download.proto.label for download in app.get("download_button")] == ["Download as CSV"]
    app.button(key="export").click().run()
    labels = [download.proto.label for download in app.get("download_button")]
    assert sorted(labels) == [
        "Download as CSV",
        "Download as CSV",
        "Download everything (.zip)",
        "Download the overview as a web page",
        "Download the run (trace file)",
    ]
    dialog = words(app)
    assert "The whole run with all its numbers. The Checkpoint page opens it again." in dialog, "what each download is for"
    assert all(f"**{title}**" in dialog for title in ("Figure", "Table", "Web page", "Trace", "Everything"))


def test_a_long_input_is_left_to_the_atlas_and_the_page_says_so() -> None:
    trace = traces.encoder(1, 2, 300)
    app = open_view("explore", MadeUpEngine(trace), site="encoder.0.0.self")
    assert not figures(app)
    assert "This map has 300 × 300 weights; at most 256 × 256 are drawn here." in " ".join(box.value for box in app.info)
    assert "Lines are drawn for at most 256 tokens per side." in words(app)
    assert sum(found.proto.ByteSize() for found in app.get("bidi_component")) < 400_000, "weights travel with each script run"
