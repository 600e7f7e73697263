"""What each head used of what came before: the sums are what ran, and each number is what plain matrices give."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from model.__main__ import main
from model.engine.local import LocalEngine
from model.errors import BadSetting
from model.features.circuit.circuit_parts import circuit
from model.features.circuit.circuits import SIDES, Circuit, CircuitGraph
from model.features.what_if.results import Head
from model.requests.edits import read_edits
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array
from tests.model.features.circuit.test_sums import FOLLOWED, TARGETED, bundled, made
from tests.model.features.forward_parts import Forward
from tests.networks import save_checkpoint
from tests.runs import CPU, SPECS, checkpoint, request, traced


def used(found: CircuitGraph, side: str, head: Head) -> dict[str, float]:
    row = found.used[SIDES.index(side), found.heads.index(head)]
    return {str(part): float(value) for part, value in zip(found.parts, row, strict=True) if not np.isnan(value)}


@pytest.mark.parametrize(("name", "forced"), [*((name, False) for name in SPECS), *((name, True) for name in TARGETED)])
def test_what_a_head_used_adds_up_to_what_ran(name: str, forced: bool) -> None:
    found, trace = made(name, forced=forced)
    graph = circuit(found.network, trace)
    assert graph.agrees
    assert np.nanmax(graph.difference) < 1e-5
    np.testing.assert_allclose(np.nansum(graph.used, axis=2), graph.total, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(np.nansum(graph.shares, axis=2), np.nanmax(np.abs(graph.used), axis=2) > 0)  # 0: no row has a choice
    for row, head in enumerate(graph.heads):
        attention = trace.at(head.site)
        lifts = list[float]()
        for query in range(attention.mask.shape[0]):
            there = np.flatnonzero(attention.mask[query])
            if len(there) > 1:
                assert attention.scores is not None
                scores, weights = (
                    each[head.head, query, there].astype(np.float64) for each in (attention.scores, attention.weights)
                )
                lifts.append(float(weights @ scores - scores.mean()))
        expected = np.mean(lifts) if lifts else 0.0
        assert graph.total[0, row] == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert graph.total[1, row] == graph.total[0, row]


def test_a_run_whose_numbers_are_none_agrees_with_nothing() -> None:
    found, trace = made("paper")
    nan = {site: replace(own, weights=np.full_like(own.weights, np.nan)) for site, own in trace.attention.items()}
    assert circuit(found.network, trace).agrees
    with np.errstate(invalid="ignore"):
        assert not circuit(found.network, replace(trace, attention=nan)).agrees


@pytest.mark.parametrize("name", FOLLOWED)
def test_each_part_of_it_is_what_plain_matrices_give(name: str) -> None:
    found, trace = made(name, 1)
    graph, forward = circuit(found.network, trace), Forward(found.network, trace, SPECS[name])
    for head in (graph.heads[0], graph.heads[len(graph.heads) // 2], graph.heads[-1]):
        stack = head.site.split(".")[0]
        attention, own = trace.at(head.site), SPECS[name].stacks[stack].attention
        assert attention.q is not None
        assert attention.k is not None
        queries, keys = attention.mask.shape
        weights = attention.weights[head.head].astype(np.float64)
        even = attention.mask / np.maximum(attention.mask.sum(axis=1, keepdims=True), 1)
        rows = attention.mask.sum(axis=1) > 1
        excess = (weights - even) * rows[:, None] / max(1, rows.sum()) * own.head_dim**-0.5
        across = attention.q[head.head].astype(np.float64), attention.k[head.head].astype(np.float64)
        for side, count in ((0, queries), (1, keys)):
            vectors = [forward.projected(head.site, side, head.head, row) for row in range(count)]
            expected = {
                part: sum(
                    excess[i, j] * (vectors[i][part] @ across[1][j] if side == 0 else across[0][i] @ vectors[j][part])
                    for i in range(queries)
                    for j in range(keys)
                )
                for part in vectors[0]
            }
            assert used(graph, SIDES[side], head) == pytest.approx(expected, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["paper", "modern language model", "two passes"])
def test_what_a_value_was_made_of_is_measured_along_the_output(name: str) -> None:
    found, trace = made(name, 1)
    graph, forward = circuit(found.network, trace), Forward(found.network, trace, SPECS[name])
    head = graph.heads[-1]
    stack, _, layer, kind = head.site.split(".")
    own = SPECS[name].stacks[stack].attention
    module = f"layers.{layer}.{'attention' if forward.alone else kind + '_attention'}"
    shared = own.heads // (own.key_heads or own.heads)
    rows = slice(head.head // shared * own.head_dim, (head.head // shared + 1) * own.head_dim)
    value, bias = forward.weight(stack, f"{module}.value.weight")[rows], forward.weight(stack, f"{module}.value.bias")
    output = forward.weight(stack, f"{module}.output.weight")[:, head.head * own.head_dim : (head.head + 1) * own.head_dim]
    weights = trace.at(head.site).weights[head.head].astype(np.float64)
    parts = {part: vectors @ value.T for part, vectors in forward.walk(stack)[0][head.site][1].items()}
    parts |= {} if bias is None else {f"{head.site} projection-bias": np.tile(bias[rows], (weights.shape[1], 1))}
    written = {part: weights @ vectors[: weights.shape[1]] @ output.T for part, vectors in parts.items()}
    whole = sum(written.values())
    expected = {part: float((own * whole).sum() / (whole**2).sum()) for part, own in written.items()}
    assert used(graph, "value", head) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", ["paper", "modern language model"])
def test_one_row_at_a_time_is_all_rows(name: str) -> None:
    """Queries and keys: the mean over the rows that have a choice. Values: the share of the row's own output."""
    found, trace = made(name, 1)
    whole, count = circuit(found.network, trace), len(trace.of("decoder", "self")[0].mask)
    forward = Forward(found.network, trace, SPECS[name])
    by_row = [circuit(found.network, trace, row=row) for row in range(count)]
    assert all(graph.agrees for graph in by_row)
    for number, head in enumerate(whole.heads):
        attention = trace.at(head.site)
        if attention.site.stack == "encoder":
            np.testing.assert_array_equal(by_row[0].used[:, number], whole.used[:, number], err_msg="the encoder writes no row")
            continue
        choice = np.flatnonzero(attention.mask.sum(axis=1) > 1)
        mean = sum((by_row[row].used[:2, number] for row in choice), 0 * whole.used[:2, number]) / max(len(choice), 1)
        np.testing.assert_allclose(mean, whole.used[:2, number], rtol=1e-6, atol=1e-9)
        assert attention.context is not None
        module = f"layers.{attention.site.layer}.{'attention' if forward.alone else attention.site.kind + '_attention'}"
        context = attention.context[head.head].astype(np.float64)
        columns = slice(head.head * context.shape[1], (head.head + 1) * context.shape[1])
        outputs = context @ forward.weight("decoder", f"{module}.output.weight")[:, columns].T
        shares = (outputs**2).sum(axis=1) / (outputs**2).sum()
        values = sum(share * graph.used[2, number] for share, graph in zip(shares, by_row, strict=True))
        np.testing.assert_allclose(values, whole.used[2, number], rtol=1e-5, atol=1e-6)
    for wrong in (-1, count):
        with pytest.raises(BadSetting, match=f"Allowed: a number from 0 to {count - 1}"):
            circuit(found.network, trace, row=wrong)


