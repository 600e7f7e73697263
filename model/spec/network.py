"""ModelSpec: frozen choices that describe a network, and nothing else. `model/transformer/build.py` alone acts on them.

A spec is a tree of small values, one for each part, so that a choice stands where it belongs: encoder and decoder may differ in
everything. `spec.json` beside a checkpoint's weights is the same tree in JSON. This module needs no torch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

from model.errors import BadSetting
from model.spec.validation import Between, read

Positions: TypeAlias = Literal["learned", "sinusoidal", "sinusoidal-column", "stored", "none"]
DecodePositions: TypeAlias = Literal["running", "zero"]
NormOrder: TypeAlias = Literal["post", "pre"]
Norm: TypeAlias = Literal["standard", "bias-free", "unbiased"]
Activation: TypeAlias = Literal["relu", "gelu", "gelu-tanh"]
EmbedScale: TypeAlias = Literal["sqrt", "none"]
EmptyRows: TypeAlias = Literal["uniform", "zeros"]
Projections: TypeAlias = Literal["separate", "shared"]
Wiring: TypeAlias = Literal["standard", "attention", "memory"]
OutputSoftmax: TypeAlias = Literal["vocab", "batch"]

Few: TypeAlias = Annotated[int, Between(1, 1000)]
Depth: TypeAlias = Annotated[int, Between(0, 1000)]
Width: TypeAlias = Annotated[int, Between(1, 2**16)]
Reach: TypeAlias = Annotated[int, Between(1, 2**17)]
Many: TypeAlias = Annotated[int, Between(0, 2**24)]
Id: TypeAlias = Annotated[int, Between(0, 2**24 - 1)]
Share: TypeAlias = Annotated[float, Between(0.0, 0.99)]


@dataclass(frozen=True)
class AttentionSpec:
    """Multi-head attention.

    Attributes:
        heads: how many heads.
        head_dim: width of a head's queries, keys and values; free of d_model / heads.
        bias: whether the four projections add a bias; of shared ones the output's alone can.
        projections: one matrix each for queries, keys and values, cut into heads afterwards (`separate`); or the stream is cut
            first, and each piece goes through the same [head_dim, head_dim] matrix (`shared`).
        empty_rows: what a query sees that may look at no key: every key alike (`uniform`), or nothing (`zeros`).
    """

    heads: Few
    head_dim: Width
    bias: bool = True
    projections: Projections = "separate"
    empty_rows: EmptyRows = "uniform"


@dataclass(frozen=True)
class StackSpec:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: ids the embedding knows; 0: it has none, the input is float features.
        d_model: width of the residual stream.
        layers: how many layers the stack holds; an encoder of none hands its input on.
        passes: how often the whole stack is applied, with the same weights.
        attention: every attention sublayer of the stack.
        hidden: inner width of the feed-forward sublayer; 0 where there is none.
        activation: between its two linear maps.
        bias: whether those two add a bias.
        norm_order: LayerNorm after the residual sum (`post`) or before the sublayer (`pre`).
        norm: LayerNorm with gain and bias (`standard`), without a bias, or with the deviation of a sample, n - 1 (`unbiased`).
        final_norm: one more LayerNorm after the last layer.
        positions: how positions are told apart.
        max_positions: the longest input; a sinusoid needs none, then it bounds what is asked of the machine.
        embed_scale: embeddings are multiplied by the square root of d_model (`sqrt`), or not.
        wiring: what a layer is made of: attention and feed-forward network (`standard`), attention and nothing else (`attention`),
            or the encoder's output attending to itself inside each decoder layer (`memory`).
        causal: of a decoder: no position looks at a later one.
        decode_positions: of a decoder: a token written in step t gets position t (`running`), or each one position 0 (`zero`).
    """

    vocab: Many
    d_model: Width
    layers: Depth
    attention: AttentionSpec
    hidden: Many
    passes: Few = 1
    activation: Activation = "relu"
    bias: bool = True
    norm_order: NormOrder = "post"
    norm: Norm = "standard"
    final_norm: bool = False
    positions: Positions = "learned"
    max_positions: Reach = 100
    embed_scale: EmbedScale = "sqrt"
    wiring: Wiring = "standard"
    causal: bool = True
    decode_positions: DecodePositions = "running"

    def __post_init__(self) -> None:
        """Refuses a feed-forward network of no width.

        Raises:
            BadSetting: `hidden` is 0 where layers have such a network.
        """
        if not self.hidden and self.wiring != "attention":
            raise BadSetting(name="hidden", found=0, allowed='above 0 where the wiring is not "attention"')


