"""Whether the library's class of an architecture computes what a folder's weights were trained for.

A config.json can be edited by hand: with the `model_type` of another architecture many weights fit by name and shape, and give
other attention. Three signs show it: unused tensors, settings that the class does not read, and the class that saved the folder.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import Phrase, phrase
from model.huggingface import library
from model.huggingface.families import TOWERS
from model.huggingface.folder import Folder, Weights
from model.inspection.leftovers import BEHIND, shortened, what_is
from model.inspection.wrappers import Reading, readings

_HEADS = re.compile(
    r"(cls|classifier|classification_head|lm_head|pooler|qa_outputs|vocab_transform|vocab_layer_norm|vocab_projector|pre_classifier"
    r"|discriminator_predictions|generator_predictions|generator_lm_head|score|sequence_summary|summary|multiple_choice_head|linear"
    r"|v_head|logits_proj)\..*"
)
"""Heads that the library's classes and trainers add after a network."""

_BESIDE = phrase("the network of texts, or what compares its result with that of the image")

_UNREAD = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""Stored with the first T5 models; no class of the library reads it."""

_POOLING = re.compile(r"(vision_model\.)?head\.(probe|attention\.|layernorm\.|mlp\.).*")
"""The layer of SigLIP that pools its patches by attention, after the last states (`model.huggingface.images.without_pooling`)."""

_TEXTS = re.compile(r"(text_model|text_projection|visual_projection)\..*|logit_(scale|bias)")
"""The network of texts of an architecture of TOWERS, and what compares a text with an image."""

_ARITHMETIC = re.compile(
    r".*softcap.*|.*_multipliers?|.*alibi.*|query_pre_attn_scalar|logits?_scal(e|ing)|residual_scale|scale_(emb|depth|attn|logits).*"
    r"|.*qk_?(layer_?)?norm.*|.*sliding_window.*|attention_window|window_size|layer_types|attention_(types|layers|chunk_size)"
    r"|no_rope_layer.*|rope_.*|rotary_.*|partial_rotary_.*|position_embedding_type|relative_attention|pos_att_type|.*experts.*|moe_.*"
    r"|clip_qkv|q_lora_rank|kv_lora_rank|parallel_(attn|block)|use_parallel_residual|.*residual_connection_post_layernorm"
    r"|attn_temperature_tuning|mup_.*|.*attention_sinks?|differential_.*|mamba_.*|hybrid_.*|conv_.*"
)
"""Names of settings that change the arithmetic but not the tensors."""

_ROTARY = re.compile(r"rope_(theta|scaling|parameters)|rotary_(pct|emb_base)")
"""Settings of rotary positions, which the library converts itself."""

_SAME_CODE = ({"t5", "mt5"}, {"roberta", "xlm-roberta", "camembert"})
"""Architectures whose classes compute the same."""


def check_settings(folder: Folder, config: Any) -> None:
    """Refuses a folder whose settings describe another network than the one that would run.

    Raises:
        UnsupportedModel: they do.
    """
    if folder.config.get("pruned_heads"):
        reason = phrase(
            "heads were pruned from its layers (pruned_heads in its config.json), and transformers {version} builds no such "
            "network; version 4 does",
            version=library.VERSION,
        )
        raise folder.unsupported(reason)
    # the class that saved a folder belongs to an architecture: it must be the one that model_type names
    for name in folder.config.get("architectures") or ():
        kinds = library.model_types(name) if isinstance(name, str) else set()
        if kinds and not kinds & next((alike for alike in _SAME_CODE if folder.model_type in alike), {folder.model_type}):
            owners = ", ".join(sorted(kinds))
            reason = phrase(
                "its config.json contradicts itself: model_type is {model_type}, but {name}, which saved it, belongs to {own}",
                model_type=folder.model_type,
                name=name,
                own=owners,
            )
            raise folder.unsupported(reason)
    if unread := list(_unread(folder, config)):
        reason = phrase(
            "its config.json sets {settings}: this changes what is computed, and {model_type} ignores it",
            settings=shortened(unread),
            model_type=folder.model_type,
        )
        raise folder.unsupported(reason)


def _unread(folder: Folder, config: Any) -> Iterator[str]:
    """Settings that the library's class ignores and that would change the arithmetic."""
    known = {*type(config)().to_dict(), *type(config).attribute_map}
    for name, value in folder.config.items():
        # the library converts settings of rotary positions from their older names itself
        rotates = "rope_parameters" in known if folder.family is None else folder.family.positions == "rotary"
        translated = rotates and _ROTARY.fullmatch(name)
        if name not in known and not translated and _ARITHMETIC.fullmatch(name) and not _is_neutral(name, value):
            yield f"{name}={value}" if isinstance(value, str | int | float) else name