BARE = replace(
    SPECS["no feed-forward"],
    decoder=replace(SPECS["no feed-forward"].stacks["decoder"], norm_order="pre", final_norm=True),
)
"""Attention and norms in front of it alone: whole matrices can be multiplied."""


def test_composition_is_the_norm_of_the_product_of_whole_matrices() -> None:
    found = checkpoint(BARE, 3)
    graph = circuit(found.network, traced(found, request(BARE)))
    weights = {name: tensor.double().numpy() for name, tensor in found.network.state_dict().items()}
    own = BARE.stacks["decoder"]
    width, model = own.attention.head_dim, own.d_model

    def of(layer: int, name: str, head: int) -> Array:
        whole = weights[f"layers.{layer}.attention.{name}.weight"]
        rows = slice(head * width, (head + 1) * width)
        return np.asarray(whole[:, rows] if name == "output" else whole[rows])

    centre = np.eye(model) - (0 if own.norm == "rms" else 1 / model)
    normed = weights["layers.1.attention_residual.norm.weight"][:, None] * centre
    row = graph.heads.index(Head("decoder.0.1.self", 1))
    for column, part in enumerate(graph.parts):
        if part.kind != "head" or part.place != "decoder.0.0.self":
            continue
        earlier = of(0, "output", part.head) @ of(0, "value", part.head)
        query, key, value, output = (of(1, name, 1) for name in ("query", "key", "value", "output"))
        later = (key.T @ query @ normed, query.T @ key @ normed, output @ value @ normed)
        for side, matrix in enumerate(later):
            expected = np.linalg.norm(matrix @ earlier) / np.linalg.norm(matrix) / np.linalg.norm(earlier)
            assert graph.composition[side, row, column] == pytest.approx(expected)
    assert np.isnan(graph.composition[:, :, [part.kind != "head" for part in graph.parts]]).all()


