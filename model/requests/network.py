"""ModelSpec: the frozen description of a network, from which `model/transformer/build.py` builds it.

A spec is a tree of small values, one for each part of the network, so encoder and decoder may differ in every choice. `spec.json`
beside a checkpoint's weights is the same tree in JSON. This module needs no torch.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

from model.errors import BadSetting, DoesNotFit, MustNotBeSet, phrase
from model.requests.validation import Between, read

Positions: TypeAlias = Literal[
    "learned", "sinusoidal", "sinusoidal-column", "stored", "none", "learned-from-2", "sinusoidal-from-2",
    "rotary", "rotary-pairs",
]  # fmt: skip
DecodePositions: TypeAlias = Literal["running", "zero"]
"""Where a step of a cached decode begins to count: behind the earlier ones, or at 0 each time."""

NormOrder: TypeAlias = Literal["post", "pre"]
"""Whether the norm comes after the residual sum or before the sublayer."""

Norm: TypeAlias = Literal["standard", "bias-free", "unbiased", "rms"]
Activation: TypeAlias = Literal["relu", "gelu", "gelu-tanh", "silu"]
EmbedScale: TypeAlias = Literal["sqrt", "none"]
"""Factor of embeddings: √d_model, or 1."""

EmptyRows: TypeAlias = Literal["uniform", "zeros"]
"""Weights of a query that may attend to no key: equal, or 0."""

Projections: TypeAlias = Literal["separate", "shared"]
"""Whether each head has matrices of its own, or one small matrix serves all heads."""

Wiring: TypeAlias = Literal["standard", "no-feed-forward", "attention", "memory"]
"""What a layer is made of; `memory` is the layer of reference document 003."""

OutputSoftmax: TypeAlias = Literal["vocab", "batch"]
"""The axis of the output's softmax; over the batch, one example's probabilities are all 1."""

WITHOUT_FEED_FORWARD = ("attention", "no-feed-forward")
"""Wirings whose layers have no feed-forward network."""

ROTARY: tuple[Positions, ...] = ("rotary", "rotary-pairs")
"""Positional encodings that rotate queries and keys of self-attention, and add nothing to the embeddings."""

TABLELESS = ("none", *ROTARY, "relative", "unknown")
"""Positional encodings that are no table of vectors, those of other programs included."""

Few: TypeAlias = Annotated[int, Between(1, 1000)]
Depth: TypeAlias = Annotated[int, Between(0, 1000)]
Width: TypeAlias = Annotated[int, Between(1, 2**16)]
Reach: TypeAlias = Annotated[int, Between(1, 2**17)]
Many: TypeAlias = Annotated[int, Between(0, 2**24)]
Id: TypeAlias = Annotated[int, Between(0, 2**24 - 1)]
Share: TypeAlias = Annotated[float, Between(0.0, 0.99)]
Tiny: TypeAlias = Annotated[float, Between(0.0, 0.1)]
Base: TypeAlias = Annotated[float, Between(2.0, 1e9)]


@dataclass(frozen=True)
class AttentionSpec:
    """Multi-head attention.

    Attributes:
        heads: number of heads.
        head_dim: width of a head's queries, keys and values; it need not be d_model / heads.
        bias: whether the four projections add a bias; with shared projections only the output can.
        projections: one matrix each for queries, keys and values, whose result is cut into heads (`separate`); or the stream is cut
            into heads first, and each piece goes through the same [head_dim, head_dim] matrix (`shared`).
        empty_rows: the weights of a query that may attend to no key: all equal (`uniform`) or all zero (`zeros`).
        key_heads: number of heads of keys and values, each shared by heads / key_heads query heads; None: each has its own.
    """

    heads: Few
    head_dim: Width
    bias: bool = True
    projections: Projections = "separate"
    empty_rows: EmptyRows = "uniform"
    key_heads: Few | None = None

    def __post_init__(self) -> None:
        """Checks that query heads can be divided among key heads.

        Raises:
            BadSetting: `heads` is not a multiple of `key_heads`, or the projections are shared already.
        """
        if self.key_heads is not None and self.heads % self.key_heads:
            raise BadSetting(
                name="key_heads", found=self.key_heads, allowed=phrase("a divisor of the {heads} heads", heads=self.heads)
            )
        if self.key_heads is not None and self.projections == "shared":
            raise BadSetting(name="key_heads", found=self.key_heads, allowed=phrase("null, because projections are “shared”"))


@dataclass(frozen=True)
class StackSpec:
    """An encoder or a decoder, its embedding included.

    Attributes:
        vocab: number of ids in the embedding; 0: there is no embedding, the input is float features.
        d_model: width of the residual stream.
        layers: number of layers in the stack; an encoder with 0 layers returns its embedded input.
        passes: how often the whole stack is applied, with the same weights.
        attention: the attention sublayers of the stack, all alike.
        hidden: inner width of the feed-forward sublayer; 0 where there is none.
        activation: activation function between its two linear maps.
        bias: whether these two linear maps add a bias.
        gated: whether the feed-forward network multiplies its hidden layer by a second map, its gate.
        norm_order: LayerNorm after the residual sum (`post`) or before the sublayer (`pre`).
        norm: LayerNorm with gain and bias (`standard`), without a bias (`bias-free`), or with the sample standard deviation, which
            divides by n - 1 (`unbiased`); or RMSNorm, which subtracts no mean (`rms`).
        final_norm: whether there is one more LayerNorm after the last layer.
        positions: the positional encoding; those of fairseq count from 2 (`-from-2`), since 0 and 1 are a start and padding there.
            Rotary ones pair a column with the one half a head away (`rotary`) or with its neighbor (`rotary-pairs`).
        max_positions: length of the longest input; sinusoids could go further, so there it only keeps runs small enough.
        embed_scale: whether embeddings are multiplied by the square root of d_model (`sqrt`).
        wiring: the parts of a layer: attention and feed-forward network (`standard`), attention inside its residual connection
            (`no-feed-forward`), attention and nothing else (`attention`), or decoder layers in which the encoder's output attends
            to itself (`memory`).
        causal: in a decoder: whether no position may attend to a later one.
        decode_positions: in a decoder: whether a token written in step t is encoded at position t (`running`) or at 0 (`zero`).
        norm_epsilon: what LayerNorm adds to the variance (`standard`, `bias-free`), and RMSNorm to the mean square (`rms`).
        rotary_base: the longest wave of rotary positions is nearly 2π · rotary_base positions long.
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
    norm_epsilon: Tiny = 1e-5
    gated: bool = False
    rotary_base: Base = 10000.0

    def __post_init__(self) -> None:
        """Checks that `hidden` is given where layers have a feed-forward network, and that rotary positions fit the heads.

        Raises:
            BadSetting: `hidden` is 0 where layers have such a network, or above 0 where they have none; or the heads cannot be
                rotated.
        """
        if self.positions in ROTARY:
            if self.attention.head_dim % 2:
                raise BadSetting(
                    name="head_dim", found=self.attention.head_dim, allowed=phrase("an even number, because positions are rotary")
                )
            if self.wiring == "memory" or self.decode_positions != "running":
                raise DoesNotFit(
                    name="wiring", reason=phrase("rotary positions need the wiring standard and decode_positions running")
                )
        if not self.hidden and self.wiring not in WITHOUT_FEED_FORWARD:
            raise BadSetting(name="hidden", found=0, allowed=phrase("a number above 0, because the wiring is not “attention”"))
        if self.hidden and self.wiring == "no-feed-forward":
            raise BadSetting(name="hidden", found=self.hidden, allowed=phrase("0, because the wiring is “no-feed-forward”"))


