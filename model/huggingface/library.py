"""Wrapper of the transformers library: its classes by architecture, with recorded attention.

Importing this module imports the library, which takes seconds, so import it only to open a folder.
"""

import model.huggingface.offline  # noqa: F401, I001  # comes first: the library must never access the network

import logging
import re
import threading
from collections.abc import Mapping
from functools import cache
from inspect import signature
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
    AutoModelForTextEncoding,
    PreTrainedModel,
)
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.masking_utils import eager_mask
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from model.huggingface.attention import attend
from model.huggingface.families import Kind

VERSION = transformers.__version__
RECORDED = "headlight_eager"
"""Name under which our attention function is registered: the library's eager one, recorded."""

EAGER = "eager"
"""The library's own eager attention."""

CLASSES: Mapping[Kind, Any] = {"encoder": AutoModel, "decoder": AutoModelForCausalLM, "both": AutoModelForSeq2SeqLM}
"""The library's class for the networks of each kind; it chooses the architecture by the config."""

CAPTIONERS: Mapping[str, str] = {"vision-encoder-decoder": "VisionEncoderDecoderModel", "blip": "BlipForConditionalGeneration"}
"""Encoders of images whose decoder attends to the patches and writes: the class of each, by architecture."""

_ENCODES = re.compile(r"EncoderModel|ForTokenClassification")
"""Classes of encoder-decoders that have the encoder alone."""

_BUILDING = threading.Lock()
"""Held while the library builds a network: it patches its own functions meanwhile, which is not thread-safe."""

AttentionInterface.register(RECORDED, attend)
AttentionMaskInterface.register(RECORDED, eager_mask)
transformers.utils.logging.set_verbosity(logging.ERROR)
transformers.utils.logging.disable_progress_bar()


def knows(model_type: str) -> bool:
    """Whether this version of the library has an architecture."""
    return model_type in CONFIG_MAPPING


def kind_of(config: Any) -> Kind | None:
    """The stacks of an architecture, by the kinds of classes that the library has for it; None: it has no class here.

    Architectures for masked words are encoders, unless their config says `is_decoder`.
    """
    kind = type(config)
    if has_no_output(config):
        return "encoder"
    # before the next test: captioners are in no table of text-to-text classes
    if CAPTIONERS.get(config.model_type) in (config.architectures or CAPTIONERS.values()):
        return "both"
    if getattr(config, "is_encoder_decoder", False):
        writes = (AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq)
        return "both" if any(kind in auto._model_mapping for auto in writes) else None
    if kind in AutoModelForCausalLM._model_mapping:
        # BERT has a class for both; only `is_decoder` makes it one that writes
        fills_gaps = kind in AutoModelForMaskedLM._model_mapping
        return "encoder" if fills_gaps and not getattr(config, "is_decoder", False) else "decoder"
    return "encoder" if kind in AutoModel._model_mapping else None


def has_no_output(config: Any) -> bool:
    """Whether a network of an architecture that writes was saved by a class without an output layer, as embedding models are.

    An output layer that is tied to the embedding needs no weights of its own, so such a network can write nevertheless.
    """
    saved_by = [name for name in config.architectures or () if isinstance(name, str) and model_types(name)]
    if not saved_by:
        return False
    if type(config) in AutoModelForTextEncoding._model_mapping and all(_ENCODES.search(name) for name in saved_by):
        return True
    writer = AutoModelForCausalLM._model_mapping.get(type(config), None)
    return writer is not None and writer.__name__ not in saved_by and not config.tie_word_embeddings


def config_of(model_type: str, settings: Mapping[str, Any]) -> Any:
    """The library's config of an architecture."""
    return CONFIG_MAPPING[model_type].from_dict(dict(settings))


def outline(kind: Kind, config: Any) -> nn.Module:
    """The network on the meta device: shapes without memory."""
    with _BUILDING, torch.device("meta"):
        network: nn.Module = _class_of(kind, config)(config, **_options(kind, config))
    return network


