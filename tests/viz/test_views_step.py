"""The page Step through: two clocks, and of the computation clock every stage of real runs, with the run's own numbers."""

import base64
import itertools
import re
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from model.checkpoints.native import Checkpoint
from model.engine.api import Explain
from model.inference.cell import explain_cell
from model.requests.request import KEEP, RunRequest
from model.trace import stages
from model.trace.cell_arithmetic import Explanation
from model.trace.source_lines import code
from model.trace.stages import OF_CELLS, Stage
from model.trace.types import Array, Trace
from tests import traces
from tests.counting import calls_in_threads
from tests.known import bundled_engine
from tests.pages import MadeUpEngine, figures, open_view, words
from tests.runs import SPECS, checkpoint, request, traced
from viz.canvas.scenes import attention, network
from viz.canvas.wire.transport import unpack
from viz.labels.titles import titles
from viz.views.step import cell_panels
from viz.views.step.formulas import formula


@cache
def made(name: str) -> tuple[Checkpoint, Trace]:
    found = checkpoint(SPECS[name])
    return found, traced(found, request(SPECS[name]))


@dataclass
class RealEngine(MadeUpEngine):
    """Answers with the run of a real network, which it may have spoiled."""

    found: Checkpoint = field(default_factory=lambda: made("paper")[0])

    def run(self, request: RunRequest) -> Trace:
        return self.trace

    def explain(self, question: Explain) -> Explanation:
        return explain_cell(self.found.network, self.trace, question.site, question.head, question.query, question.key)


def real(name: str) -> RealEngine:
    found, trace = made(name)
    return RealEngine(trace=trace, found=found)


def opened(engine: MadeUpEngine, stage: str, **query: str) -> AppTest:
    return open_view("step", engine, False, clock="computation", stage=stage, **query)


def numbers(values: Any) -> Array:
    """A plotly array as the browser gets it: a list, or typed bytes."""
    if isinstance(values, dict):
        flat = np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])
        return flat.reshape([int(size) for size in values["shape"].split(",")]) if "shape" in values else flat
    return np.array(values, dtype=np.float64)


ROUNDED = 6e-5
"""A table shows four decimals."""


@cache
def kinds(name: str) -> dict[tuple[str, ...], Stage]:
    """The stages of a network by their part of it, formula and code; of many alike layers the last."""
    trace = made(name)[1]
    return {
        (stage.stack, stage.place.rpartition(".")[2], stage.name, formula(trace, stage), str(code(trace, stage))): stage
        for stage in stages.walk(trace)
    }


@pytest.mark.parametrize("name", SPECS)
def test_every_stage_shows_the_numbers_of_the_run(name: str) -> None:
    """A stage that an earlier network has with the same formula and code is drawn of that one, except for the logits."""
    engine = real(name)
    seen = {kind for other in itertools.takewhile(lambda other: other != name, SPECS) for kind in kinds(other)}
    app = opened(engine, "")
    for stage in [stage for kind, stage in kinds(name).items() if kind not in seen or stage.name == "logits"]:
        app.query_params["stage"] = str(stage)
        assert not app.run().exception
        assert f"### {titles()[stage.name]}" in words(app)
        assert f"`{stage}`" in words(app)
        array = stages.tensor(engine.trace, stage, 0)
        if array is None:
            assert stage.name in ("tokens", "ids", "probabilities", "chosen")
            continue
        table = app.dataframe[-1].value.to_numpy()
        table = table == "✓" if array.dtype == bool else table
        np.testing.assert_allclose(table.T if stage.name == "logits" else table, array, rtol=0, atol=ROUNDED, err_msg=str(stage))
        if stage.name not in (*OF_CELLS, "logits"):
            drawn = numbers(figures(app)[0]["data"][0]["z"])
            assert np.array_equal(drawn.astype(array.dtype), array), f"{stage}: the picture is not the tensor"