@dataclass(frozen=True)
class OutputSpec:
    """The map from the last state to the vocabulary.

    Attributes:
        tied: use the decoder's token embedding as its weight.
        bias: whether it adds one.
        softmax: what makes probabilities of the logits: a softmax over the vocabulary, or over the batch (`batch`; of one example
            alone each probability is 1).
    """

    tied: bool = False
    bias: bool = True
    softmax: OutputSoftmax = "vocab"


@dataclass(frozen=True)
class ModelSpec:
    """A whole network.

    Attributes:
        decoder: the stack that predicts; None: an encoder alone. Without an encoder it has no cross-attention: a causal language
            model.
        encoder: the stack that reads the source; None for a language model.
        output: the map to the vocabulary; None: the last states are all there is.
        dropout: share of values dropped in training, everywhere alike.
        pad_id, start_id, end_id, unk_id: the ids that stand for no text; None: there is none, or nobody told.
        source_pad_id: the source's padding where it differs from pad_id.
        suppressed: ids that are never written when decoding (their probabilities are still shown).
    """

    decoder: StackSpec | None
    encoder: StackSpec | None = None
    output: OutputSpec | None = OutputSpec()
    dropout: Share = 0.1
    pad_id: Id | None = 1
    start_id: Id | None = 2
    end_id: Id | None = 3
    unk_id: Id | None = 0
    source_pad_id: Id | None = None
    suppressed: tuple[Id, ...] = ()

    @property
    def stacks(self) -> dict[str, StackSpec]:
        """The stacks that there are, by name, in the order in which they run."""
        both = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in both.items() if stack is not None}

    @property
    def forced(self) -> tuple[int, ...]:
        """Ids that a target begins with, behind its start: none."""
        return ()

    @property
    def writer(self) -> StackSpec:
        """The stack that the ids stand for: the decoder, or of an encoder alone the encoder."""
        return list(self.stacks.values())[-1]

    def __post_init__(self) -> None:
        """Refuses what no network can be, and ids that the vocabulary does not have.

        Raises:
            BadSetting: no stack at all, an output layer without a vocabulary, or such an id.
        """
        if not self.stacks:
            raise BadSetting(name="spec", found="no stack", allowed="made of an encoder, a decoder or both")
        if self.output is not None and (self.decoder is None or not self.decoder.vocab):
            raise BadSetting(name="output", found="an output layer", allowed="null where no decoder has a vocabulary")
        ids = {name: getattr(self, name) for name in ("pad_id", "start_id", "end_id", "unk_id")}
        ids |= {f"suppressed[{i}]": id_ for i, id_ in enumerate(self.suppressed)}
        _refuse_foreign(ids, self.writer)
        _refuse_foreign({"source_pad_id": self.source_pad_id}, self.encoder or self.writer)


def _refuse_foreign(ids: Mapping[str, int | None], stack: StackSpec) -> None:
    for name, id_ in ids.items():
        if stack.vocab and id_ is not None and id_ >= stack.vocab:
            raise BadSetting(name=name, found=id_, allowed=f"below the vocabulary's {stack.vocab:,} ids")


def to_json(spec: ModelSpec) -> dict[str, Any]:
    """The spec as plain JSON values."""
    return asdict(spec)


def from_json(data: Mapping[str, Any]) -> ModelSpec:
    """The spec in JSON values, every field checked.

    Raises:
        BadSetting: an unknown field, a missing one, a value outside what is allowed, or an id that the vocabulary does not have.
    """
    return read(ModelSpec, data, "spec")
