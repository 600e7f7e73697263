"""What a drawing tells Python: a choice is made once, although a component's state lasts."""

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from viz.canvas import Selection


def app() -> None:
    import streamlit as st

    from model.trace import Site
    from tests import traces
    from viz import canvas

    chosen = canvas.atlas(traces.translation(), Site("decoder", 0, 2, "cross"), 0, -1, key="atlas")
    st.text(str(chosen.changes()))


def drive(test: AppTest, selection: dict[str, Any]) -> str:
    test.session_state["atlas"] = {"selection": selection}
    return str(test.run().text[0].value)


def test_changes_are_the_fields_that_were_chosen() -> None:
    assert Selection().changes() == {}
    assert Selection(site="encoder.0.0.self", head=0).changes() == {"site": "encoder.0.0.self", "head": 0}
    assert Selection(query=-1, step=0).changes() == {"query": -1, "step": 0}


def test_a_choice_is_told_once() -> None:
    test = AppTest.from_function(app, default_timeout=60).run()
    assert not test.exception
    assert test.text[0].value == "{}"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 1}) == "{'site': 'encoder.0.1.self', 'head': 3}"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 1}) == "{}"
    assert drive(test, {"site": "encoder.0.1.self", "head": 3, "at": 2}) == "{'site': 'encoder.0.1.self', 'head': 3}"


@pytest.mark.parametrize(
    "forged",
    [{"site": 3}, {"head": "0"}, {"head": True}, {"query": 1.5}, {"site": "decoder.0.0.nonsense"}, {"step": -2}, {"head": [1]}],
)
def test_a_forged_choice_is_no_choice(forged: dict[str, Any]) -> None:
    test = AppTest.from_function(app, default_timeout=60).run()
    assert drive(test, forged) == "{}"
