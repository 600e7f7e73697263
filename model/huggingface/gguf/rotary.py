"""Scaling of rotary positions: for contexts longer than those of the training, waves are stretched."""

import math
from typing import Any

import torch
from torch import Tensor

from model.errors import UnsupportedGguf, phrase
from model.huggingface.gguf.settings import Settings

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
