"""Architectures of the transformers library, small and with random weights: each is recorded by `headlight.py`, and its maps are
compared with those that the library's own eager attention returns."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

import headlight
from benchmarks.timing import Row

SIZES: dict[str, Any] = (
    {"vocab_size": 40, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "mask_token_id": 3}
    | dict.fromkeys(("hidden_size", "d_model", "n_embd", "embedding_size", "dim"), 32)
    | dict.fromkeys(("num_hidden_layers", "encoder_layers", "decoder_layers", "n_layer", "num_layers", "n_layers"), 2)
    | dict.fromkeys(("num_encoder_layers", "num_decoder_layers"), 2)
    | dict.fromkeys(("num_attention_heads", "encoder_attention_heads", "decoder_attention_heads"), 4)
    | dict.fromkeys(("n_head", "num_heads", "n_heads", "num_encoder_attention_heads", "num_decoder_attention_heads"), 4)
    | dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "hidden_dim", "ffn_dim", "n_inner"), 48)
    | {"num_key_value_heads": 2, "head_dim": 8, "d_kv": 8, "d_head": 8, "d_inner": 48, "rotary_dim": 8}
    | dict.fromkeys(("max_position_embeddings", "n_positions", "n_ctx", "max_encoder_position_embeddings"), 64)
    | {
        "query_pre_attn_scalar": 8,
        "sliding_window": 4,
        "local_attention": 4,
        "global_attn_every_n_layers": 2,
        "attention_window": 4,
    }
    | {"num_local_experts": 2, "num_experts_per_tok": 1, "image_size": 32, "patch_size": 8}
)
"""Small values of the settings that architectures have. Each takes those that it knows."""

_LOW_RANK = {"q_lora_rank": 12, "kv_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8, "head_dim": 8} | {
    "num_key_value_heads": 4,
    "first_k_dense_replace": 1,
    "moe_intermediate_size": 16,
    "n_routed_experts": 2,
    "num_experts_per_tok": 1,
}

OWN: Mapping[str, dict[str, Any]] = {
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gemma2": {"layer_types": ["sliding_attention", "full_attention"]},
    "gemma3_text": {"layer_types": ["sliding_attention", "full_attention"]},
    "modernbert": {"cls_token_id": 1, "sep_token_id": 2},
    "whisper": {"num_mel_bins": 8, "max_source_positions": 12, "max_target_positions": 32},
    "fsmt": {"langs": ["en", "de"], "src_vocab_size": 40, "tgt_vocab_size": 40},
    "deepseek_v2": _LOW_RANK | {"topk_group": None, "n_group": None, "topk_method": "greedy"},
    "deepseek_v3": _LOW_RANK | {"n_group": 1, "topk_group": 1},
    "nystromformer": {"segment_means_seq_len": 64, "num_landmarks": 16},
    "longt5": {"local_radius": 3, "decoder_start_token_id": 0},
    "umt5": {"decoder_start_token_id": 0},
    "plbart": {"decoder_start_token_id": 1},
    "switch_transformers": {"decoder_start_token_id": 0},
    "funnel": {"block_sizes": [2, 2], "num_decoder_layers": 1},
    "big_bird": {"attention_type": "original_full"},
    "wav2vec2": {"conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}
    | {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
}

FAMILIES = (
    "albert bert bloom blenderbot blenderbot-small codegen cohere deberta deberta-v2 distilbert electra falcon fsmt gemma "
    "gemma2 gemma3_text gpt2 gpt_neo gpt_neox gptj granite led llama longformer longt5 m2m_100 marian mbart bart mistral "
    "mixtral modernbert mpnet mt5 olmo olmo2 opt pegasus persimmon phi phi3 plbart qwen2 qwen3 roberta smollm3 stablelm "
    "starcoder2 t5 umt5 xglm xlm-roberta xlnet big_bird camembert roformer gpt_bigcode glm biogpt esm ernie mvp vit "
    "deit beit dinov2 whisper wav2vec2"
).split()
"""By the `model_type` of config.json."""

_PIXELS = ("vit", "deit", "beit", "dinov2")


def measure() -> Iterator[Row]:
    """One row: how many architectures agree, and why the others do not."""
    off = {name: compared(name) for name in FAMILIES}
    agree = [name for name, why in off.items() if not why]
    others = "; ".join(f"{name}: {why}" for name, why in off.items() if why)
    yield Row(f"transformers, {len(FAMILIES)} architectures", float("nan"), None, f"{len(agree)} agree within 1e-5. {others}")


def compared(name: str) -> str:
    """Why the recorded maps of an architecture are not the library's; empty: they are, within 1e-5."""
    try:
        fast, eager = _made(name, "sdpa"), _made(name, "eager")
        inputs = _inputs(name, bool(getattr(eager.config, "is_encoder_decoder", False)))
        with torch.no_grad(), headlight.record(fast) as recording:
            fast(**inputs)
        with torch.no_grad():
            expected = _maps(eager(**inputs, output_attentions=True))
    except Exception as error:  # of the library: the row tells it
        return f"{type(error).__name__}: {' '.join(str(error).split()[:12])}"
    return next((why for stack, maps in expected.items() if (why := _off(_sites(recording, stack), maps))), "")


