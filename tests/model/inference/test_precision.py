"""Runs in bfloat16 and float16: what is shown ran in that type, and how far it is from float32 is what two runs differ by."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor

from model.__main__ import main
from model.checkpoints.loader import lowered
from model.checkpoints.native import Checkpoint
from model.engine.api import Explain, Run
from model.engine.local import LocalEngine
from model.engine.scheduling.scheduler import Scheduler
from model.inference.batching import together
from model.inference.calls import Call
from model.inference.cell import explain_cell
from model.inference.recorded_trace import FROM_FLOAT32
from model.inference.run import run, run_in
from model.requests.edits import Silence, read_edits
from model.requests.request import Decoding, Precision, RunRequest
from model.trace.types import Array, Trace
from model.transformer import attention
from model.transformer.stacks import CausalLM, EncoderDecoder
from tests import runs
from tests.networks import Notes, save_checkpoint
from tests.patience import HANG_S
from tests.runs import CPU, SPECS, arrays, checkpoint

LOWER: list[Precision] = ["bfloat16", "float16"]


def lower_run(found: Checkpoint, request: RunRequest, precision: Precision) -> Trace:
    return run_in(found, lowered(found, precision), request, CPU, "cpu")


def in_float32(found: Checkpoint, trace: Trace) -> dict[str, Array]:
    """What the float32 network records when it reads the tokens of a run at once: no cache, no decoding, no recorder of ours."""
    notes, rows = Notes(), len(trace.logits if trace.logits is not None else trace.tokens["source"])
    with torch.inference_mode():
        ids = {name: torch.tensor([strip.ids]) for name, strip in trace.tokens.items()}
        if isinstance(found.network, EncoderDecoder):
            mask = found.network.source_mask(ids["source"])
            memory = found.network.encode(ids["source"], mask, attention.Run(notes))
            found.network.decode(ids["target"][:, :rows], memory, mask, attention.Run(notes))
        else:
            assert isinstance(found.network, CausalLM)
            found.network(ids["source"][:, :rows], attention.Run(notes))
    return {name: value[0].numpy() for name, value in notes.items()}


def softmax(logits: Array) -> Array:
    exponentials: Array = np.exp(logits - logits.max(-1, keepdims=True))
    probabilities: Array = exponentials / exponentials.sum(-1, keepdims=True)
    return probabilities


@pytest.mark.parametrize("precision", LOWER)
@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("name", ["paper", "two passes", "language model", "modern language model"])
def test_the_difference_is_that_of_two_runs_of_the_same_tokens(name: str, method: str, precision: Precision) -> None:
    found = checkpoint(SPECS[name])
    decoding = Decoding(method, max_length=6, beam_size=3)  # type: ignore[arg-type]  # one of Method
    trace = lower_run(found, replace(runs.request(SPECS[name]), decoding=decoding), precision)
    full = in_float32(found, trace)
    assert trace.logits is not None
    expected = {
        "weights": max(np.abs(own.weights - full[f"attention/{site}/weights"]).max() for site, own in trace.attention.items()),
        "logits": np.abs(trace.logits - full["logits"]).max(),
        "probabilities": np.abs(softmax(trace.logits) - softmax(full["logits"])).max(),
    }
    assert trace.model[FROM_FLOAT32] == pytest.approx(expected, abs=2e-6)
    assert expected["weights"] > 1e-4


@pytest.mark.parametrize("precision", LOWER)
@pytest.mark.parametrize("name", SPECS)
def test_every_number_that_ran_is_one_of_the_lower_type_and_every_cell_agrees(name: str, precision: Precision) -> None:
    found = checkpoint(SPECS[name])
    lower = lowered(found, precision)
    trace = run_in(found, lower, runs.request(SPECS[name]), CPU, "cpu")
    assert trace.model["dtype"] == precision
    for array_name, array in arrays(trace).items():
        if array.dtype == np.float32:
            rounded = torch.from_numpy(array.copy()).to(getattr(torch, precision)).float().numpy()
            np.testing.assert_array_equal(rounded, array, err_msg=array_name)
        else:
            assert array.dtype == bool, array_name
    for site, own in trace.attention.items():
        heads, queries, _ = own.weights.shape
        for head in range(heads):
            for query in range(queries):
                cell = explain_cell(lower.network, trace, str(site), head, query, 0)
                assert cell.agrees, (site, head, query, cell.largest_difference, cell.tolerance)
    assert "dtype" in trace.model
    assert FROM_FLOAT32 not in runs.traced(found, runs.request(SPECS[name])).model


@pytest.mark.parametrize("precision", LOWER)
def test_a_row_that_was_tampered_with_is_found_out_in_every_type(precision: Precision) -> None:
    found = checkpoint(SPECS["paper"])
    lower = lowered(found, precision)
    trace = run_in(found, lower, runs.request(SPECS["paper"]), CPU, "cpu")
    own = trace.at("decoder.0.1.cross")
    weights = own.weights.copy()
    weights[1, 2] = weights[1, 2, ::-1]
    tampered = replace(trace, attention={**trace.attention, own.site: replace(own, weights=weights)})
    assert not explain_cell(lower.network, tampered, "decoder.0.1.cross", 1, 2, 2).agrees


@pytest.mark.parametrize("name", ["paper", "two passes", "language model", "memory"])
def test_dictated_tokens_are_written_whatever_the_network_would_choose(name: str) -> None:
    found, asked = checkpoint(SPECS[name]), replace(runs.request(SPECS[name]), decoding=Decoding("beam", 9))
    trace = run(found, asked, CPU, "cpu", dictated=(7, 4, 8))
    assert [step.chosen.id for step in trace.steps] == [7, 4, 8]
    chosen = runs.traced(found, replace(asked, decoding=Decoding(max_length=3)))
    assert {key: array.shape for key, array in arrays(trace).items()} == {k: a.shape for k, a in arrays(chosen).items()}


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "w5 w6"},
        {"target": (2, 5, 6)},
        {"source_pad_to": 7},
        {"source_valid": 2},
        {"edits": (Silence("encoder.0.0.self", (0,)),)},
        {"decoding": Decoding(max_length=0)},
    ],
    ids=str,
)
def test_whatever_a_request_asks_for_is_asked_of_both_runs(changes: dict[str, object]) -> None:
    found = checkpoint(SPECS["paper"])
    trace = lower_run(found, replace(runs.request(SPECS["paper"]), **changes), "bfloat16")  # type: ignore[arg-type]
    assert all(0 < value < 0.3 for value in trace.model[FROM_FLOAT32].values())


def test_what_cannot_be_compared_is_none() -> None:
    encoder = lower_run(checkpoint(SPECS["encoder alone"]), runs.request(SPECS["encoder alone"]), "float16").model[FROM_FLOAT32]
    assert encoder["weights"] > 0
    assert (encoder["logits"], encoder["probabilities"]) == (None, None)
    found = checkpoint(SPECS["paper"])
    with torch.no_grad():
        for parameter in found.network.parameters():
            parameter.mul_(3e4)
    assert set(lower_run(found, runs.request(SPECS["paper"]), "float16").model[FROM_FLOAT32].values()) == {None}


def test_a_long_inputs_weights_are_not_written_out_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.inference.inputs.LONG", 0)
    asked = replace(runs.request(SPECS["paper"]), keep=())
    found = lower_run(checkpoint(SPECS["paper"]), asked, "bfloat16").model[FROM_FLOAT32]
    assert found["weights"] is None
    assert 0 < found["probabilities"] < 0.3


def test_an_engine_keeps_the_runs_of_each_type_apart(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine, asked = LocalEngine(tmp_path, CPU), RunRequest("tiny", "w4 w5", decoding=Decoding(max_length=4))
    traces = {precision: engine.ask(Run(replace(asked, precision=precision))) for precision in get_args(Precision)}
    assert {precision: trace.model["dtype"] for precision, trace in traces.items()} == {p: p for p in get_args(Precision)}
    assert all(engine.ask(Run(replace(asked, precision=precision))) is trace for precision, trace in traces.items())
    assert engine.ask(Run(asked)) is traces["float32"]
    lower = LocalEngine(tmp_path, CPU, precision="bfloat16")
    assert lower.ask(Run(asked)).model["dtype"] == "bfloat16"
    assert lower.ask(Run(asked)).model[FROM_FLOAT32] == traces["bfloat16"].model[FROM_FLOAT32]
    cell = lower.ask(Explain(asked, "decoder.0.1.cross", 1, 0, 2))
    assert cell.agrees
    assert cell.tolerance >= 2e-2


def test_runs_of_different_types_are_never_computed_in_one_batch() -> None:
    found = checkpoint(SPECS["paper"])
    lower = {precision: lowered(found, precision) for precision in get_args(Precision)}
    plain = runs.request(SPECS["paper"])
    asked = [replace(plain, source=f"w{n} w5", precision=precision) for n in (4, 6, 7) for precision in lower]
    batches: list[list[Call]] = []

    def noted(calls: Sequence[Call]) -> list[Tensor | Exception]:
        batches.append(list(calls))
        return together(calls)

    scheduler = Scheduler(most_running=len(asked), together=noted, gather=60.0)

    def work(request: RunRequest) -> Trace:
        own = lower[request.precision or "float32"]
        found_: Trace = scheduler.do(request, lambda ask, report: run_in(found, own, request, CPU, "cpu", ask))
        return found_

    with ThreadPoolExecutor(len(asked)) as pool:
        answers = [pool.submit(work, request) for request in asked]
        until = time.monotonic() + HANG_S
        while scheduler.waiting < len(asked):
            assert time.monotonic() < until
            time.sleep(0.001)
        scheduler.start()
        traces = [answer.result(HANG_S) for answer in answers]
    scheduler.close()
    assert all(len({id(call.network) for call in batch}) == 1 for batch in batches)
    assert max(map(len, batches)) >= 3
    for request, trace in zip(asked, traces, strict=True):
        assert trace.model["dtype"] == request.precision
        if request.precision == "float32":
            runs.assert_same(trace, runs.traced(found, request))
        else:
            assert 0 < trace.model[FROM_FLOAT32]["weights"] < 0.1


def test_a_checkpoint_that_changed_is_lowered_anew(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "tiny")
    engine, asked = LocalEngine(tmp_path, CPU), RunRequest("tiny", "w4 w5", target="w4", precision="float16")
    before = engine.ask(Run(asked))
    save_checkpoint(tmp_path / "tiny", seed=1)
    after = engine.ask(Run(asked))
    assert after.model["fingerprint"] != before.model["fingerprint"]
    assert np.abs(next(iter(after.attention.values())).weights - next(iter(before.attention.values())).weights).max() > 1e-3


@pytest.mark.parametrize("option", ["precision", "device"])
def test_an_error_names_the_option_or_the_variable_that_was_given(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variable, command = f"HEADLIGHT_{option.upper()}", ["run", "tiny", "--source", "w4", "--out", "t.safetensors"]
    assert main([*command, f"--{option}", "int8"]) == 2
    assert capsys.readouterr().err.startswith(f"Invalid value for '--{option}': 'int8' is not one of")
    monkeypatch.setenv(variable, "int8")
    assert main(command) == 2
    assert capsys.readouterr().err.startswith(f"Invalid value for the environment variable {variable}: 'int8' is not one of")


def test_the_command_line_says_how_far_a_run_is_from_float32(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "tiny")
    command = ["run", str(tmp_path / "tiny"), "--source", "w4", "--device", "cpu", "--out", str(tmp_path / "t.safetensors")]
    assert main([*command, "--precision", "bfloat16"]) == 0
    text, differs = capsys.readouterr().out.splitlines()
    assert text
    assert differs.startswith("bfloat16, differs from float32 by at most: weights ")
    assert main(command) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    "edits",
    ["silence site=decoder.0.0.cross head=1; forbid kind=cross key=1", "skip-layer stack=encoder layer=0; sharpen factor=2"],
)
def test_edits_hold_in_bfloat16_and_in_the_float32_run_that_it_is_compared_with(edits: str) -> None:
    found = checkpoint(SPECS["paper"])
    asked = replace(runs.request(SPECS["paper"]), edits=read_edits(edits), keep=())
    trace = lower_run(found, asked, "bfloat16")
    plain = lower_run(found, replace(asked, edits=()), "bfloat16")
    full = run(found, replace(asked, target=trace.tokens["target"].ids), CPU, "cpu")
    assert [str(note) for note in trace.model["notes"] if str(note).startswith("Edit: ")] == [
        f"Edit: {edit}" for edit in read_edits(edits)
    ]
    assert trace.logits is not None
    assert full.logits is not None
    rows = len(trace.logits)
    assert trace.model[FROM_FLOAT32]["logits"] == pytest.approx(np.abs(trace.logits - full.logits[:rows]).max(), abs=2e-6)
    assert plain.logits is not None
    assert np.abs(trace.logits[0] - plain.logits[0]).max() > 10 * trace.model[FROM_FLOAT32]["logits"] / 2, "the edits changed it"
