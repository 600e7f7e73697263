"""The pages show what a model of today does otherwise: rotary positions, and weights in tiles."""

import re

import pytest

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