def test_logits_and_probabilities_are_those_of_the_chosen_row() -> None:
    engine = real("paper")
    trace = engine.trace
    assert trace.logits is not None
    logits = opened(engine, "output/logits", query="1")
    drawn = numbers(figures(logits)[0]["data"][0]["x"])
    np.testing.assert_array_equal(drawn, np.sort(trace.logits[1])[::-1].astype(np.float64)[: len(drawn)])
    best = np.argsort(-trace.logits[1], kind="stable")[: len(drawn)]
    assert figures(logits)[0]["data"][0]["customdata"] == [f"word{id_}" for id_ in best], "every rank has its word, not its id"
    shares = numbers(figures(opened(engine, "output/probabilities", query="1"))[0]["data"][0]["x"])
    exponentials = np.exp(np.sort(trace.logits[1].astype(np.float64))[::-1])
    np.testing.assert_allclose(shares, (exponentials / exponentials.sum())[: len(shares)], atol=1e-6)
    assert shares.tolist() == [float(np.exp(c.log_probability)) for c in trace.steps[1].candidates], "not what was recorded"


def test_the_tokens_taken_are_those_of_the_steps() -> None:
    engine = real("paper")
    table = opened(engine, "output/chosen").dataframe[-1].value
    assert table["token chosen"].tolist() == [step.chosen.text for step in engine.trace.steps]
    assert table["log-probability"].tolist() == pytest.approx(
        [step.chosen.log_probability for step in engine.trace.steps], abs=ROUNDED
    )


def test_the_run_behind_all_stages_keeps_everything_and_is_the_same() -> None:
    engine = real("paper")
    app = opened(engine, "encoder/tokens")
    app.query_params["stage"] = "decoder.0.1.cross/weights"
    app.run()
    assert {asked.keep for asked in engine.asked} == {KEEP}
    assert len(set(engine.asked)) == 1, "another stage asked for another run"


def test_a_stage_costs_a_bounded_number_of_calls() -> None:
    """It was 38,000 when this was written, which took 15 ms."""
    app = opened(real("paper"), "encoder.0.0.self/normed")
    assert 1000 < calls_in_threads(app.run) < 80_000


def test_the_token_clock_is_the_first() -> None:
    app = open_view("step", MadeUpEngine())
    assert app.get("button_group")
    assert "###" not in words(app)
    assert any(box.label == "Attention layer to watch" for box in app.selectbox)


def test_formulas_are_bound_to_what_is_on_screen() -> None:
    app = opened(real("paper"), "decoder.0.1.cross/scores")
    assert [latex.value for latex in app.latex] == ["$$\nS = \\frac{Q\\,K^\\top}{\\sqrt{4}}\n$$"]
    shape = made("paper")[1].at("decoder.0.1.cross").weights.shape[1:]
    assert f"$S$: {shape[0]} × {shape[1]}" in words(app)
    assert f"$Q$: {shape[0]} × 4" in words(app)
    assert "Cross-attention, layer 2, head 1" in words(app).replace("\\", "")


def test_each_variant_has_a_formula_of_its_own() -> None:
    def formula_of(name: str, stage: str) -> str:
        return "".join(latex.value for latex in opened(real(name), stage).latex)

    assert "mathrm{FFN}(x)" in formula_of("paper", "encoder.0.0.feed_forward/residual")
    assert "LayerNorm" in formula_of("modern, tied", "encoder.0.0.feed_forward/residual")
    assert "b^Q" in formula_of("paper", "encoder.0.0.self/queries")
    assert "b^Q" not in formula_of("uneven", "encoder.0.0.self/queries")
    assert "E^\\top" in formula_of("modern, tied", "output/logits")


def test_the_line_of_code_stands_there_with_its_file() -> None:
    app = opened(real("paper"), "encoder.0.0.self/scores")
    assert any("query @ key.transpose(-2, -1) * scale" in each.value for each in app.code)
    assert "model/transformer/attention.py" in words(app)


