"""What config.json would say, from the settings and tensors of a GGUF file."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from model.errors import UnsupportedGguf, phrase
from model.huggingface.gguf.architectures import Architecture
from model.huggingface.gguf.settings import Settings
from model.safe_loading.gguf_tensors import GgufFile

EMBEDDING, OUTPUT = "token_embd.weight", "output.weight"

_GEMMA2_27B, _GEMMA3_27B = 46, 62
"""Layers of the two models whose queries are scaled by the width of the model per head, as llama.cpp tells them apart."""


def config_of(file: GgufFile, architecture: Architecture) -> dict[str, Any]:
    """The settings of the library's network.

    Raises:
        UnsupportedGguf: one is missing, cannot be, or is not read here.
    """
    read = Settings(file)
    if not read.has(EMBEDDING):
        raise UnsupportedGguf(path=file.path, reason=phrase("it has no tensor {name}", name=EMBEDDING))
    causal = read.get("attention.causal")
    # a decoder that attends to later tokens, or a BERT that does not, is another network
    if causal is not None and bool(causal) is (read.architecture == "bert"):
        raise read.refused("attention.causal", causal)
    config = {
        "model_type": architecture.model_type,
        "architectures": [architecture.class_name],
        "vocab_size": file.header.tensors[EMBEDDING].shape[0],
        "tie_word_embeddings": not read.has(OUTPUT),
        **special_ids(file, file.header.tensors[EMBEDDING].shape[0]),
        # all but GPT-2 and BERT are decoders with rotary positions
        **_READ.get(read.architecture, _rotating)(read),
    }
    # a setting that nothing asked for could change the arithmetic unseen
    read.check_rest()
    return config


def special_ids(file: GgufFile, vocab: int) -> dict[str, int | None]:
    """Ids of special tokens; those outside the vocabulary are dropped."""
    names = {"bos_token_id": "bos_token_id", "eos_token_id": "eos_token_id", "pad_token_id": "padding_token_id"}
    ids = {name: file.header.settings.get(f"tokenizer.ggml.{stored}") for name, stored in names.items()}
    return {name: id_ if type(id_) is int and 0 <= id_ < vocab else None for name, id_ in ids.items()}


def _rotating(read: Settings) -> dict[str, Any]:
    """A decoder with rotary positions and RMS norms."""
    heads, width = read.whole("attention.head_count"), read.whole("embedding_length")
    head = read.whole("attention.key_length", read.get("rope.dimension_count") or width // heads)
    if read.whole("attention.value_length", head) != head:
        raise read.refused("attention.value_length", read.get("attention.value_length"))
    turned = read.whole("rope.dimension_count", head)
    if turned != head and read.architecture != "phi3":
        raise read.refused("rope.dimension_count", turned)
    layers, positions = read.whole("block_count"), read.whole("context_length")
    settings = {
        "hidden_size": width,
        "intermediate_size": read.whole("feed_forward_length"),
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": read.whole("attention.head_count_kv", heads),
        "head_dim": head,
        "max_position_embeddings": positions,
        "rms_norm_eps": read.real("attention.layer_norm_rms_epsilon"),
        "rope_theta": read.real("rope.freq_base", 10_000.0),
        **scaling(read, head, positions),
    }
    if (more := _MORE.get(read.architecture)) is not None:
        settings |= more(read, settings)
    return {name: value for name, value in settings.items() if value is not None}


def _llama(read: Settings, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"attention_bias": read.has("blk.0.attn_q.bias"), "mlp_bias": read.has("blk.0.ffn_up.bias")}


def _gemma2(read: Settings, settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "attn_logit_softcapping": read.real("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": read.real("final_logit_softcapping", 30.0),
        "sliding_window": read.whole("attention.sliding_window", 4096),
        "query_pre_attn_scalar": _scaled_by(settings, _GEMMA2_27B),
    }


def _gemma3(read: Settings, settings: Mapping[str, Any]) -> dict[str, Any]:
    every = read.whole("attention.sliding_window_pattern", 6)
    layers = range(1, settings["num_hidden_layers"] + 1)
    # layers that see everything and layers that see a window rotate with different bases
    far = {"rope_type": "default", "rope_theta": settings["rope_theta"]} | settings.get("rope_scaling", {})
    near = {"rope_type": "default", "rope_theta": read.real("rope.freq_base_swa", 10_000.0)}
    return {
        "sliding_window": read.whole("attention.sliding_window"),
        "layer_types": ["sliding_attention" if layer % every else "full_attention" for layer in layers],
        "query_pre_attn_scalar": _scaled_by(settings, _GEMMA3_27B),
        "rope_theta": None,
        "rope_scaling": None,
        "rope_parameters": {"full_attention": far, "sliding_attention": near},
        "final_logit_softcapping": read.real("final_logit_softcapping") if read.get("final_logit_softcapping") else None,
    }


def _scaled_by(settings: Mapping[str, Any], layers: int) -> int:
    """The number by whose root queries are divided; no file tells it."""
    if settings["num_hidden_layers"] == layers:
        return int(settings["hidden_size"]) // int(settings["num_attention_heads"])
    return int(settings["head_dim"])


def _phi3(read: Settings, settings: Mapping[str, Any]) -> dict[str, Any]:
    window = read.get("attention.sliding_window")
    return {
        "sliding_window": read.whole("attention.sliding_window") if window else None,
        "partial_rotary_factor": read.whole("rope.dimension_count", settings["head_dim"]) / settings["head_dim"],
    }


def _gpt2(read: Settings) -> dict[str, Any]:
    return {
        "n_embd": read.whole("embedding_length"),
        "n_layer": read.whole("block_count"),
        "n_head": read.whole("attention.head_count"),
        "n_inner": read.whole("feed_forward_length"),
        "n_positions": read.whole("context_length"),
        "layer_norm_epsilon": read.real("attention.layer_norm_epsilon"),
    }


def _bert(read: Settings) -> dict[str, Any]:
    types = read.file.header.tensors.get("token_types.weight")
    return {
        "hidden_size": read.whole("embedding_length"),
        "num_hidden_layers": read.whole("block_count"),
        "num_attention_heads": read.whole("attention.head_count"),
        "intermediate_size": read.whole("feed_forward_length"),
        "max_position_embeddings": read.whole("context_length"),
        "layer_norm_eps": read.real("attention.layer_norm_epsilon"),
        "type_vocab_size": types.shape[0] if types else 1,
    }


_READ: Mapping[str, Callable[[Settings], dict[str, Any]]] = {"gpt2": _gpt2, "bert": _bert}
_MORE: Mapping[str, Callable[[Settings, Mapping[str, Any]], dict[str, Any]]] = {
    "llama": _llama,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "phi3": _phi3,
}


# --- Scaling of rotary positions: for contexts longer than those of the training, waves are stretched ---------------------

FREQUENCIES, SHORT, LONG = "rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"
"""Tensors with a divisor for each wave: of all contexts, of short ones, and of long ones."""

USED_UP = (FREQUENCIES, SHORT, LONG)
"""Tensors that become settings: no parameter of the network holds them."""

LLAMA_3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""What Llama 3.1 to 3.3 were trained with. A GGUF file holds only the divisors that follow from it."""


