"""The tree of a beam search on the page Step through: laid out so that it can be read, with the search's own numbers."""

import re
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from streamlit.testing.v1 import AppTest

from model.requests.request import Decoding
from model.trace.beam_tree import Node, hypotheses, path
from model.trace.types import Trace
from tests.pages import MadeUpEngine, open_view
from tests.runs import SPECS, checkpoint, request, traced
from viz.canvas.scenes import beam_tree as tree_scene
from viz.canvas.wire.transport import unpack
from viz.views.step import panels


@cache
def searched(size: int = 3, hypothesis: int = 0) -> Trace:
    """A search of a network that ends nothing: as many hypotheses as beginnings were followed."""
    decoding = Decoding("beam", max_length=7, beam_size=size, hypothesis=hypothesis)
    spec = replace(SPECS["paper"], end_id=None)
    return traced(checkpoint(spec), replace(request(spec), decoding=decoding))


@pytest.mark.parametrize("size", [1, 3, 8])
def test_every_node_has_a_place_of_its_own_and_what_was_pruned_lies_below(size: int) -> None:
    tree = searched(size).tree
    header, _blobs = unpack(tree_scene.scene(searched(size), 0))
    assert [node["place"] for node in header["nodes"]] == list(range(len(tree)))
    places = {(node["column"], node["row"]) for node in header["nodes"]}
    assert len(places) == len(tree)
    assert max(node["row"] for node in header["nodes"]) == header["rows"] - 1
    for node in header["nodes"]:
        own = tree[node["place"]]
        assert (node["column"], node["total"], node["own"]) == (own.step, own.total, own.log_probability)
        assert (node["row"] >= header["pruned"]) == (own.fate == "pruned")
    for column in range(header["columns"]):
        inside = sorted((n for n in header["nodes"] if n["column"] == column and n["fate"] != "pruned"), key=lambda n: n["row"])
        assert all(one["total"] >= other["total"] for one, other in pairwise(inside))


def test_the_hypothesis_shown_is_marked_from_its_first_token_to_its_end() -> None:
    for rank in range(len(hypotheses(searched().tree))):
        trace = searched(hypothesis=rank)
        header, _blobs = unpack(tree_scene.scene(trace, rank))
        assert [trace.tree[place].id for place in header["shown"]] == [step.chosen.id for step in trace.steps]


def test_of_a_huge_tree_only_what_led_to_hypotheses_is_drawn() -> None:
    length, width = tree_scene.MOST // 2, 3
    nodes = [
        Node(step, step * width - width if step else -1, row, "w", -1.0, -1.0 - step - row, "kept" if row == 0 else "pruned")
        for step in range(length)
        for row in range(width)
    ]
    nodes[-width] = replace(nodes[-width], fate="finished", rank=0)
    tree = tuple(nodes)
    assert tree_scene.drawn(tree) == list(path(tree, len(tree) - width))


def test_the_table_holds_the_whole_tree() -> None:
    trace = searched()
    table = panels.table_of_search(trace)
    assert list(table["total"]) == [node.total for node in trace.tree]
    assert list(table["step"]) == [node.step + 1 for node in trace.tree]
    assert table["hypothesis"].dropna().tolist() == [node.rank + 1 for node in trace.tree if node.rank >= 0]
    best = hypotheses(trace.tree)[0]
    assert table["hypothesis so far"][best].split() == [step.chosen.text for step in trace.steps[:-1]]


def opened(hypothesis: str) -> AppTest:
    engine = MadeUpEngine(trace=searched(hypothesis=int(hypothesis)))
    return open_view("step", engine, False, decode="beam", beam="3", hypothesis=hypothesis)


def test_a_hypothesis_is_chosen_from_the_list_too() -> None:
    app = opened("1")
    box = app.selectbox(key="widget:hypothesis")
    assert box.value == 1
    assert len(box.options) == len(hypotheses(searched().tree))
    texts = " ".join(step.chosen.text for step in searched(hypothesis=1).steps)
    assert box.options[1].startswith(f"2 · {texts} · −")
    box.set_value(0).run()
    assert app.session_state["view"].hypothesis == 0


def test_the_list_of_hypotheses_has_three_decimals() -> None:
    options = open_view("step", MadeUpEngine(trace=searched()), decode="beam", beam="3").selectbox(key="widget:hypothesis").options
    assert options
    for option in options:
        assert re.search(r" · −\d+\.\d{3} per token, −\d+\.\d{3} in total$", option)


def test_a_decode_without_a_search_has_no_tree() -> None:
    app = open_view("step", MadeUpEngine(), False)
    assert "The search" not in [element.value.strip("*") for element in app.markdown]
