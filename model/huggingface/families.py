"""Families: module names of layers, attention, output projections and positions in each architecture of the transformers library.

Other architectures are refused: their recorded attention was never compared with the library's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.spec.external import ForeignPositions

Kind: TypeAlias = Literal["encoder", "decoder", "both"]


@dataclass(frozen=True)
class Family:
    """Module names of an architecture's parts. {stack} means `encoder` or `decoder`.

    Attributes:
        kind: its stacks.
        layers: the list of layers.
        attention: the self-attention in a layer.
        cross: the cross-attention in a layer.
        output: the output projection, relative to the attention module.
        positions: the kind of positional encoding.
        table: the position table; empty: none.
        offset: rows at the start of the table that are not positions; None: up to the padding row.
        scale: the factor of a score, where queries are scaled before; None: the attention module says it.
    """

    kind: Kind
    layers: str
    attention: str
    output: str
    positions: ForeignPositions
    table: str = ""
    cross: str = ""
    offset: int | None = 0
    scale: float | None = None

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks, in the order in which they run."""
        return ("encoder", "decoder") if self.kind == "both" else (self.kind,)


def _reader(offset: int | None = 0) -> Family:
    return Family(
        "encoder",
        layers="encoder.layer",
        attention="attention.self",
        output="../output.dense",
        positions="learned",
        table="embeddings.position_embeddings",
        offset=offset,
    )


def _translator(positions: ForeignPositions, offset: int | None = 0) -> Family:
    return Family(
        "both",
        layers="model.{stack}.layers",
        attention="self_attn",
        cross="encoder_attn",
        output="out_proj",
        positions=positions,
        table="model.{stack}.embed_positions",
        offset=offset,
    )


_ROTATING = Family("decoder", layers="model.layers", attention="self_attn", output="o_proj", positions="rotary")
_RELATIVE = Family(
    "both",
    layers="{stack}.block",
    attention="layer.0.SelfAttention",
    cross="layer.1.EncDecAttention",
    output="o",
    positions="relative",
)

FAMILIES: Mapping[str, Family] = {
    "bert": _reader(),
    "electra": _reader(),
    "roberta": _reader(None),
    "xlm-roberta": _reader(None),
    "camembert": _reader(None),
    "distilbert": Family(
        "encoder",
        layers="transformer.layer",
        attention="attention",
        output="out_lin",
        positions="learned",
        table="embeddings.position_embeddings",
    ),
    "gpt2": Family(
        "decoder", layers="transformer.h", attention="attn", output="c_proj", positions="learned", table="transformer.wpe"
    ),
    "opt": Family(
        "decoder",
        layers="model.decoder.layers",
        attention="self_attn",
        output="out_proj",
        positions="learned",
        table="model.decoder.embed_positions",
        offset=2,
        scale=1.0,
    ),
    "gpt_neox": Family("decoder", layers="gpt_neox.layers", attention="attention", output="dense", positions="rotary"),
    "llama": _ROTATING,
    "mistral": _ROTATING,
    "qwen2": _ROTATING,
    "qwen3": _ROTATING,
    "gemma": _ROTATING,
    "t5": _RELATIVE,
    "mt5": _RELATIVE,
    "marian": _translator("sinusoidal-halves"),
    "pegasus": _translator("sinusoidal-halves"),
    "m2m_100": _translator("sinusoidal-halves", None),
    "bart": _translator("learned", 2),
    "mbart": _translator("learned", 2),
}
"""By the `model_type` of config.json."""
