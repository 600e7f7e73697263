"""Families: module names of layers, attention, output projections and positions in each architecture of the transformers library.

Other architectures are refused: their recorded attention was never compared with the library's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from model.requests.external import ForeignPositions

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
        projections: the maps to queries, keys and values, relative to the attention module; one name: one map makes all three.
        norms: the norms of a layer: of its self-attention, of its cross-attention if it has one, of its feed-forward network.
            {last} means the number of a layer's last sublayer.
        feed_forward: the module of a layer whose output the feed-forward network adds to the stream.
        final: the norm after the last layer; empty: none.
        post: whether norms follow the sums, instead of opening the sublayers.
        positions_last: whether the sum of embedding and position enters the first layer as it is.
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
    projections: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")
    norms: tuple[str, ...] = ("input_layernorm", "post_attention_layernorm")
    feed_forward: str = "mlp"
    final: str = ""
    post: bool = False
    positions_last: bool = False

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks, in the order in which they run."""
        return ("encoder", "decoder") if self.kind == "both" else (self.kind,)

    def last(self, stack: str) -> int:
        """The number of the last sublayer of a layer: 2 where it has cross-attention, else 1."""
        return 2 if self.kind == "both" and stack == "decoder" else 1


# BERT and its kin: norms after the sums, one module for queries, keys and values each
def _reader(offset: int | None = 0) -> Family:
    return Family(
        "encoder",
        layers="encoder.layer",
        attention="attention.self",
        output="../output.dense",
        positions="learned",
        table="embeddings.position_embeddings",
        offset=offset,
        projections=("query", "key", "value"),
        norms=("attention.output.LayerNorm", "output.LayerNorm"),
        feed_forward="output.dense",
        post=True,
    )


# BART and its kin; Marian, Pegasus and M2M compute their positions instead of learning them
def _translator(positions: ForeignPositions, offset: int | None = 0, post: bool = False, positions_last: bool = True) -> Family:
    return Family(
        "both",
        layers="model.{stack}.layers",
        attention="self_attn",
        cross="encoder_attn",
        output="out_proj",
        positions=positions,
        table="model.{stack}.embed_positions",
        offset=offset,
        norms=("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
        feed_forward="fc2",
        final="" if post else "model.{stack}.layer_norm",
        post=post,
        positions_last=positions_last,
    )


# Llama and its kin
_ROTATING = Family("decoder", layers="model.layers", attention="self_attn", output="o_proj", positions="rotary", final="model.norm")
# T5 and its kin: a learned number for each distance is added to the scores
_RELATIVE = Family(
    "both",
    layers="{stack}.block",
    attention="layer.0.SelfAttention",
    cross="layer.1.EncDecAttention",
    output="o",
    positions="relative",
    projections=("q", "k", "v"),
    norms=("layer.0.layer_norm", "layer.1.layer_norm", "layer.{last}.layer_norm"),
    feed_forward="layer.{last}.DenseReluDense",
    final="{stack}.final_layer_norm",
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
        projections=("q_lin", "k_lin", "v_lin"),
        norms=("sa_layer_norm", "output_layer_norm"),
        feed_forward="ffn",
        post=True,
    ),
    "gpt2": Family(
        "decoder",
        layers="transformer.h",
        attention="attn",
        output="c_proj",
        positions="learned",
        table="transformer.wpe",
        projections=("c_attn",),
        norms=("ln_1", "ln_2"),
        final="transformer.ln_f",
        positions_last=True,
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
        norms=("self_attn_layer_norm", "final_layer_norm"),
        feed_forward="fc2",
        final="model.decoder.final_layer_norm",
        positions_last=True,
    ),
    "gpt_neox": Family(
        "decoder",
        layers="gpt_neox.layers",
        attention="attention",
        output="dense",
        positions="rotary",
        projections=("query_key_value",),
        final="gpt_neox.final_layer_norm",
    ),
    "llama": _ROTATING,
    "mistral": _ROTATING,
    "qwen2": _ROTATING,
    "qwen3": _ROTATING,
    "gemma": _ROTATING,
    "t5": _RELATIVE,
    "mt5": _RELATIVE,
    "marian": _translator("sinusoidal-halves", post=True),
    "pegasus": _translator("sinusoidal-halves"),
    "m2m_100": _translator("sinusoidal-halves", None),
    "bart": _translator("learned", 2, post=True, positions_last=False),
    "mbart": _translator("learned", 2, positions_last=False),
}
"""By the `model_type` of config.json."""

TOWERS: Mapping[str, str] = {"clip": "CLIPVisionModel", "siglip": "SiglipVisionModel"}
"""Architectures of a network of images and one of texts, which are compared at their ends: the class of the first, which runs."""
