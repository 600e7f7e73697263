"""Tensors that no part of the network takes: harmless ones are named, and any other one refuses the file, whatever was told."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.__main__ import main
from model.checkpoints.layouts.loading import inspect, load
from model.errors import IncompleteWeights, OpenQuestions, UnknownLayout, in_english
from model.inspection.leftovers import what_is
from tests.foreign_files import Reader, Translator
from tests.reference import GOLDEN
from tests.toolkits import HEADS, SOURCE, TARGET, WIDTH
from tests.weight_files import CPU, assert_same, saved, traced

pytestmark = [pytest.mark.usefixtures("read_by_torch"), pytest.mark.filterwarnings("ignore:enable_nested_tensor")]
TOLD = {"n_heads": "3", "norm_order": "post", "activation": "relu", "causal": "true", "embed_scale": "none"}
TUTORIAL = {"n_heads": "2", "decoder_passes": "2", "pad_id": "1"}


def test_a_table_whose_name_speaks_for_one_side_is_not_added_on_the_other_unasked(tmp_path: Path) -> None:
    state = {name: value for name, value in Translator().state_dict().items() if name != "tgt_pos.weight"}
    with pytest.raises(
        OpenQuestions, match=r"leaves these settings open: target_positions\. Add --set target_positions=src_pos\.weight\|none"
    ):
        load(saved(tmp_path, state), TOLD, CPU)
    trace = traced(tmp_path / "weights.pt", TOLD | {"target_positions": "none"}, SOURCE, TARGET)
    assert (trace.positions["decoder"] == 0).all()
    assert not (trace.positions["encoder"] == 0).any()


def test_the_only_table_is_proposed_where_its_name_speaks_of_no_side(tmp_path: Path) -> None:
    """As in PyTorch's tutorial on translation, whose `positional_encoding` is on both sides."""
    state = {name: value for name, value in Translator().state_dict().items() if name != "tgt_pos.weight"}
    state["positional_encoding.pos_embedding"] = state.pop("src_pos.weight")[:, None]
    path = saved(tmp_path, state)
    with pytest.raises(OpenQuestions, match=r"Add --set target_positions=positional_encoding\.pos_embedding, each"):
        load(path, TOLD, CPU)
    asked = {question.name: question for question in inspect(path, TOLD).ask}["target_positions"]
    assert (asked.answer, asked.proposal) == (None, "positional_encoding.pos_embedding")
    trace = traced(path, TOLD | {"target_positions": asked.proposal}, SOURCE, TARGET)
    assert not (trace.positions["decoder"] == 0).all()


def test_one_embedding_for_source_and_target_is_asked_about_and_a_bias_of_its_own_has_no_place(tmp_path: Path) -> None:
    state = {name.replace("src_emb", "shared"): tensor for name, tensor in Translator(tables=0).state_dict().items()}
    del state["tgt_emb.weight"], state["generator.weight"], state["generator.bias"]
    with pytest.raises(OpenQuestions, match="source_embedding, target_embedding"):
        load(saved(tmp_path, state), {name: TOLD[name] for name in TOLD if name != "embed_scale"}, CPU)
    told = TOLD | {"positions": "none", "source_embedding": "shared.weight", "target_embedding": "shared.weight"}
    with pytest.raises(UnknownLayout, match="bias has no place"):
        load(saved(tmp_path, state | {"bias": torch.zeros(11)}), told, CPU)


EXTRA: dict[str, tuple[Callable[[], Any], str]] = {
    "segments": (lambda: Translator(tables=0).state_dict() | {"seg.weight": torch.ones(2, WIDTH)}, "seg"),
    "a norm behind the embedding": (lambda: Reader(emb_norm=nn.LayerNorm(WIDTH)), "emb_norm"),
    "a map before the encoder": (lambda: Reader(input_proj=nn.Linear(WIDTH, WIDTH)), "input_proj"),
    "a square map of a usual name": (lambda: Reader(fc=nn.Linear(WIDTH, WIDTH)), "fc"),
    "a gate of each head": (lambda: Reader(head_gates=nn.Embedding(2, HEADS)), "head_gates"),
    "a third table of positions": (lambda: Reader(rel_pos=nn.Embedding(31, WIDTH)), "rel_pos"),
    "rotary waves": (lambda: _with_buffer("rotary_emb.inv_freq", torch.ones(2)), "rotary_emb"),
    "a window as a mask": (lambda: _with_buffer("attn_mask", torch.ones(8, 8).tril().triu(-2)), "attn_mask"),
    "positions that do not begin at 0": (lambda: _with_buffer("position_ids", torch.arange(2, 18)[None]), "position_ids"),
    "a learned temperature": (lambda: _with_buffer("temperature", torch.ones(())), "temperature"),
}


def _with_buffer(name: str, value: Tensor) -> dict[str, Tensor]:
    return Reader().state_dict() | {name: value}