@pytest.mark.parametrize("stage", OF_CELLS)
def test_a_cell_opens_its_arithmetic(stage: str) -> None:
    engine = real("paper")
    app = opened(engine, f"decoder.0.1.cross/{stage}", head="1", query="2", key="3")
    said = words(app).replace("\\", "")
    cell = engine.ask(Explain(RunRequest("tiny", ""), "decoder.0.1.cross", 1, 2, 3))
    assert "recomputed in float64, largest difference" in said
    assert ":green-badge" in said
    assert f"The run recorded {cell.ran:.7f}." in said
    assert any(cell_panels.number(cell.weight) in latex.value for latex in app.latex)
    bars = [figure for figure in figures(app) if figure["data"][0]["type"] == "bar"]
    np.testing.assert_array_equal(numbers(bars[0]["data"][0]["y"]), cell.q)
    np.testing.assert_array_equal(numbers(bars[0]["data"][2]["y"]), cell.products)
    np.testing.assert_array_equal(numbers(bars[1]["data"][0]["x"]), cell.weights)
    np.testing.assert_array_equal(numbers(bars[1]["data"][1]["x"]), cell.moved)


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.04954, "1.0495"), (0.000861, "0.0008610"), (-0.33461, "-0.3346"), (0.0, "0.0000"), (8.612e-9, r"8.612 \cdot 10^{-9}")],
)
def test_a_small_number_of_a_formula_has_significant_digits(value: float, written: str) -> None:
    """0.0009 / 1.0495 was said to be 0.0008."""
    assert cell_panels.number(value) == written


def printed(formula: str) -> list[float]:
    """The numbers of a formula."""
    plain = re.sub(r" \\cdot 10\^\{(-?\d+)\}", r"e\1", formula.replace("{,}", "."))
    return [float(text) for text in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", plain)]


@pytest.mark.parametrize(
    ("link", "query", "key"), [("site=decoder.0.2.cross&head=0", 2, 3), ("site=encoder.0.1.self&head=7", 3, 3), ("head=4", 5, 1)]
)
def test_a_pocket_calculator_gives_what_is_printed(link: str, query: int, key: int) -> None:
    view = dict(parse_qsl(link))
    request = RunRequest("multi30k-de-en", "Zwei junge Hunde spielen mit einem Ball im Schnee.")
    site = view.get("site", "decoder.0.2.cross")
    found = bundled_engine().ask(Explain(request, site, int(view["head"]), query, key))
    formulas = [line.text for line in (*cell_panels.score(found), *cell_panels.weight(found)) if line.formula]
    product = next(formula for formula in formulas if r"\times" in formula)
    dot, scale, score = printed(product)
    assert float(f"{dot * scale:{cell_panels.significant(score)}}") == score
    assert dot == printed(formulas[0])[0], "the product of query and key is the one that is printed above"
    above, below, weight = printed(formulas[-1].partition(" = ")[2])
    assert float(f"{above / below:{cell_panels.significant(weight)}}") == weight


def test_what_is_subtracted_has_brackets_only_if_it_is_negative() -> None:
    assert [cell_panels.minus(value) for value in (6.7074, -6.7074)] == ["- 6.7074", "- (-6.7074)"]


def test_a_tampered_run_turns_the_badge_red() -> None:
    engine = real("paper")
    attention = engine.trace.at("decoder.0.1.cross")
    forged = attention.weights.copy()
    forged[1, 2, 3] += 0.01
    engine.trace = replace(engine.trace, attention={**engine.trace.attention, attention.site: replace(attention, weights=forged)})
    said = words(opened(engine, "decoder.0.1.cross/weights", head="1", query="2", key="3"))
    assert "Does not match the run" in said
    assert ":red-badge" in said
    assert ":green-badge" not in said


def test_numbers_that_are_not_finite_are_named_with_their_first_stage() -> None:
    engine = real("paper")
    array = engine.trace.stages["encoder.0.0.feed_forward/hidden"].copy()
    array[1, 2], array[1, 3] = np.nan, np.inf
    engine.trace = replace(engine.trace, stages={**engine.trace.stages, "encoder.0.0.feed_forward/hidden": array})
    here = opened(engine, "encoder.0.0.feed_forward/hidden")
    assert "2 values here are NaN or infinite" in words(here)
    assert numbers(figures(here)[0]["data"][1]["z"])[1, 2:4].tolist() == [0, 0], "they have a layer of their own"
    assert [figures(here)[0]["data"][1]["text"][1][i] for i in (2, 3)] == ["NaN", "∞"]
    elsewhere = words(opened(engine, "output/logits"))
    assert "first at encoder" in elsewhere
    assert "here there are none" in elsewhere


def test_a_stage_that_was_not_recorded_says_why() -> None:
    engine = real("paper")
    engine.trace = traced(engine.found, replace(request(SPECS["paper"]), keep=()))
    said = words(opened(engine, "decoder.0.1.cross/queries")).replace("\\", "").replace("\u2060", "")
    assert "No numbers for this stage: not recorded: ask for it with --keep qkv" in said


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ({"stage": "decoder.0.9.cross/weights"}, "This run has no stage"),
        ({"stage": "decoder.0.1.cross/nothing"}, "Available: decoder.0.1.cross/normed"),
        (
            {"stage": "decoder.0.1.cross/weights", "query": "2", "key": "77"},
            "key: “77” is not accepted. Allowed: a number from 0 to 5 at",
        ),
        (
            {"stage": "decoder.0.1.cross/weights", "query": "44", "key": "0"},
            "query: “44” is not accepted. Allowed: a number from 0 to 4 at",
        ),
    ],
)
def test_what_is_not_there_is_answered_in_a_sentence(query: dict[str, str], text: str) -> None:
    engine = real("modern, tied" if "nothing" in query["stage"] else "paper")
    said = words(open_view("step", engine, False, clock="computation", **query))
    assert text in said.replace("\\", "").replace("\u2060", "")