@dataclass(frozen=True)
class OutputSpec:
    """The map from the last state to the vocabulary.

    Attributes:
        tied: whether its weight is the decoder's token embedding.
        bias: whether it adds a bias.
        softmax: the axis of the softmax that turns logits into probabilities: the vocabulary, or the batch (`batch`; with one
            example every probability is then 1).
    """

    tied: bool = False
    bias: bool = True
    softmax: OutputSoftmax = "vocab"


@dataclass(frozen=True)
class ModelSpec:
    """A whole network.

    Attributes:
        decoder: the stack that predicts tokens; None: the network is an encoder only. Without an encoder it has no cross-attention:
            the network is a causal language model.
        encoder: the stack that reads the source; None for a language model.
        output: the map to the vocabulary; None: the last hidden states are the result.
        dropout: share of values dropped in training, the same everywhere.
        pad_id, start_id, end_id, unk_id: ids of the special tokens; None: there is none, or it is not known.
        source_pad_id: id of padding in the source, where it differs from pad_id.
        suppressed: ids that decoding never writes (their probabilities are still shown).
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
    def source_padding(self) -> int | None:
        """The id of padding in the source; None: there is none, or it is not known."""
        return self.pad_id if self.source_pad_id is None else self.source_pad_id

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids of all tokens that end a text: one at most."""
        return () if self.end_id is None else (self.end_id,)

    @property
    def stacks(self) -> dict[str, StackSpec]:
        """The stacks of the network by name, in the order in which they run."""
        both = {"encoder": self.encoder, "decoder": self.decoder}
        return {name: stack for name, stack in both.items() if stack is not None}

    @property
    def forced(self) -> tuple[int, ...]:
        """Ids that follow the start token of every target: none."""
        return ()

    @property
    def opening(self) -> tuple[tuple[int, ...], ...]:
        """Ids of which each of the first tokens is one: any may come first."""
        return ()

    @property
    def steps_agree(self) -> bool:
        """Whether a pass over several tokens computes what a step for each of them does, so that a decode may check guesses."""
        return self.writer.wiring != "memory" and self.writer.causal and self.writer.decode_positions == "running"

    @property
    def writer(self) -> StackSpec:
        """The stack whose vocabulary the spec's ids belong to: the decoder, or the encoder where there is no decoder."""
        return list(self.stacks.values())[-1]

    def __post_init__(self) -> None:
        """Checks that the parts fit together and that the vocabulary has all ids.

        Raises:
            BadSetting: there is no stack, an output layer without a vocabulary, or an id outside the vocabulary.
        """
        if not self.stacks:
            raise DoesNotFit(name="spec", reason=phrase("it has neither an encoder nor a decoder"))
        if self.output is not None and (self.decoder is None or not self.decoder.vocab):
            raise MustNotBeSet(name="output", reason=phrase("no decoder has a vocabulary"))
        # Checked here, where the network is described: an id beyond the vocabulary would fail inside of torch, in
        # the middle of a run.
        ids = {name: getattr(self, name) for name in ("pad_id", "start_id", "end_id", "unk_id")}
        ids |= {f"suppressed[{i}]": id_ for i, id_ in enumerate(self.suppressed)}
        _refuse_foreign(ids, self.writer)
        _refuse_foreign({"source_pad_id": self.source_pad_id}, self.encoder or self.writer)


def _refuse_foreign(ids: Mapping[str, int | None], stack: StackSpec) -> None:
    for name, id_ in ids.items():
        if stack.vocab and id_ is not None and id_ >= stack.vocab:
            raise BadSetting(
                name=name,
                found=id_,
                allowed=phrase("a number below {vocab:,}, the number of ids of the vocabulary", vocab=stack.vocab),
            )


def to_json(spec: Any) -> dict[str, Any]:
    """A ModelSpec, or the spec of a library's network, as plain JSON values."""
    return asdict(spec)


def from_json(data: Mapping[str, Any]) -> ModelSpec:
    """Reads a spec from JSON values; every field is checked.

    Raises:
        BadSetting: a field is unknown, missing or outside its limits, or the vocabulary does not have an id.
    """
    return read(ModelSpec, data, "spec")