@pytest.mark.parametrize("name", EXTRA)
def test_a_tensor_that_changes_the_arithmetic_was_left_out_silently_once_the_layout_was_told(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, part = EXTRA[name]
    theirs = made()
    path = saved(tmp_path, theirs if isinstance(theirs, dict) else theirs.state_dict())
    told = TOLD | {"layout": "torch-transformer", "output_layer": "none"}
    if name == "a third table of positions":
        told |= {"source_positions": "pos_embedding.weight"}
    if name == "segments":
        told |= {"positions": "none", "output_layer": "generator.weight"}
    said = []
    for opens in (lambda: load(path, told, CPU), lambda: inspect(path, told)):
        with pytest.raises(UnknownLayout, match=f"{part}.*ha(s|ve) no place in it") as refused:
            opens()
        said.append(str(refused.value))
    assert said[0] == said[1]
    settings = [part for item in told.items() for part in ("--set", "=".join(item))]
    assert main(["run", str(path), *settings, "--source-ids", "2,3", "--out", str(tmp_path / "t")]) == 1
    assert main(["inspect", str(path), *settings]) == 1
    assert capsys.readouterr().err == f"{said[0]}\n{said[1]}\n"


HARMLESS: dict[str, tuple[dict[str, Tensor], str]] = {
    "AveragedModel": ({"n_averaged": torch.tensor(7)}, "a counter"),
    "a mask of the future": ({"tgt_mask": torch.triu(torch.full((9, 9), -torch.inf), 1)}, "a mask"),
    "a mask of bools": ({"causal_mask": torch.ones(1, 1, 12, 12, dtype=torch.bool).tril()}, "a mask"),
    "weights of the loss": ({"criterion.weight": torch.rand(11)}, "part of the loss"),
    "numbers of positions": ({"position_ids": torch.arange(16)[None]}, "the numbers of the positions"),
    "a classifier": (
        {"classifier.weight": torch.rand(4, WIDTH), "classifier.bias": torch.rand(4)},
        "an output head after the network",
    ),
    "a deep head": (
        {f"head.{i}.{p}": torch.rand(s) for i, p, s in ((0, "weight", (WIDTH, WIDTH)), (2, "bias", (2,)))},
        "an output head",
    ),
    "a last layer": ({"fc.weight": torch.rand(4, WIDTH), "fc.bias": torch.rand(4)}, "an output head after the network"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_file_of_one_harmless_extra_name_was_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    extra, what = HARMLESS[name]
    state = Reader().state_dict()
    wrapped = {f"module.{key}": value for key, value in state.items()}
    path = saved(tmp_path, wrapped | {key if key == "n_averaged" else f"module.{key}": value for key, value in extra.items()})
    told = TOLD | {"causal": "false", "output_layer": "none"}
    trace = traced(path, told, SOURCE)
    plain = traced(saved(tmp_path, state), told, SOURCE)
    assert_same(trace.hidden["encoder.0.1"], torch.from_numpy(plain.hidden["encoder.0.1"].copy()))
    saved(tmp_path, wrapped | {f"module.{key}": value for key, value in extra.items()})
    found = inspect(path, told)
    assert {tensor.name.removeprefix("module.") for tensor in found.tensors if tensor.status == "unneeded"} == extra.keys()
    for notes in (found.notes, trace.model["notes"]):
        note = next(str(note) for note in notes if str(note).startswith("Not used"))
        assert what in note
        assert all(key in note for key in extra)
    settings = [part for item in told.items() for part in ("--set", "=".join(item))]
    assert main(["inspect", str(path), *settings, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == list(map(str, found.notes))


def test_a_classifier_with_the_names_of_the_language_model_tutorial(tmp_path: Path) -> None:
    state: dict[str, Tensor] = torch.load(GOLDEN / "001_tiny_a.pt", weights_only=True)
    wide = state["decoder.weight"].shape[1]
    path = saved(tmp_path, state | {"decoder.weight": torch.rand(3, wide), "decoder.bias": torch.rand(3)})
    found = inspect(path, TOLD | {"n_heads": "2", "causal": "false"})
    assert (found.layout, found.problem) == ("torch-transformer", {})
    assert any("decoder.weight, decoder.bias. What it is: an output head after the network" in str(note) for note in found.notes)


def test_a_file_without_a_harmful_extra_says_nothing_of_one() -> None:
    assert not any(str(note).startswith("Not used") for note in inspect(GOLDEN / "000_tiny_a.pt", TUTORIAL).notes)


def test_what_cannot_run_has_one_sentence_for_inspect_and_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {key: value for key, value in torch.load(GOLDEN / "000_tiny_a.pt").items() if key != "decoder.fc_out.bias"}
    path = saved(tmp_path, state)
    with pytest.raises(IncompleteWeights) as refused:
        load(path, TUTORIAL, CPU)
    found = inspect(path, TUTORIAL)
    assert found.problem == refused.value.to_json()
    assert found.missing == ("output.bias",)
    settings = [part for item in TUTORIAL.items() for part in ("--set", "=".join(item))]
    assert main(["inspect", str(path), *settings, "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out)["problem"] == json.loads(json.dumps(found.problem), object_hook=in_english)
    assert said.err == f"{refused.value}\n"


@pytest.mark.parametrize(
    ("name", "tensor", "what"),
    [
        ("transformer.h.0.attn.bias", torch.ones(1, 1, 4, 4).tril(), "a mask"),
        ("transformer.h.0.attn.bias", torch.rand(1, 1, 4, 4), ""),
        ("transformer.h.0.attn.bias", torch.zeros(4), ""),
        ("mask", torch.ones(3, 4), ""),
        ("mask", torch.full((3, 3), math.nan), ""),
        ("n_averaged", torch.zeros(3), ""),
        ("position_ids", torch.arange(3.0), ""),
        ("token_type_ids", torch.zeros(1, 4, dtype=torch.long), "segment ids that are all 0"),
        ("token_type_ids", torch.ones(1, 4, dtype=torch.long), ""),
        ("encoder.loss_scale_proj", torch.ones(2), ""),
        ("aux_loss.weight", torch.ones(2), "part of the loss"),
        ("val_accuracy.total", torch.ones(()), "part of a metric"),
    ],
)
def test_a_name_alone_makes_nothing_harmless(name: str, tensor: Tensor, what: str) -> None:
    assert str(what_is(name, tensor) or "") == what
