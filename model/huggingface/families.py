"""Families: where each architecture of the transformers library keeps its layers, attention, output projections and positions.

An architecture that is not listed is refused: whether its maps are all there was never compared with the library's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.spec.external import ForeignPositions

Kind: TypeAlias = Literal["encoder", "decoder", "both"]


@dataclass(frozen=True)
class Family:
    """Where the parts of an architecture are, as module names. {stack} stands for `encoder` or `decoder`.

    Attributes:
        kind: which stacks there are.
        layers: the list of layers.
        attention: in a layer, the self-attention.
        cross: in a layer, the cross-attention.
        output: from an attention sublayer's name on, its output projection.
        positions: how positions are told apart.
        table: the table of positions; empty where there is none.
        offset: rows at the table's beginning that are no positions; None: the padding's row, and those before it.
    """

    kind: Kind
    layers: str
    attention: str
    output: str
    positions: ForeignPositions
    table: str = ""
    cross: str = ""
    offset: int | None = 0

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