def _made(name: str, attention: str) -> nn.Module:
    """A small network with fused kernels where the library has them for it, or with its eager attention."""
    from transformers import AutoModel

    config = small_config(name)
    torch.manual_seed(0)
    try:
        network: nn.Module = AutoModel.from_config(config, attn_implementation=attention).eval()
    except ValueError:  # it has no fused attention
        torch.manual_seed(0)
        network = AutoModel.from_config(small_config(name), attn_implementation="eager").eval()
    return network


def small_config(name: str) -> Any:
    """The library's config of a small network, with those settings of SIZES that the architecture has, and its own of OWN."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    kind, known = CONFIG_MAPPING[name], {}
    plain = kind()
    for setting, value in (SIZES | OWN.get(name, {})).items():
        if setting in OWN.get(name, {}) or hasattr(plain, setting):
            with suppress(Exception):  # some are computed from others
                setattr(plain, setting, value)
                known[setting] = value
    return kind(**known)


def _inputs(name: str, both: bool) -> dict[str, Tensor]:
    ids, generator = torch.arange(3, 19, 2)[None], torch.Generator().manual_seed(1)
    decoder = {"decoder_input_ids": ids[:, :5]} if both else {}
    if name in _PIXELS:
        return {"pixel_values": torch.randn(1, 3, 32, 32, generator=generator)}
    if name == "wav2vec2":
        return {"input_values": torch.randn(1, 400, generator=generator)}
    if name == "whisper":
        return {"input_features": torch.randn(1, 8, 24, generator=generator)} | decoder
    return {"input_ids": ids} | decoder


def _maps(out: Any) -> dict[str, list[Tensor]]:
    """The library's maps by stack, `cross` beside them."""
    if getattr(out, "encoder_attentions", None) is None:
        return {"": list(out.attentions)}
    names = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
    return {stack: list(getattr(out, name)) for stack, name in names.items()}


def _sites(recording: headlight.Recording, stack: str) -> list[headlight.Site]:
    if stack == "cross":
        return [site for site in recording.sites if site.kind == "cross"]
    return [site for site in recording.sites if not stack or (site.stack == stack and site.kind != "cross")]


def _off(sites: list[headlight.Site], maps: list[Tensor]) -> str:
    if len(sites) != len(maps):
        return f"{len(sites)} of {len(maps)} sites"
    for site, own in zip(sites, maps, strict=True):
        wanted = own[0] if own.dim() == 4 else own.flatten(0, -4)[0]  # the first block of a blocked map
        written = torch.from_numpy(site.written())
        if written.shape != wanted.shape:
            return f"{site.module} is {list(written.shape)}, not {list(wanted.shape)}"
        if not torch.allclose(written, wanted, rtol=0, atol=1e-5):
            return f"{site.module} differs by {float((written - wanted).abs().max()):.0e}"
    return ""
