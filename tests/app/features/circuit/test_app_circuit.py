"""The page Circuit in the whole app: its numbers are those of the engine, and paths are measured when they are asked for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import streamlit

from model.engine.environment import best_device
from model.engine.local import LocalEngine
from model.features.circuit.circuits import Circuit, CircuitGraph, PathEffects, Paths
from model.requests.request import RunRequest
from tests.app.visiting import Visitor
from tests.known import bundled_engine

TEXT, CORRUPTED = "w4 w5 w6", "w4 w7 w6"


@pytest.fixture
def graph(stocked: Path) -> CircuitGraph:
    return LocalEngine(stocked, best_device("cpu")).ask(Circuit(RunRequest("tiny", TEXT)))


def said(visitor: Visitor) -> str:
    return "\n".join(str(each.value) for each in (*visitor.app.caption, *visitor.app.markdown)).replace("\\", "")


def test_edges_and_what_is_omitted_are_those_of_the_engine(graph: CircuitGraph) -> None:
    visitor = Visitor("circuit", model="tiny", text=TEXT, share="0.1", site="decoder.0.1.self", head="1")
    assert visitor.problems == []
    edges = [edge for edge in graph.edges(0.1) if edge.part.kind == "head"]
    assert edges
    assert f"Edges shown: {len(edges):,}, with a share of at least 0.10" in said(visitor)
    assert f"{graph.left_out(0.1):.0%} is not shown" in said(visitor)
    assert "All sums match the run" in said(visitor)
    assert "Decoder self-attention, layer 2, head 2, used by its queries" in said(visitor)
    tables = [table.value for table in visitor.app.dataframe]
    whole = next(table for table in tables if "composition" in table.columns)
    assert len(whole) == int((~np.isnan(graph.used)).sum())
    np.testing.assert_allclose(np.sort(whole["share"]), np.sort(graph.shares[~np.isnan(graph.shares)]), atol=1e-4)
    visitor.set("least", 0.12)
    assert visitor.app.query_params["share"] == "0.12"
    fewer = [edge for edge in graph.edges(0.12) if edge.part.kind == "head"]
    assert f"Edges shown: {len(fewer):,}, with a share of at least 0.12" in said(visitor)


@pytest.mark.parametrize("model", ["multi30k-de-en", "tatoeba-en-zh", "captions-lm", "induction"])
def test_the_graph_opens_on_half_of_what_heads_used_until_a_share_is_chosen(model: str) -> None:
    visitor = Visitor("circuit", model=model)
    least = float(visitor.app.slider(key="widget:least").value)  # type: ignore[arg-type]  # of a range
    graph = bundled_engine().ask(Circuit(visitor.view.request()))
    used = graph.shares[:, :, [part.kind == "head" for part in graph.parts]]
    assert np.nansum(used[used >= least]) >= 0.5 * np.nansum(used)
    assert least == 0.05 or np.nansum(used[used >= least + 0.01]) < 0.5 * np.nansum(used)
    assert "share" not in visitor.url
    assert f"with a share of at least {least:.2f}" in said(visitor)
    visitor.set("least", 0.01)
    assert visitor.url["share"] == "0.01"


def test_one_row_can_be_counted_and_a_row_that_is_not_there_counts_all(stocked: Path, graph: CircuitGraph) -> None:
    visitor = Visitor("circuit", model="tiny", text=TEXT, share="0.1", row="2")
    own = LocalEngine(stocked, best_device("cpu")).ask(Circuit(RunRequest("tiny", TEXT), row=2))
    assert visitor.problems == []
    assert f"{own.left_out(0.1):.0%} is not shown" in said(visitor)
    assert own.left_out(0.1) != graph.left_out(0.1)
    beyond = Visitor("circuit", model="tiny", text=TEXT, share="0.1", row="99")
    assert beyond.app.selectbox(key="widget:row").value == -1
    assert f"{graph.left_out(0.1):.0%} is not shown" in said(beyond)


def test_paths_are_measured_when_they_are_asked_for(stocked: Path) -> None:
    visitor = Visitor("circuit", model="tiny", text=TEXT, corrupted=CORRUPTED, step="1")
    toggle = visitor.app.toggle(key="paths-shown")
    assert not toggle.value
    expected: PathEffects = LocalEngine(stocked, best_device("cpu")).ask(Paths(RunRequest("tiny", TEXT), CORRUPTED, 1))
    assert f"({int((~np.isnan(expected.effects)).sum()):,})" in toggle.label
    toggle.set_value(True)
    visitor._run()
    assert visitor.problems == []
    assert f"{expected.clean:.3f} here".replace("-", "−") in said(visitor).replace("-", "−")
    assert f"{expected.rank:+.2f}" in said(visitor)
    whole = next(table.value for table in visitor.app.dataframe if "estimate" in table.value.columns)
    assert len(whole) == int((~np.isnan(expected.effects)).sum())
    assert abs(float(whole["effect"].iloc[0])) == pytest.approx(float(np.nanmax(np.abs(expected.effects))), abs=1e-3)


class Sent:
    """A file as Streamlit's uploader gives it."""

    name = "pairs.tsv"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def getvalue(self) -> bytes:
        return self.data