def test_chance_is_the_composition_with_random_matrices() -> None:
    rng, model = np.random.default_rng(0), 24
    later = rng.normal(size=(model, 3)) @ rng.normal(size=(3, model))
    squares = [
        (np.linalg.norm(later @ own) / np.linalg.norm(later) / np.linalg.norm(own)) ** 2
        for own in rng.normal(size=(2000, model, model))
    ]
    assert np.sqrt(np.mean(squares)) == pytest.approx(model**-0.5, rel=0.02)
    found, trace = made("language model")
    np.testing.assert_allclose(circuit(found.network, trace).chance, SPECS["language model"].stacks["decoder"].d_model ** -0.5)


def test_copying_is_told_by_the_eigenvalues_of_the_whole_matrix() -> None:
    found = checkpoint(BARE, 3)
    graph = circuit(found.network, traced(found, request(BARE)))
    weights = {name: tensor.double().numpy() for name, tensor in found.network.state_dict().items()}
    own = BARE.stacks["decoder"]
    width, centre = own.attention.head_dim, np.eye(own.d_model) - (0 if own.norm == "rms" else 1 / own.d_model)
    for row, head in enumerate(graph.heads):
        layer, rows = head.site.split(".")[2], slice(head.head * width, (head.head + 1) * width)
        before = weights[f"layers.{layer}.attention_residual.norm.weight"][:, None] * centre
        after = weights["final_norm.weight"][:, None] * centre
        value = weights[f"layers.{layer}.attention.value.weight"][rows]
        output = weights[f"layers.{layer}.attention.output.weight"][:, rows]
        whole = weights["output.weight"] @ after @ output @ value @ before @ weights["embedding.token.weight"].T
        numbers = np.linalg.eigvals(whole)
        assert graph.copying[row] == pytest.approx(numbers.real.sum() / np.abs(numbers).sum(), abs=1e-6)


def test_the_induction_head_reads_what_the_previous_token_head_wrote_and_copies() -> None:
    graphs = [circuit(found.network, trace) for found, trace in (bundled("induction", 4800), bundled("induction", 0))]
    shares = list[dict[str, float]]()
    for graph in graphs:
        row = graph.shares[SIDES.index("key"), graph.heads.index(Head("decoder.0.1.self", 1))]
        shares.append(dict(zip(map(str, graph.parts), row.tolist(), strict=True)))
    trained, untrained = (own["decoder.0.0.self head 0"] for own in shares)
    assert trained > 0.6
    assert untrained < 0.3
    copying = dict(zip(graphs[0].heads, graphs[0].copying.tolist(), strict=True))
    assert min(copying[Head("decoder.0.1.self", head)] for head in (0, 1)) > 0.9
    assert graphs[0].left_out(0.0) == 0
    assert graphs[0].left_out(1.1) == pytest.approx(1)
    assert 0 < graphs[0].left_out(0.3) < 0.5


def test_heads_that_an_edit_changed_have_no_sums() -> None:
    found = checkpoint(SPECS["paper"])
    for text, side in (("silence site=decoder.0.1.self head=1", 2), ("sharpen site=decoder.0.1.self head=1", 0)):
        graph = circuit(found.network, traced(found, replace(request(SPECS["paper"]), edits=read_edits(text))))
        row = graph.heads.index(Head("decoder.0.1.self", 1))
        assert np.isnan(graph.total[side, row])
        assert not np.isnan(graph.total[side, row - 1])
        assert graph.agrees


def test_the_command_line_prints_the_numbers_of_the_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny", split="words")
    expected = LocalEngine(tmp_path, CPU).ask(Circuit(RunRequest("tiny", "w4 w5 w6", decoding=Decoding(max_length=4))))
    command = ["circuit", str(tmp_path / "tiny"), "--source", "w4 w5 w6", "--max-length", "4", "--device", "cpu"]
    assert main([*command, "--json"]) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(expected.to_json()))
    assert found["agrees"]
    assert len(found["heads"]) == len(expected.heads)
    assert main([*command, "--least", "0.2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    edges = [line for line in lines if "→" in line]
    assert len(edges) == len(list(expected.edges(0.2)))
    assert all(float(line.split()[0]) >= 0.2 for line in edges)
