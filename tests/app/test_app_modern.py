"""The pages show what a model of today does otherwise: rotary positions, and weights in tiles."""

import json
import re

import pytest
from safetensors.numpy import load_file

from model.engine.local import CHECKPOINTS
from tests.app.visiting import Visitor

MODEL = {"model": "captions-lm", "text": "a man in a blue shirt is", "decode": "greedy", "max": "6"}


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def small(text: str) -> float:
    """The number that the page writes as 4·10⁻⁷."""
    return float(text.translate(RAISED).replace("·10", "e"))


def told(visitor: Visitor) -> str:
    return " ".join(part.value for part in (*visitor.app.markdown, *visitor.app.caption)).replace("\\", "")


def test_positions_show_the_score_of_this_run_and_that_only_the_distance_counts() -> None:
    visitor = Visitor("positions", **MODEL, site="decoder.0.1.self", head="2", query="6", key="1")
    assert visitor.problems == []
    assert "Each head rotates 16 columns of its queries and keys in pairs: the first pair once in 6.3 positions" in told(visitor)
    assert "The dot is this run: 5 positions apart" in told(visitor)
    moved = re.search(r"the score stays the same: largest difference ([^.]+)\.", told(visitor))
    assert moved is not None
    assert small(moved[1]) < 1e-12
    visitor.choose("key", 6)
    assert visitor.url["key"] == "6"
    assert "The dot is this run: 0 positions apart" in told(visitor)


@pytest.mark.parametrize("model", [MODEL, {"model": "multi30k-de-en", "text": "Zwei Hunde spielen im Schnee."}])
def test_a_head_in_tiles_is_the_head_that_ran(model: dict[str, str]) -> None:
    visitor = Visitor("step", **model, clock="computation", stage="decoder.0.0.self/weights")
    assert "In tiles" not in told(visitor)
    visitor.app.session_state["tiles"] = True
    visitor.go("step")
    assert visitor.problems == []
    found = re.search(r"Largest difference between these contexts and those of the run: ([^.]+)\.", told(visitor))
    assert found is not None
    assert small(found[1]) < 1e-5
    assert "skipped: all of" in told(visitor)


@pytest.mark.parametrize("model", [MODEL, {"model": "multi30k-de-en", "text": "Zwei Hunde spielen im Schnee."}])
def test_the_cache_grows_and_saves(model: dict[str, str]) -> None:
    visitor = Visitor("step", **model, clock="token")
    assert "A later token needs the keys" not in told(visitor)
    visitor.app.session_state["cache"] = True
    visitor.app.session_state["cache-measured"] = True
    visitor.go("step")
    assert visitor.problems == []
    assert ("heads of queries share heads" in told(visitor)) == (model is MODEL)
    assert ("offer" in [button.key for button in visitor.app.button]) == (model is not MODEL)
    assert "The maps are the same" in told(visitor)
    found = re.search(r"largest difference of a weight ([^,]+),", told(visitor))
    assert found is not None
    assert small(found[1]) < 1e-5
    table = visitor.app.dataframe[0].value
    each, all_ = table["bytes of each"], table["bytes"]
    assert (each * table["heads of keys and values"] == all_).all()
    if model is not MODEL:
        visitor.press("offer")
        assert visitor.url["model"] == "captions-lm"


def test_cost_over_length_and_linear_attention() -> None:
    visitor = Visitor("step", **MODEL, clock="token", site="decoder.0.1.self", head="2")
    visitor.app.session_state["length"] = True
    visitor.go("step")
    assert visitor.problems == []
    even = re.search(r"From token ([\d,]+) on, attention costs more", told(visitor))
    assert even is not None
    folder = CHECKPOINTS / "captions-lm"
    stack = json.loads((folder / "spec.json").read_text())["spec"]["decoder"]
    stored = load_file(folder / "model.safetensors")
    weights = [array for name, array in stored.items() if array.ndim == 2 and "embedding" not in name]
    tokens, width = int(even[1].replace(",", "")), stack["attention"]["heads"] * stack["attention"]["head_dim"]
    attention = 4 * width * stack["layers"] * tokens * (tokens + 1) / 2
    assert attention == pytest.approx(2 * tokens * sum(array.size for array in weights), rel=1e-3)
    maps = [
        chart
        for chart in visitor.app.get("plotly_chart")
        if "length-linear" in chart.proto.id or "length-softmax" in chart.proto.id
    ]
    assert len(maps) == 2