def test_a_file_of_pairs_gives_means_beside_each_pair(stocked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamlit, "file_uploader", lambda *given, **named: Sent(b"w5 w6 w7\tw5 w9 w7\n\nw8 w6 w4\tw8 w6 w9\n"))
    visitor = Visitor("circuit", model="tiny", text=TEXT, corrupted=CORRUPTED)
    engine, run = LocalEngine(stocked, best_device("cpu")), RunRequest("tiny", TEXT)
    found = [engine.ask(Paths(run, CORRUPTED))]
    found += [
        engine.ask(Paths(replace(run, source=one), other)) for one, other in (("w5 w6 w7", "w5 w9 w7"), ("w8 w6 w4", "w8 w6 w9"))
    ]
    count = int((~np.isnan(found[0].effects)).sum())
    toggle = visitor.app.toggle(key="paths-shown")
    assert f"({3 * count:,})" in toggle.label
    toggle.set_value(True)
    visitor._run()
    assert visitor.problems == []
    assert "Means over all pairs (3)" in said(visitor)
    assert f"{np.mean([one.clean for one in found]):.3f} in the clean runs".replace("-", "−") in said(visitor)
    tables = [table.value for table in visitor.app.dataframe]
    pairs = next(table for table in tables if "clean run" in table.columns)
    np.testing.assert_allclose(pairs["clean run"], [one.clean for one in found], atol=1e-3)
    whole = next(table for table in tables if "estimate" in table.columns)
    means = np.mean([one.effects for one in found], axis=0)
    np.testing.assert_allclose(np.sort(whole["effect"]), np.sort(means[~np.isnan(means)]), atol=1e-4)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"w4 w5 w6\n", "which line 1 does not have"),
        (b"w4 w5\tw4 w6\nw4\t\n", "which line 2 does not have"),
        (b"\xff\xfe\x00", "“0xFF” is not accepted. Allowed: a text file in UTF-8; byte 1 of this file is not UTF-8"),
        (
            "für a\tfür b".encode("latin-1"),
            "“0xFC” is not accepted. Allowed: a text file in UTF-8; byte 2 of this file is not UTF-8",
        ),
        (b"\n \n", "at least one line"),
        (b"a\tb\n" * 33, "at most 32 pairs"),
        (b"a" * (2**20 + 1), "at most 1,048,576 bytes"),
        (b"w4 w5 w6\tw4 w5\n", "both must have the same number"),
    ],
)
def test_a_file_that_is_none_of_pairs_is_one_sentence(
    stocked: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, why: str
) -> None:
    monkeypatch.setattr(streamlit, "file_uploader", lambda *given, **named: Sent(data))
    visitor = Visitor("circuit", model="tiny", text=TEXT)
    for toggle in visitor.app.toggle:
        if toggle.key == "paths-shown":
            toggle.set_value(True)
            visitor._run()
    assert why in "\n".join(visitor.problems)


def test_a_sentence_of_another_length_is_one_sentence(stocked: Path) -> None:
    visitor = Visitor("circuit", model="tiny", text=TEXT, corrupted="w4 w7")
    visitor.app.toggle(key="paths-shown").set_value(True).run()
    assert "both must have the same number" in "\n".join(visitor.problems)


def test_without_a_corrupted_sentence_nothing_can_be_measured(stocked: Path) -> None:
    assert Visitor("circuit", model="tiny", text=TEXT).app.toggle(key="paths-shown").disabled


@pytest.mark.parametrize(("picture", "drawn"), [("graph", 1), ("composition", 1), ("paths", 1), ("kept", 1), ("heads", 1)])
def test_big_mode_shows_one_picture(stocked: Path, graph: CircuitGraph, picture: str, drawn: int) -> None:
    visitor = Visitor("circuit", model="tiny", text=TEXT, corrupted=CORRUPTED, big="1", picture=picture, share="0.1")
    if picture in ("paths", "kept"):
        visitor.app.toggle(key="paths-shown").set_value(True)
        visitor._run()
    assert visitor.problems == []
    charts = len(visitor.app.get("plotly_chart"))
    assert charts == (0 if picture in ("graph", "heads") else drawn)
    assert not visitor.app.dataframe
    if picture in ("graph", "heads"):
        assert f"{graph.left_out(0.1):.0%} is not shown" in said(visitor)
        assert visitor.scene("circuit")["edges"]


def test_a_run_that_was_made_again_is_said_to_be(stocked: Path) -> None:
    assert "so it was made again with all intermediate values" in said(Visitor("circuit", model="tiny", text=TEXT))
