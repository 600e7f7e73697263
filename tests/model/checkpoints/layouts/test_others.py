"""Layouts without a reference document: the programs' own modules, or an independent reading of them, give the same numbers."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.checkpoints.layouts.loading import inspect, load
from model.errors import BadSetting, UnknownLayout
from model.inference.run import run
from model.requests.inputs import Features
from model.requests.request import RunRequest
from tests.foreign_files import Translator, triangle
from tests.toolkits import HEADS, SOURCE, TARGET, WIDTH
from tests.weight_files import CPU, assert_same, saved, traced

pytestmark = [pytest.mark.usefixtures("read_by_torch"), pytest.mark.filterwarnings("ignore:enable_nested_tensor")]


def shaken(module: nn.Module, seed: int = 0) -> nn.Module:
    """Every parameter random, norms and biases included; in training mode, since torch fuses layers in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            centre = 1.0 if parameter.dim() == 1 and ("norm" in name or "ln" in name) and name.endswith(("weight", "a_2")) else 0.0
            parameter.copy_(centre + 0.4 * torch.randn(parameter.shape, generator=generator))
    return module


def rows(count: int, seed: int) -> Tensor:
    return torch.randn(1, count, WIDTH, generator=torch.Generator().manual_seed(seed))


def given(x: Tensor) -> Features:
    return Features(tuple(map(tuple, x[0].tolist())))


ORDERS = pytest.mark.parametrize(("first", "activation"), [(False, "relu"), (True, "gelu")], ids=["post", "pre"])


def settings(first: bool, activation: str, causal: str, **more: str) -> dict[str, str]:
    return {"n_heads": str(HEADS), "norm_order": "pre" if first else "post", "activation": activation, "causal": causal} | more


@ORDERS
def test_a_whole_nn_transformer_alone(tmp_path: Path, first: bool, activation: str) -> None:
    how = {"dim_feedforward": 20, "dropout": 0.0, "batch_first": True, "norm_first": first, "activation": activation}
    theirs = shaken(nn.Transformer(WIDTH, HEADS, 2, 3, **how))  # type: ignore[arg-type]
    source, target = rows(5, 1), rows(4, 2)
    trace = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "true"), given(source), given(target))
    assert_same(trace.stages["decoder/final"], theirs(source, target, tgt_mask=triangle(4))[0])
    open_eyes = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "false"), given(source), given(target))
    assert_same(open_eyes.stages["decoder/final"], theirs(source, target)[0])


@ORDERS
def test_an_nn_transformer_encoder_alone(tmp_path: Path, first: bool, activation: str) -> None:
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 20, 0.0, activation, batch_first=True, norm_first=first)
    theirs = shaken(nn.TransformerEncoder(layer, 11, enable_nested_tensor=False))  # "10" comes after "9"
    x = rows(5, 1)
    trace = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "false"), given(x))
    assert_same(trace.hidden["encoder.0.10"], theirs(x)[0])
    causal = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "true"), given(x))
    assert_same(causal.hidden["decoder.0.10"], theirs(x, mask=triangle(5))[0])


def test_an_nn_transformer_decoder_alone(tmp_path: Path) -> None:
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, 20, 0.0, batch_first=True)
    theirs = shaken(nn.TransformerDecoder(layer, 2, nn.LayerNorm(WIDTH)))
    memory, target = rows(5, 1), rows(4, 2)
    trace = traced(saved(tmp_path, theirs.state_dict()), settings(False, "relu", "true"), given(memory), given(target))
    assert_same(trace.stages["decoder/final"], theirs(target, memory, tgt_mask=triangle(4))[0])


