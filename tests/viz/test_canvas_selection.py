"""What a drawing tells Python: a choice is told once, before the script runs for it, although a component's state lasts."""

import json
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.testing.v1 import AppTest

from tests.patience import HANG_S
from viz.canvas import fields_of


def app() -> None:
    import streamlit as st

    from model.trace.types import Site
    from tests import traces
    from viz import canvas
    from viz.canvas.scenes import attention

    st.text(str(st.session_state.pop("told", None)))
    scene = attention.atlas(traces.translation(), Site("decoder", 0, 2, "cross"), 0, -1)
    canvas.draw("atlas", scene, key="atlas", chosen=lambda **it: st.session_state.update(told=it))


def drive(test: AppTest, selection: dict[str, Any]) -> str:
    """A script run for what the browser says of the drawing; what that run was told."""
    (drawing,) = test.get("bidi_component")
    state = WidgetState(id=drawing.proto.id, json_value=json.dumps({"selection": selection}))
    test._run(WidgetStates(widgets=[state]))  # AppTest has no way to act on a component
    assert not test.exception
    return str(test.text[0].value)


def test_fields_are_those_that_were_chosen() -> None:
    assert fields_of({}) == {}
    assert fields_of({"site": "encoder.0.0.self", "head": 0, "at": 1.5}) == {"site": "encoder.0.0.self", "head": 0}
    assert fields_of({"query": -1, "step": 0, "stage": "output/logits"}) == {"query": -1, "step": 0, "stage": "output/logits"}


def test_a_candidate_continues_from_its_token_without_the_rows_of_the_text_before() -> None:
    found = fields_of({"begin": "5,3", "at": 1.5})
    assert (found["begin"], found["query"], found["step"], found["hypothesis"]) == ("5,3", -1, -1, 0)
    for forged in ("5,", "-1", "5 3", 5, None, "9" * 12, ",".join("5" * 1001)):
        assert fields_of({"begin": forged}) == {}


def test_a_choice_is_told_once_and_before_the_script_draws() -> None:
    test = AppTest.from_function(app, default_timeout=HANG_S).run()
    assert not test.exception
    assert test.text[0].value == "None"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 1}) == "{'site': 'encoder.0.1.self', 'head': 3}"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 1}) == "None"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 2}) == "{'site': 'encoder.0.1.self', 'head': 3}"


@pytest.mark.parametrize(
    "forged",
    [{"site": 3}, {"head": "0"}, {"head": True}, {"query": 1.5}, {"site": "decoder.0.0.nonsense"}, {"step": -2}, {"head": [1]}],
)
def test_a_forged_choice_is_no_choice(forged: dict[str, Any]) -> None:
    test = AppTest.from_function(app, default_timeout=HANG_S).run()
    assert drive(test, forged) == "None"
