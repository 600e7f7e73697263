"""Llama-like files, compared with the network of tests/llama_files.py."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from model.checkpoints.layouts.loading import inspect, load
from model.errors import BadSetting, ContradictsFile, IncompleteWeights, OpenQuestions, UnknownLayout
from model.inference.run import run
from model.requests.request import KEEP, Decoding, RunRequest
from model.transformer.stacks import CausalLM
from tests import weight_files
from tests.llama_files import HEADS, IDS, KEY_HEADS, LAYERS, TOLD, WIDE, WIDTH, WORDS, Llama, litgpt_state, meta_state
from tests.toolkits import State
from tests.weight_files import CPU


def saved(folder: Path, state: State, **beside: Any) -> Path:
    return weight_files.saved(folder, {"model": state, **beside})


def furthest(path: Path, told: dict[str, str], wanted: Tensor, dtype: torch.dtype = torch.float32) -> float:
    """The largest difference of the logits, computed in `dtype`."""
    network = load(path, told, CPU).network.to(dtype)
    assert isinstance(network, CausalLM)
    with torch.inference_mode():
        return float((network(torch.tensor([IDS]))[0] - wanted).abs().max())


def doubled(state: State) -> State:
    return {name: tensor.double() for name, tensor in state.items()}


ARGS = {"dim": WIDTH, "n_layers": LAYERS, "n_heads": HEADS, "n_kv_heads": KEY_HEADS, "vocab_size": WORDS, "max_seq_len": 32}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("key_heads", [1, 2, 6], ids=["multi-query", "grouped", "each its own"])
def test_a_file_of_llama2_c(tmp_path: Path, dtype: torch.dtype, key_heads: int) -> None:
    state = meta_state(key_heads)
    path = saved(tmp_path, state, model_args=ARGS | {"n_kv_heads": key_heads}, iter_num=5, config={"n_heads": HEADS})
    wanted = Llama(doubled(state) if dtype == torch.float64 else state)(IDS)
    assert furthest(path, TOLD, wanted, dtype) < 1e-5
    found = inspect(path, TOLD)
    assert found.layout == "llama"
    attention = found.spec["decoder"]["attention"]
    assert (attention["heads"], attention.get("key_heads")) == (HEADS, None if key_heads == HEADS else key_heads)
    assert found.spec["decoder"]["max_positions"] == 32


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("stacked", ["attn.attn", "attn.qkv"])
@pytest.mark.parametrize("scale", ["none", "sqrt"])
def test_a_file_of_lit_gpt(tmp_path: Path, dtype: torch.dtype, stacked: str, scale: str) -> None:
    state = meta_state()
    reference = Llama(
        doubled(state) if dtype == torch.float64 else state,
        neighbors=False,
        base=500.0,
        scale=math.sqrt(WIDTH) if scale == "sqrt" else 1.0,
    )
    told = TOLD | {"n_heads": str(HEADS), "rotary_base": "500", "activation": "silu", "embed_scale": scale}
    assert furthest(saved(tmp_path, litgpt_state(stacked)), told, reference(IDS), dtype) < 1e-5


def test_the_other_order_of_columns_would_be_far_off(tmp_path: Path) -> None:
    state = meta_state()
    path = saved(tmp_path, state, model_args=ARGS)
    assert furthest(path, TOLD, Llama(state, neighbors=False)(IDS)) > 1e-2
    assert furthest(path, TOLD | {"rotary_base": "500"}, Llama(state)(IDS)) > 1e-2
    told = {"n_heads": "6", "activation": "silu", "embed_scale": "none"} | TOLD
    path = saved(tmp_path, litgpt_state("attn.qkv"))
    assert furthest(path, told, Llama(state, neighbors=True)(IDS)) > 1e-2


def test_a_cached_decode_turns_by_the_position_in_the_whole_text(tmp_path: Path) -> None:
    state = meta_state()
    checkpoint = load(saved(tmp_path, state, model_args=ARGS), TOLD, CPU)
    trace = run(checkpoint, RunRequest("x", IDS[:3], decoding=Decoding(max_length=6), keep=KEEP), CPU, "cpu")
    whole = trace.tokens["source"].ids
    assert len(trace.steps) == 6
    assert trace.logits is not None
    wanted = Llama(state)(whole)[: len(trace.logits)]
    torch.testing.assert_close(torch.from_numpy(trace.logits.copy()), wanted, rtol=0, atol=1e-5)
    own = trace.at("decoder.0.1.self")
    assert own.heads == HEADS
    assert own.k is not None
    assert own.k.shape[0] == HEADS, "each head shows the keys that it shares"
    assert trace.positions == {}
    assert str(trace.missing["positions/decoder"]) == "no positions are added: queries and keys are rotated by their positions"


def test_what_the_file_does_not_say_is_asked(tmp_path: Path) -> None:
    with pytest.raises(OpenQuestions, match="n_heads, rotary_base, variant, norm_epsilon"):
        load(saved(tmp_path, meta_state()), {}, CPU)
    found = inspect(saved(tmp_path, meta_state()), {})
    assert {question.name: question.choices for question in found.ask}["n_heads"] == ("12", "6", "3")
    told = inspect(saved(tmp_path, meta_state()), {"key_heads": "2"})
    assert {question.name: question.answer for question in told.ask}["n_heads"] == "6"


def test_what_contradicts_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContradictsFile, match="says n_heads=6"):
        load(saved(tmp_path, meta_state(), model_args=ARGS), TOLD | {"n_heads": "3"}, CPU)
    with pytest.raises(ContradictsFile, match="says key_heads=5"):
        load(saved(tmp_path, meta_state(), model_args=ARGS | {"n_kv_heads": 5}), TOLD, CPU)
    with pytest.raises(BadSetting, match=r"key_heads: “4” is not accepted. Allowed: 2, which fits n_heads=6 with"):
        load(saved(tmp_path, meta_state()), TOLD | {"n_heads": "6", "key_heads": "4"}, CPU)
    with pytest.raises(ContradictsFile, match="says variant=scaled"):
        load(saved(tmp_path, meta_state(), params=ARGS | {"use_scaled_rope": True}), TOLD, CPU)
    with pytest.raises(ContradictsFile, match="says rotary_base=500000"):
        load(saved(tmp_path, meta_state(), model_args=ARGS | {"rope_theta": 500000.0}), TOLD, CPU)


def test_a_file_of_meta_has_frequencies_that_its_program_computes_anew(tmp_path: Path) -> None:
    state = meta_state()
    path = saved(tmp_path, state | {"rope.freqs": torch.ones(WIDE // 2)}, params=ARGS)
    assert furthest(path, TOLD, Llama(state)(IDS)) < 1e-5
    assert "rope.freqs. What it is: recomputed by the program that saved it" in " ".join(map(str, inspect(path, TOLD).notes))


def test_a_file_with_a_tensor_more_or_less_is_refused(tmp_path: Path) -> None:
    state = meta_state()
    with pytest.raises(UnknownLayout, match=r"closest is llama.*layers.0.attention.q_norm.weight has no place"):
        load(saved(tmp_path, state | {"layers.0.attention.q_norm.weight": torch.ones(WIDE)}), TOLD, CPU)
    del state["layers.1.ffn_norm.weight"]
    with pytest.raises(IncompleteWeights, match=r"no tensor in it becomes layers.1.feed_forward_residual.norm.weight"):
        load(saved(tmp_path, state, model_args=ARGS), TOLD, CPU)
    odd = meta_state() | {"layers.0.attention.wk.weight": torch.ones(7, WIDTH)}
    with pytest.raises(UnknownLayout, match="sizes of its queries and keys fit no number of heads"):
        load(saved(tmp_path, odd), TOLD, CPU)