def filled(
    kind: Kind, config: Any, weights: Mapping[str, Tensor], dtype: torch.dtype, attention: str = RECORDED
) -> tuple[nn.Module, dict[str, Any]]:
    """The network with its weights, with eager attention, and the library's loading report.

    Args:
        dtype: of weights and arithmetic. The library keeps some numbers in float32 where an architecture needs it.
        attention: RECORDED or EAGER: the library's eager attention with our function around it, or by itself.
    """
    with _BUILDING:
        network, report = _class_of(kind, config).from_pretrained(
            None,
            config=config,
            state_dict=dict(weights),
            attn_implementation=attention,
            dtype=dtype,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            local_files_only=True,
            trust_remote_code=False,
            **_options(kind, config),
        )
    return network.eval().requires_grad_(False), report


def has_interface(network: nn.Module) -> bool:
    """Whether the whole network computes its attention by the library's interface; then it does so by our function from now on."""
    # a network may be made of others, each with a config of its own
    parts: Any = [part for part in network.modules() if isinstance(part, PreTrainedModel)]
    if not all(part._can_set_attn_implementation() for part in parts):
        return False
    try:
        network.set_attn_implementation(RECORDED)  # type: ignore[operator]  # untyped library
    except (ValueError, ImportError):
        network.set_attn_implementation(EAGER)  # type: ignore[operator]
        return False
    return all(part.config._attn_implementation == RECORDED for part in parts)


def may_change(model_type: str, settings: Mapping[str, Any]) -> bool:
    """Whether anything in an architecture can be changed: where it computes attention by the library's interface, and in
    captioners, which may write it out (written_out.py).
    """
    config = config_of(model_type, settings)
    kind = kind_of(config)
    return kind is not None and (model_type in CAPTIONERS or bool(_class_of(kind, config)._can_set_attn_implementation()))


def new_past(kind: Kind) -> Any:
    """The library's key-value cache for one decode. No layer drops keys outside its window."""
    return EncoderDecoderCache(DynamicCache(), DynamicCache()) if kind == "both" else DynamicCache()


def class_name(kind: Kind, config: Any) -> str:
    """Name of the library's class of a network."""
    return str(_class_of(kind, config).__name__)


@cache
def _model_types() -> Mapping[str, frozenset[str]]:
    """Architectures by class name of the library."""
    architectures: dict[str, set[str]] = {}
    for table in (value for name, value in vars(modeling_auto).items() if name.endswith("_MAPPING_NAMES")):
        for model_type, classes in table.items():
            for name in (classes,) if isinstance(classes, str) else classes:
                architectures.setdefault(name, set()).add(model_type)
    return {name: frozenset(kinds) for name, kinds in architectures.items()}


def model_types(class_name: str) -> frozenset[str]:
    """Architectures of a class of the library; empty: there is no such class."""
    return _model_types().get(class_name, frozenset())


def ignored(network: nn.Module) -> re.Pattern[str]:
    """Names of tensors that the library ignores silently."""
    patterns: set[str] = set(network._keys_to_ignore_on_load_unexpected or ())  # type: ignore[arg-type]  # untyped library
    return re.compile("|".join(f"({pattern})" for pattern in (*patterns, r"rotary_emb\.inv_freq", r"(^|\.)position_ids$")))


def _class_of(kind: Kind, config: Any) -> Any:
    # the first table that lists this config: text-to-text before speech and images
    autos = [CLASSES[kind], *((AutoModelForSpeechSeq2Seq, AutoModelForImageTextToText) if kind == "both" else ())]
    if kind == "encoder" and has_no_output(config):
        autos.insert(0, AutoModelForTextEncoding)
    auto = next(auto for auto in autos if type(config) in auto._model_mapping)
    chosen = auto._model_mapping[type(config)]
    return chosen[0] if isinstance(chosen, tuple) else chosen


def _options(kind: Kind, config: Any) -> dict[str, bool]:
    """Leaves out an encoder's pooler, which is not shown and missing in many files."""
    takes = signature(_class_of(kind, config)).parameters
    return {"add_pooling_layer": False} if kind == "encoder" and "add_pooling_layer" in takes else {}
