"""GGUF files: each architecture computes what its network computed before it was stored, each type of block its numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import quants

from model.checkpoints import loader
from model.errors import MustNotBeSet, UnsupportedGguf
from model.huggingface.loaded import Foreign
from model.safe_loading.gguf_tensors import read_gguf
from tests import ggufs

CPU = torch.device("cpu")
IDS = torch.tensor([[1, 17, 4, 33, 8, 8, 25, 39, 3]])


def opened(path: Path) -> Foreign:
    found = loader.load(path, {}, CPU)
    assert isinstance(found, Foreign)
    return found


@pytest.mark.parametrize("architecture", ggufs.CONFIGS)
@torch.inference_mode()
def test_a_file_computes_what_its_network_computed(architecture: str, tmp_path: Path) -> None:
    made = ggufs.network(architecture)
    found = opened(ggufs.write(tmp_path / "a.gguf", architecture, made)).network.library
    state = found.state_dict()
    for name, tensor in made.state_dict().items():
        assert torch.allclose(state[name], tensor, atol=1e-6), name
    assert torch.allclose(found(IDS)[0], made(IDS)[0], atol=1e-5)


@pytest.mark.parametrize(
    "kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1, Kind.Q8_0, Kind.F16, Kind.BF16], ids=lambda kind: kind.name
)
def test_a_tensor_is_the_numbers_of_its_blocks(kind: Kind, tmp_path: Path) -> None:
    path = ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama"), kind)
    name, file = "blk.1.ffn_down.weight", read_gguf(path)
    place = file.header.tensors[name]
    assert (place.kind, place.shape) == (kind.name, (ggufs.WIDTH, ggufs.INNER))
    assert np.array_equal(
        file.tensor(name).numpy(), in_blocks(path.read_bytes()[place.start :][: place.size], kind).reshape(place.shape)
    )


def in_blocks(data: bytes, kind: Kind) -> Any:
    """The numbers of blocks of 32, as ggml-common.h has them: a scale, a smallest number or none, fifth bits, then the rest."""
    if kind in (Kind.F16, Kind.BF16):
        high = np.frombuffer(data, np.uint16)
        return high.view(np.float16).astype(np.float32) if kind == Kind.F16 else (high.astype(np.uint32) << 16).view(np.float32)
    fifth, lowest = kind in (Kind.Q5_0, Kind.Q5_1), kind in (Kind.Q4_1, Kind.Q5_1)
    head = 2 + 2 * lowest
    blocks = np.frombuffer(data, np.uint8).reshape(-1, head + 4 * fifth + (32 if kind == Kind.Q8_0 else 16))
    scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
    if kind == Kind.Q8_0:
        return scale * blocks[:, 2:].view(np.int8).astype(np.float32)
    nibbles = blocks[:, head + 4 * fifth :]
    numbers = np.concatenate([nibbles & 15, nibbles >> 4], 1).astype(np.float32)
    if fifth:
        numbers += 16 * np.unpackbits(blocks[:, head : head + 4], axis=1, bitorder="little")
    if lowest:
        return scale * numbers + blocks[:, 2:4].copy().view(np.float16).astype(np.float32)
    return scale * (numbers - (16 if fifth else 8))


def test_the_blocks_of_a_tensor_are_read_in_few_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = read_gguf(ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama"), Kind.Q8_0))
    calls: list[int] = []
    real = quants.Q8_0.dequantize_blocks

    def counted(blocks: Any) -> Any:
        calls.append(len(blocks))
        return real(blocks)

    monkeypatch.setattr(quants.Q8_0, "dequantize_blocks", counted)
    found.tensor("blk.1.ffn_down.weight")
    assert calls == [ggufs.WIDTH * ggufs.INNER // 32]


def test_checkpoint_names_the_type_and_the_bits_of_each_tensor(tmp_path: Path) -> None:
    found = loader.inspect(ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama"), Kind.Q4_0), {})
    of = {tensor.name: tensor for tensor in found.tensors}
    assert (of["blk.0.attn_q.weight"].dtype, of["blk.0.attn_q.weight"].bits) == ("Q4_0", 4.5)
    assert (of["blk.0.attn_norm.weight"].dtype, of["blk.0.attn_norm.weight"].bits) == ("F32", 32)
    assert any("What runs is the dequantized network" in str(note) for note in found.notes)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown scaling": ({"rope.scaling.type": "spiral", "rope.scaling.factor": 2.0}, "rope.scaling.type is spiral"),
    "experts": ({"expert_count": 8}, "llama.expert_count is 8, which is not read here"),
    "no heads": ({"attention.head_count": None}, "llama.attention.head_count is missing"),
    "a part of a file": ({"split.count": 3}, "it is one of 3 parts"),
    "heads that differ": ({"attention.head_count_kv": [2, 1]}, "llama.attention.head_count_kv is [2, 1]"),
    "an epsilon of nothing": ({"attention.layer_norm_rms_epsilon": float("nan")}, "attention.layer_norm_rms_epsilon is nan"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_setting_that_would_compute_something_else_is_refused(case: str, tmp_path: Path) -> None:
    more, reason = REFUSED[case]
    with pytest.raises(UnsupportedGguf) as refused:
        opened(ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama"), **more))
    assert reason in str(refused.value)


def test_another_architecture_is_refused_by_its_name(tmp_path: Path) -> None:
    data = ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama")).read_bytes()
    (tmp_path / "b.gguf").write_bytes(data.replace(b"llama", b"mamba"))
    with pytest.raises(UnsupportedGguf) as refused:
        opened(tmp_path / "b.gguf")
    assert "its architecture is mamba, and those that run here are: llama, qwen2" in str(refused.value)


def test_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MustNotBeSet):
        loader.load(ggufs.write(tmp_path / "a.gguf", "llama", ggufs.network("llama")), {"heads": "4"}, CPU)
