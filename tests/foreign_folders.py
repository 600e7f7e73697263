"""Folders of the transformers library, small and with random weights, each beside the numbers that the library itself hands out."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model.checkpoints import loader
from model.huggingface import library
from model.huggingface.families import FAMILIES
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace
from tests import folders
from tests.foreign_files import Case
from tests.recorded_folders import CASES

CPU = torch.device("cpu")
SOURCE, TARGET = (4, 6, 5, 8, 9), (2, 7, 10, 11)
DECODER = {
    "vocab_size": 40,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 6,
    "intermediate_size": 30,
    "max_position_embeddings": 20,
    "pad_token_id": 0,
}


def _runs(family: str, name: str = "", **tensors: Tensor) -> Case:
    """A folder of a family that is run: its maps and its logits, or last states, are compared."""

    def measure(folder: Path) -> float:
        own: Any = folders.save(folder, family)
        _add(folder, tensors)
        kind = FAMILIES[family].kind
        target = TARGET if kind == "both" else None
        request = RunRequest("tiny", SOURCE, target, Decoding(max_length=0), keep=("hidden",))
        trace = run(loader.load(folder, {}, CPU), request, CPU, "CPU")
        decoder = {"decoder_input_ids": torch.tensor([TARGET])} if target else {}
        with torch.inference_mode():
            wanted = own(torch.tensor([SOURCE]), output_attentions=True, output_hidden_states=True, **decoder)
        return max(_differences(trace, kind, wanted))

    return Case(name or f"`{family}`", measure)


def _differences(trace: Trace, kind: str, wanted: Any) -> Iterable[float]:
    if kind == "both":
        maps = (
            *wanted.encoder_attentions,
            *(m for pair in zip(wanted.decoder_attentions, wanted.cross_attentions, strict=True) for m in pair),
        )
    else:
        maps = wanted.attentions
    assert len(maps) == len(trace.attention)
    last = wanted.logits if trace.logits is not None else wanted.last_hidden_state
    ends = trace.logits if trace.logits is not None else list(trace.hidden.values())[-1]
    yield float(np.abs(ends - last[0].numpy()).max())
    for found, own in zip(trace.attention.values(), maps, strict=True):
        yield float(np.abs(found.weights - own[0].numpy()).max())


def _add(folder: Path, tensors: dict[str, Tensor]) -> None:
    if tensors:
        path = folder / "model.safetensors"
        save_file(load_file(path) | {name: tensor.contiguous() for name, tensor in tensors.items()}, path)


def _refused(name: str, family: str, settings: dict[str, Any] | None = None, **tensors: Tensor) -> Case:
    """A folder of a family that is run, with settings or tensors that it cannot have."""

    def measure(folder: Path) -> float:
        folders.save(folder, family)
        _add(folder, tensors)
        folders.change_config(folder, **(settings or {}))
        loader.load(folder, {}, CPU)
        raise AssertionError(f"{name} was opened")

    return Case(name, measure)


def _edited(own: str, kind: str, settings: dict[str, Any], keeps: bool) -> Case:
    """A folder of another architecture, whose model_type was edited to one that is run; its saving class it `keeps` or not."""
    name = f"`{own}` edited to `{kind}`" + ("" if keeps else ", the class that saved it taken away")

    def measure(folder: Path) -> float:
        config = library.config_of(own, DECODER | settings)
        torch.manual_seed(7)
        library.CLASSES["decoder"]._model_mapping[type(config)]._from_config(config).save_pretrained(folder)
        folders.change_config(folder, model_type=kind, **({} if keeps else {"architectures": None}))
        loader.load(folder, {}, CPU)
        raise AssertionError(f"{name} was opened")

    return Case(name, measure)


_WAVES = torch.arange(0, 8, 2) / 8
FACTORS = {"attention_multiplier": 0.3, "residual_multiplier": 0.4, "embedding_multiplier": 3.0, "logits_scaling": 2.0}

FOLDERS: tuple[Case, ...] = (
    *(_runs(family) for family in FAMILIES),
    _runs("bert", "`bert` with a head for masked words", **{"cls.predictions.bias": torch.zeros(40)}),
    _runs("gpt2", "`gpt2` with causal masks", **{"transformer.h.0.attn.bias": torch.ones(1, 1, 20, 20).tril()}),
    _runs("llama", "`llama` with rotary waves", **{"model.layers.0.self_attn.rotary_emb.inv_freq": 10000.0**-_WAVES}),
    *CASES,
    _edited("gemma2", "gemma", {}, keeps=True),
    _edited("gemma2", "gemma", {}, keeps=False),
    _edited("granite", "llama", FACTORS, keeps=True),
    _edited("granite", "llama", FACTORS, keeps=False),
    _refused("soft caps in `llama`", "llama", {"attn_logit_softcapping": 50.0}),
    _refused("quantized weights", "bert", {"quantization_config": {"quant_method": "gptq"}}),
    _refused("an encoder that looks back only", "bert", {"is_decoder": True}),
    _refused("an adapter in `bert`", "bert", None, **{"encoder.layer.0.adapter.weight": torch.ones(3, 24)}),
    _refused("LoRA in `llama`", "llama", None, **{"model.layers.0.self_attn.q_proj.lora_A.weight": torch.ones(2, 24)}),
    _refused(
        "learned distances in `bert`",
        "bert",
        None,
        **{"encoder.layer.0.attention.self.distance_embedding.weight": torch.ones(39, 8)},
    ),
    _refused("other rotary waves in `llama`", "llama", None, **{"model.layers.0.self_attn.rotary_emb.inv_freq": 500.0**-_WAVES}),
    _refused(
        "masks of a window in `gpt2`", "gpt2", None, **{"transformer.h.0.attn.bias": torch.ones(1, 1, 20, 20).tril().triu(-3)}
    ),
)
