"""Files of toolkits, compared with their forward pass written anew in tests/toolkits.py from each toolkit's own names."""

from pathlib import Path

import numpy as np
import pytest
import torch

from model.checkpoints.layouts.loading import load
from model.errors import UnknownLayout
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from tests.toolkits import (
    ANNOTATED,
    FAIRSEQ,
    HEADS,
    JOEY,
    OPENNMT,
    SOURCE,
    TARGET,
    Reference,
    annotated_state,
    fairseq_state,
    joey_state,
    onmt_file,
    onmt_state,
    standard,
)
from tests.weight_files import CPU, assert_same, saved, traced

pytestmark = pytest.mark.usefixtures("read_by_torch")
THREE = {"n_heads": str(HEADS)}


@pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("scale", [True, False], ids=["scaled", "unscaled"])
def test_joeynmt(tmp_path: Path, first: bool, scale: bool) -> None:
    state = joey_state(first)
    told = THREE | {"pad_id": "1", "norm_order": "pre" if first else "post", "embed_scale": "sqrt" if scale else "none"}
    trace = traced(saved(tmp_path, {"steps": 7, "model_state": state}), told, SOURCE, TARGET)
    memory, logits = Reference(JOEY, state, first, scale)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)


def test_joeynmt_norms_add_less_to_the_variance_than_those_of_torch(tmp_path: Path) -> None:
    state = joey_state(True)
    state["src_embed.lut.weight"] *= 1e-3
    state["encoder.pe.pe"] = torch.zeros_like(state["encoder.pe.pe"])
    trace = traced(saved(tmp_path, state), THREE | {"pad_id": "1", "norm_order": "pre", "embed_scale": "none"}, SOURCE, TARGET)
    network, rows = Reference(JOEY, state), state["src_embed.lut.weight"][list(SOURCE)]
    wanted = network.norm("encoder.layers.0.layer_norm", rows, True)
    assert_same(trace.stages["encoder.0.0.self/normed"], wanted)
    assert (standard(rows, 1e-5) - standard(rows, 1e-6)).abs().max() > 0.1, "the test would not see the difference"
    assert trace.model["spec"]["encoder"]["norm_epsilon"] == 1e-6


@pytest.mark.parametrize("first", [True, False], ids=["pre", "post"])
@pytest.mark.parametrize("learned", [True, False], ids=["learned", "waves"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_fairseq(tmp_path: Path, first: bool, learned: bool, tied: bool) -> None:
    state = fairseq_state(first, learned, tied)
    told = THREE | {"activation": "relu", "embed_scale": "sqrt"}
    trace = traced(saved(tmp_path, {"model": state, "optimizer_history": []}), told, SOURCE, TARGET)
    memory, logits = Reference(FAIRSEQ, state, first)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)
    assert (trace.model["spec"]["start_id"], trace.model["spec"]["end_id"], trace.model["spec"]["pad_id"]) == (2, 2, 1)


def test_positions_of_fairseq_go_on_from_step_to_step(tmp_path: Path) -> None:
    checkpoint = load(saved(tmp_path, fairseq_state(True, True)), THREE | {"activation": "relu", "embed_scale": "sqrt"}, CPU)
    decoded = run(checkpoint, RunRequest("x", SOURCE, None, Decoding(max_length=5)), CPU, "cpu")
    written = decoded.tokens["target"].ids
    fed = run(checkpoint, RunRequest("x", SOURCE, written[: len(decoded.positions["decoder"])], Decoding(max_length=0)), CPU, "cpu")
    assert_same(decoded.positions["decoder"], torch.from_numpy(fed.positions["decoder"].copy()))
    assert_same(decoded.logits, torch.from_numpy(fed.logits.copy() if fed.logits is not None else np.zeros(0)))


@pytest.mark.parametrize("apart", [True, False], ids=["generator apart", "generator within"])
def test_opennmt(tmp_path: Path, apart: bool) -> None:
    state = onmt_state()
    trace = traced(saved(tmp_path, {**onmt_file(state, apart), "optim": None}), THREE, SOURCE, TARGET)
    memory, logits = Reference(OPENNMT, state)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)
    spec = trace.model["spec"]
    assert (spec["start_id"], spec["end_id"], spec["pad_id"], spec["unk_id"]) == (2, 3, 1, 0)
    assert spec["encoder"]["norm_epsilon"] == 1e-6


def test_the_annotated_transformer(tmp_path: Path) -> None:
    state = annotated_state()
    trace = traced(saved(tmp_path, state), THREE | {"pad_id": "1"}, SOURCE, TARGET)
    memory, logits = Reference(ANNOTATED, state)(SOURCE, TARGET)
    assert_same(trace.stages["encoder/final"], memory)
    assert_same(trace.logits, logits)


@pytest.mark.parametrize(
    ("state", "more", "sentence"),
    [
        (joey_state(True), "encoder.layers.0.adapter.weight", "closest is joeynmt"),
        (
            onmt_state(),
            "encoder.transformer.0.self_attn.relative_positions_embeddings.weight",
            r"closest is opennmt. .*relative_positions_embeddings.weight has no place",
        ),
    ],
)
def test_a_file_with_a_tensor_more_is_refused(tmp_path: Path, state: dict[str, torch.Tensor], more: str, sentence: str) -> None:
    with pytest.raises(UnknownLayout, match=sentence):
        load(saved(tmp_path, state | {more: torch.zeros(41, 4)}), THREE, CPU)