def scaling(read: Settings, head: int, positions: int) -> dict[str, Any]:
    """The library's settings for the file's scaling of positions; empty: there is none.

    Args:
        head: numbers of a head.
        positions: the longest context.

    Raises:
        UnsupportedGguf: it is of a kind that is not read here.
    """
    kind, factor = read.get("rope.scaling.type"), read.get("rope.scaling.factor")
    before = read.whole("rope.scaling.original_context_length", positions)
    if read.has(SHORT) and read.has(LONG):
        factors = {name: read.file.tensor(tensor).tolist() for name, tensor in (("short_factor", SHORT), ("long_factor", LONG))}
        longrope = {"rope_type": "longrope", **factors, "attention_factor": read.real("rope.scaling.attn_factor", 1.0)}
        return {"rope_scaling": longrope | {"original_max_position_embeddings": before}, "original_max_position_embeddings": before}
    if read.has(FREQUENCIES):
        return _llama_3(read, head)
    if kind in (None, "none") or factor in (None, 0, 1):
        return {}
    if kind == "linear":
        return {"rope_scaling": {"rope_type": "linear", "factor": read.real("rope.scaling.factor")}}
    if kind == "yarn":
        stretch = {"rope_type": "yarn", "factor": read.real("rope.scaling.factor"), "original_max_position_embeddings": before}
        return {"rope_scaling": stretch}
    raise read.refused("rope.scaling.type", kind)


def _llama_3(read: Settings, head: int) -> dict[str, Any]:
    """The settings whose divisors are those in the file."""
    stored = read.file.tensor(FREQUENCIES)
    if bool((stored == 1).all()):
        return {}
    # the largest divisor is the factor; all others must follow from it
    factor = round(float(stored.max()))
    if stored.shape != (head // 2,) or not torch.allclose(
        stored, _divisors(read.real("rope.freq_base", 10_000.0), head, factor), rtol=1e-3
    ):
        reason = phrase("its {name} are not those of Llama 3, and no others are read here", name=FREQUENCIES)
        raise UnsupportedGguf(path=read.file.path, reason=reason)
    return {"rope_scaling": {"rope_type": "llama3", "factor": float(factor), **LLAMA_3}}


def _divisors(base: float, head: int, factor: int) -> Tensor:
    """The divisor of each wave in Llama 3: 1 for short waves, `factor` for long ones, between the two in between.

    Source: Grattafiori et al. 2024, "The Llama 3 Herd of Models", and apply_scaling in Meta's llama-models.
    """
    lengths = 2 * math.pi * base ** (torch.arange(0, head, 2) / head)
    low, high, before = LLAMA_3["low_freq_factor"], LLAMA_3["high_freq_factor"], LLAMA_3["original_max_position_embeddings"]
    smooth = ((before / lengths - low) / (high - low)).clamp(0, 1)
    return 1 / ((1 - smooth) / factor + smooth)
