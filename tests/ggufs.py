"""GGUF files of tiny random networks, written by the gguf package and its own table of names, for tests.

What llama.cpp changes in the tensors of an architecture is done here once more, from its convert_hf_to_gguf.py.
"""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import GGUFWriter
from torch import nn

WIDTH, LAYERS, HEADS, KEY_HEADS, INNER, VOCAB, POSITIONS = 64, 2, 4, 2, 96, 40, 32

_ROTATING = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "intermediate_size": INNER,
    "max_position_embeddings": POSITIONS,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "initializer_range": 0.3,
}
_HEAD = {"head_dim": 16}
_WINDOW = {"sliding_window": 4, "query_pre_attn_scalar": 16}

CONFIGS: dict[str, dict[str, Any]] = {
    "llama": _ROTATING,
    "qwen2": _ROTATING,
    "qwen3": _ROTATING | _HEAD,
    "gemma": _ROTATING | _HEAD | {"tie_word_embeddings": True},
    "gemma2": _ROTATING
    | _HEAD
    | _WINDOW
    | {"tie_word_embeddings": True, "attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    "gemma3": _ROTATING
    | _HEAD
    | _WINDOW
    | {
        "tie_word_embeddings": True,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {
            "full_attention": {"rope_type": "default", "rope_theta": 1_000_000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
        },
    },
    "phi3": _ROTATING,
    "gpt2": {
        "vocab_size": VOCAB,
        "n_embd": WIDTH,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_inner": INNER,
        "n_positions": POSITIONS,
        "initializer_range": 0.3,
        "bos_token_id": 1,
        "eos_token_id": 2,
    },
    "bert": {
        "vocab_size": VOCAB,
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "intermediate_size": INNER,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.3,
    },
}
"""The library's settings by architecture of the file."""

_TYPES = {"gemma3": "gemma3_text"}


def network(architecture: str) -> nn.Module:
    """A network of an architecture with random weights, its norms and biases too."""
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    torch.manual_seed(5)
    config = AutoConfig.for_model(_TYPES.get(architecture, architecture), **CONFIGS[architecture])
    made: nn.Module
    if architecture == "bert":
        made = AutoModel.from_config(config, add_pooling_layer=False)
    else:
        made = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
            assert parameter.isfinite().all(), name
    return made.eval()


def write(path: Path, architecture: str, made: nn.Module, stored: Kind = Kind.F32, **more: Any) -> Path:
    """A file of a network.

    Args:
        stored: how matrices are stored.
        more: further settings, or others in place of those of the architecture; None leaves one out.
    """
    writer = GGUFWriter(path, architecture)
    for name, value in {**_settings(architecture), **more}.items():
        full = name if name.startswith(("tokenizer.", "general.", "split.")) else f"{architecture}.{name}"
        if value is not None:
            writer.add_key_value(full, value, *_kind(value))
    names = gguf.get_tensor_name_map(next(key for key, arch in gguf.MODEL_ARCH_NAMES.items() if arch == architecture), LAYERS)
    tied = bool(getattr(made.config, "tie_word_embeddings", False))
    for name, tensor in made.state_dict().items():
        if (name == "lm_head.weight" and tied) or name.endswith((".attn.bias", "position_ids")):
            continue
        found = names.get_name(name, (".weight", ".bias"))
        assert found is not None, name
        values = _changed(architecture, found, tensor).numpy().astype(np.float32)
        kind = stored if values.ndim == 2 and values.shape[1] % 32 == 0 and "position" not in found else Kind.F32
        data = values if kind == Kind.F32 else gguf.quants.quantize(values, kind)
        writer.add_tensor(found, np.ascontiguousarray(data), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _settings(architecture: str) -> dict[str, Any]:
    config = CONFIGS[architecture]
    common = {
        "block_count": LAYERS,
        "context_length": POSITIONS,
        "embedding_length": WIDTH,
        "feed_forward_length": INNER,
        "attention.head_count": HEADS,
    }
    if architecture in ("gpt2", "bert"):
        own: dict[str, Any] = {"attention.layer_norm_epsilon": 1e-5 if architecture == "gpt2" else 1e-12}
        return common | own | ({"attention.causal": False} if architecture == "bert" else {})
    own = {"attention.head_count_kv": KEY_HEADS, "attention.layer_norm_rms_epsilon": 1e-5, "rope.freq_base": 10_000.0}
    if "head_dim" in config:
        own |= {"attention.key_length": 16, "attention.value_length": 16}
    if architecture == "phi3":
        own["rope.dimension_count"] = 16
    if architecture == "gemma2":
        own |= {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0, "attention.sliding_window": 4}
    if architecture == "gemma3":
        own |= {"attention.sliding_window": 4, "attention.sliding_window_pattern": 2, "rope.freq_base": 1_000_000.0}
    return common | own


def _kind(value: Any) -> tuple[Any, ...]:
    types = gguf.GGUFValueType
    by_type = {bool: types.BOOL, int: types.UINT32, float: types.FLOAT32, str: types.STRING}
    if isinstance(value, list):
        return types.ARRAY, by_type[type(value[0])]
    return (by_type[type(value)],)


def _changed(architecture: str, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """What llama.cpp's converter does with a tensor before it is stored."""
    if architecture == "llama" and name.endswith(("attn_q.weight", "attn_k.weight")):
        heads = HEADS if "attn_q" in name else KEY_HEADS
        return tensor.reshape(heads, 2, tensor.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(tensor.shape)
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return tensor + 1
    if architecture == "gpt2" and name.endswith(("attn_qkv.weight", "attn_output.weight", "ffn_up.weight", "ffn_down.weight")):
        return tensor.T.contiguous()
    return tensor