def _is_neutral(name: str, value: Any) -> bool:
    """Whether a setting has no effect: off, no window, default positions, a factor of 1 (except of scores)."""
    return not value or value == "absolute" or (value is not True and value == 1 and name != "attention_multiplier")


def without_wrappers(weights: Weights, network: nn.Module) -> Weights:
    """The weights with the names that a network has, without those of wrappers.

    They keep their names unless others fill more of the network: so no tensor is renamed that the library finds by itself.
    """
    state, prefix = network.state_dict().keys(), f"{network.base_model_prefix}."

    def filled(reading: Reading) -> int:
        names = {alias for name in reading.names for alias in (name, name.removeprefix(prefix), prefix + name)}
        return len(state & names)

    best = max(readings(weights.shapes, any_first=True), key=filled)  # the first of equals
    return weights.read_as(best) if best.removed else weights


def left_over(folder: Folder, network: nn.Module, unexpected: set[str], weights: Mapping[str, Tensor]) -> dict[str, Phrase]:
    """Descriptions of the tensors that the network does not use, by name in the file.

    Args:
        network: the library's network with its weights.
        unexpected: names that the library reports; it omits some that it knows.

    Raises:
        UnsupportedModel: one of them would have changed the result.
    """
    prefix = f"{network.base_model_prefix}."
    ignored = library.ignored(network)
    state = network.state_dict().keys()
    descriptions: dict[str, Phrase | None] = {}
    for name in weights:
        bare = name.removeprefix(prefix)
        taken = not {name, bare, prefix + name}.isdisjoint(state)
        # the library does not report all that it leaves out: what it ignores silently is looked at, too
        if not {name, bare} & unexpected and (taken or not ignored.search(name)):
            continue
        behind = _HEADS.fullmatch(bare) or (getattr(network.config, "vision_use_head", True) is False and _POOLING.fullmatch(bare))
        beside = folder.model_type in TOWERS and _TEXTS.fullmatch(bare)
        descriptions[name] = BEHIND if behind else _BESIDE if beside else _what_is(bare, weights[name], network)
    if wrong := [name for name, what in descriptions.items() if not what]:
        names, kind = shortened(wrong), folder.model_type
        reason = phrase("its weights contain {names}, which have no place in {kind}", names=names, kind=kind)
        if len(wrong) == 1:
            reason = phrase("its weights contain {names}, which has no place in {kind}", names=names, kind=kind)
        raise folder.unsupported(reason)
    return {name: what for name, what in descriptions.items() if what}


def _what_is(name: str, tensor: Tensor, network: nn.Module) -> Phrase | None:
    """Description of an unused tensor: known to be harmless, or a table that the network computes itself."""
    if name == _UNREAD:
        return phrase("used by no class of the library")
    return what_is(name, tensor) or (phrase("computed by the network itself") if _is_computed(name, tensor, network) else None)


def _is_computed(name: str, tensor: Tensor, network: nn.Module) -> bool:
    """Whether the network computes the same numbers: rotary caches, sinusoidal tables. Old files have a copy in each layer."""
    last = ".".join(name.split(".")[-2:])
    # by its last two names: old files have one table for all layers, or a copy in each
    same = [buffer for key, buffer in network.named_buffers() if key.endswith(last) and buffer.shape == tensor.shape]
    return any(torch.allclose(buffer.float(), tensor.float(), rtol=1e-2, atol=1e-4) for buffer in same)