def test_a_decoder_alone_that_reads_ids_was_never_asked_for_its_padding(tmp_path: Path) -> None:
    layer, words, pad = nn.TransformerDecoderLayer(WIDTH, HEADS, 20, 0.0, batch_first=True), 11, 9
    theirs, embedding, output = shaken(nn.TransformerDecoder(layer, 2)), shaken(nn.Embedding(words, WIDTH)), nn.Linear(WIDTH, words)
    modules: dict[str, nn.Module] = {"decoder": theirs, "emb": embedding, "out": output}
    state = {f"{name}.{n}": tensor for name, module in modules.items() for n, tensor in module.state_dict().items()}
    torch.save(state, tmp_path / "weights.pt")
    asked = {question.name for question in inspect(tmp_path / "weights.pt", {}).ask}
    assert "target_pad_id" in asked
    assert {"source_pad_id", "source_vocab"}.isdisjoint(asked), "its source are vectors"
    memory, target, hidden = rows(5, 1), (2, pad, 8, 4), torch.tensor([[False, True, False, False]])
    told = settings(False, "relu", "true", positions="none", embed_scale="none", target_pad_id=str(pad))
    trace = traced(saved(tmp_path, state), told, given(memory), target)
    read = theirs(embedding(torch.tensor([target])), memory, tgt_mask=triangle(4).isinf(), tgt_key_padding_mask=hidden)
    assert_same(trace.logits, output(read)[0])
    assert not trace.at("decoder.0.0.self").mask[2, 1]
    padded = RunRequest("x", given(memory), target, source_pad_to=7)
    with pytest.raises(BadSetting, match="this model has no padding id"):
        run(load(tmp_path / "weights.pt", told, CPU), padded, CPU, "cpu")


@ORDERS
def test_a_layer_of_an_encoder_alone(tmp_path: Path, first: bool, activation: str) -> None:
    theirs = shaken(nn.TransformerEncoderLayer(WIDTH, HEADS, 20, 0.0, activation, batch_first=True, norm_first=first))
    x = rows(5, 1)
    state = {f"module.{name}": tensor for name, tensor in theirs.state_dict().items()}
    trace = traced(saved(tmp_path, state), settings(first, activation, "false"), given(x))
    assert_same(trace.hidden["encoder.0.0"], theirs(x)[0])
    whole: Any = theirs
    normed = whole.norm1(x) if first else x
    assert_same(trace.at("encoder.0.0.self").weights, whole.self_attn(normed, normed, normed, average_attn_weights=False)[1][0])
    causal = traced(saved(tmp_path, state), settings(first, activation, "true"), given(x))
    assert_same(causal.hidden["decoder.0.0"], theirs(x, src_mask=triangle(5))[0])


@ORDERS
@pytest.mark.parametrize("bias", [True, False])
def test_a_layer_of_a_decoder_alone(tmp_path: Path, first: bool, activation: str, bias: bool) -> None:
    layer = nn.TransformerDecoderLayer(WIDTH, HEADS, 20, 0.0, activation, batch_first=True, norm_first=first, bias=bias)
    theirs, memory, target = shaken(layer), rows(5, 1), rows(4, 2)
    trace = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "true"), given(memory), given(target))
    assert_same(trace.hidden["decoder.0.0"], theirs(target, memory, tgt_mask=triangle(4))[0])
    open_eyes = traced(saved(tmp_path, theirs.state_dict()), settings(first, activation, "false"), given(memory), given(target))
    assert_same(open_eyes.hidden["decoder.0.0"], theirs(target, memory)[0])


def test_a_lone_layer_with_foreign_names_beside_it_is_not_taken_for_one(tmp_path: Path) -> None:
    state = nn.TransformerEncoderLayer(WIDTH, HEADS, 20).state_dict() | {"head.weight": torch.zeros(3, WIDTH)}
    with pytest.raises(UnknownLayout, match=r"The closest is torch-transformer. What does not fit: head\.weight"):
        traced(saved(tmp_path, state), settings(False, "relu", "false"), given(rows(5, 1)))


def test_a_model_around_an_nn_transformer_that_scales_its_embeddings(tmp_path: Path) -> None:
    theirs = shaken(Translator(tables=1, scale=math.sqrt(WIDTH)))
    told = settings(False, "relu", "true", embed_scale="sqrt")
    trace = traced(saved(tmp_path, theirs.state_dict()), told, SOURCE, TARGET)
    assert_same(trace.logits, theirs(torch.tensor([SOURCE]), torch.tensor([TARGET]))[0])
