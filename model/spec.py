"""ModelSpec: frozen choices that describe a network, and nothing else. `model/transformer/build.py` alone acts on them.

A spec is a tree of small values, one for each part, so that a choice stands where it belongs: encoder and decoder may differ in
everything. `spec.json` beside a checkpoint's weights is the same tree in JSON. This module needs no torch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

from model.checked import Between, read
from model.errors import BadSetting

Positions: TypeAlias = Literal["learned", "sinusoidal", "none"]
NormOrder: TypeAlias = Literal["post", "pre"]
Activation: TypeAlias = Literal["relu", "gelu"]
EmbedScale: TypeAlias = Literal["sqrt", "none"]
EmptyRows: TypeAlias = Literal["uniform", "zeros"]

Few: TypeAlias = Annotated[int, Between(1, 1000)]
Width: TypeAlias = Annotated[int, Between(1, 2**16)]
Reach: TypeAlias = Annotated[int, Between(1, 2**17)]
Many: TypeAlias = Annotated[int, Between(1, 2**24)]
Id: TypeAlias = Annotated[int, Between(0, 2**24 - 1)]
Share: TypeAlias = Annotated[float, Between(0.0, 0.99)]


@dataclass(frozen=True)
class AttentionSpec:
    """Multi-head attention.

    Attributes:
        heads: how many heads.
        head_dim: width of a head's queries, keys and values; free of d_model / heads.
        bias: whether the four projections add a bias.
        empty_rows: what a query sees that may look at no key: every key alike (`uniform`), or nothing (`zeros`).
    """

    heads: Few
    head_dim: Width
    bias: bool = True
    empty_rows: EmptyRows = "uniform"


@dataclass(frozen=True)
class StackSpec:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: ids the embedding knows.
        d_model: width of the residual stream.
        layers: how many layers the stack holds.
        passes: how often the whole stack is applied, with the same weights.
        attention: every attention sublayer of the stack.
        hidden: inner width of the feed-forward sublayer.
        activation: between its two linear maps.
        bias: whether those two add a bias.
        norm_order: LayerNorm after the residual sum (`post`) or before the sublayer (`pre`).
        final_norm: one more LayerNorm after the last layer.
        positions: how positions are told apart.
        max_positions: the longest input; a sinusoid needs none, then it bounds what is asked of the machine.
        embed_scale: embeddings are multiplied by the square root of d_model (`sqrt`), or not.
    """

    vocab: Many
    d_model: Width
    layers: Few
    attention: AttentionSpec
    hidden: Many
    passes: Few = 1
    activation: Activation = "relu"
    bias: bool = True
    norm_order: NormOrder = "post"
    final_norm: bool = False
    positions: Positions = "learned"
    max_positions: Reach = 100
    embed_scale: EmbedScale = "sqrt"


@dataclass(frozen=True)
class OutputSpec:
    """The map from the last state to the vocabulary.

    Attributes:
        tied: use the decoder's token embedding as its weight.
        bias: whether it adds one.
    """

    tied: bool = False
    bias: bool = True


@dataclass(frozen=True)
class ModelSpec:
    """A whole network.

    Attributes:
        decoder: the stack that predicts. Without an encoder it has no cross-attention: a causal language model.
        encoder: the stack that reads the source; None for a language model.
        output: the map to the vocabulary.
        dropout: share of values dropped in training, everywhere alike.
        pad_id, start_id, end_id, unk_id: the ids that stand for no text.
        suppressed: ids that are never written when decoding (their probabilities are still shown).
    """

    decoder: StackSpec
    encoder: StackSpec | None = None
    output: OutputSpec = OutputSpec()
    dropout: Share = 0.1
    pad_id: Id = 1
    start_id: Id = 2
    end_id: Id = 3
    unk_id: Id = 0
    suppressed: tuple[Id, ...] = ()

    def __post_init__(self) -> None:
        """Refuses ids that the decoder's vocabulary does not have.

        Raises:
            BadSetting: such an id.
        """
        ids = {name: getattr(self, name) for name in ("pad_id", "start_id", "end_id", "unk_id")}
        ids |= {f"suppressed[{i}]": id_ for i, id_ in enumerate(self.suppressed)}
        for name, id_ in ids.items():
            if id_ >= self.decoder.vocab:
                raise BadSetting(name=name, found=id_, allowed=f"below the decoder's vocab of {self.decoder.vocab:,}")


def to_json(spec: ModelSpec) -> dict[str, Any]:
    """The spec as plain JSON values."""
    return asdict(spec)


def from_json(data: Mapping[str, Any]) -> ModelSpec:
    """The spec in JSON values, every field checked.

    Raises:
        BadSetting: an unknown field, a missing one, a value outside what is allowed, or an id that the vocabulary does not have.
    """
    return read(ModelSpec, data, "spec")