def test_a_run_without_queries_says_so_instead_of_the_arithmetic() -> None:
    engine = MadeUpEngine(trace=traces.translation(layers=1, heads=2))
    said = words(opened(engine, "decoder.0.0.cross/weights", query="1", key="1")).replace("\\", "")
    assert "There is no tensor “attention/decoder.0.0.cross/q”" in said


def test_the_map_has_every_stage_once_and_in_order() -> None:
    for name in SPECS:
        trace = made(name)[1]
        walk = stages.walk(trace)
        header, _blobs = unpack(network.scene(trace, walk, titles(), walk[3]))
        boxes = [box for column in header["columns"] for part in column["parts"] for box in part["boxes"]]
        assert [stage for box in boxes for stage, _title in box["stages"]] == list(map(str, walk)) == header["order"]
        crossing = [box for box in boxes if box["reads_encoder"]]
        assert len(crossing) == sum(site.kind != "self" for site in trace.attention)
        assert header["stage"] == str(walk[3])


def test_scores_that_were_never_computed_are_counted_in_words() -> None:
    engine = real("paper")
    scores = engine.trace.at("decoder.0.1.self").scores
    assert scores is not None
    missing = int(np.isnan(scores[1]).sum())
    assert missing
    said = words(opened(engine, "decoder.0.1.self/scores", head="1"))
    assert f"{missing} scores are empty: they were never computed" in said
    assert "never computed" not in words(opened(engine, "decoder.0.1.cross/scores", head="1"))


def test_cells_travel_as_they_ran() -> None:
    trace = made("paper")[1]
    scores = trace.at("decoder.0.1.self").scores
    assert scores is not None
    header, blobs = unpack(attention.cells(trace, Stage("decoder.0.1.self", "scores"), 1, 2, 1))
    np.testing.assert_array_equal(blobs["exact"], scores[1])
    np.testing.assert_array_equal(blobs["there"], np.isfinite(scores[1]))
    assert not blobs["wrong"].any(), "a score that was never computed is no fault"
    assert header["opened"] == [2, 1]
    assert header["texts"]["none"] == "no score: this key came later"
    row, column = np.unravel_index(np.nanargmax(scores[1]), scores[1].shape)
    largest = f"Largest: {scores[1, row, column]:.3f} in row {row + 1}, column {column + 1}."
    assert largest.replace("-", "−") in header["description"]
    _header, blobs = unpack(attention.cells(trace, Stage("decoder.0.1.self", "mask"), 1, -1, -1))
    mask = trace.at("decoder.0.1.self").mask
    np.testing.assert_array_equal(blobs["exact"], np.where(mask, 0, -np.inf).astype(np.float32))
    np.testing.assert_array_equal(blobs["there"], mask)
