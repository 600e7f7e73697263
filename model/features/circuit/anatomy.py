"""Anatomy: the linear maps of a network in the order in which the residual stream meets them.

It says what `ResidualStream` needs to follow a stream back: where norms are, which matrices read and write. It computes nothing of
a run. Numbers become float64 when they are asked for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from model.trace.types import Array, Kind
from model.transformer.attention import MultiHeadAttention
from model.transformer.build import Network
from model.transformer.layers import (
    AttentionLayer,
    CrossAttentionLayer,
    PostNorm,
    Residual,
    ResidualAttentionLayer,
    SelfAttentionLayer,
)
from model.transformer.norms import RMSNorm, UnbiasedNorm
from model.transformer.positions import Rotation
from model.transformer.shared_head import MemoryLayer, SharedProjection
from model.transformer.stacks import CausalLM, Decoder, Encoder, Output

Order: TypeAlias = Literal["post", "pre", "none"]
Base: TypeAlias = Literal["stream", "nothing", "memory"]
Source: TypeAlias = Literal["normed", "stream", "before", "memory", "normed memory"]
"""What queries or keys are made of: the stream at the sublayer, normalized if the layers are pre-norm; that stream as it is; the
stream before the layer (`before`); or the encoder's output, as it is or normalized."""


def float64(tensor: Tensor) -> Array:
    """A tensor's numbers in float64."""
    array: Array = tensor.detach().cpu().double().numpy()
    return array


@dataclass(frozen=True)
class Affine:
    """x -> W x + b.

    Attributes:
        weight: [out, in].
        bias: [out]; None: there is none.
    """

    weight: Array
    bias: Array | None = None


@dataclass(frozen=True)
class Norm:
    """A normalization: (x - mean of x) / spread · gain + bias. With the spread of a run held fixed it is linear.

    Attributes:
        module: the network's.
    """

    module: nn.Module

    @property
    def gain(self) -> Array:
        """[model]."""
        return float64(self.module.get_parameter("weight"))

    @property
    def bias(self) -> Array | None:
        """[model]; None: there is none."""
        bias = getattr(self.module, "bias", None)
        return None if bias is None else float64(bias)

    @property
    def centered(self) -> bool:
        """Whether it subtracts the mean."""
        return not isinstance(self.module, RMSNorm)

    def spread(self, states: Array) -> Array:
        """What it divides states [row, model] by: [row, 1]."""
        match self.module:
            # Three spreads that differ in what they measure and in where the small number stands that keeps a
            # constant state from a division by 0: inside the root for LayerNorm and RMSNorm, outside it for the norm
            # with n - 1.
            case nn.LayerNorm():
                return np.asarray(np.sqrt(states.var(axis=-1, keepdims=True) + self.module.eps))
            case UnbiasedNorm():
                return np.asarray(states.std(axis=-1, ddof=1, keepdims=True) + 1e-6)
            case RMSNorm():
                return np.asarray(np.sqrt((states**2).mean(axis=-1, keepdims=True) + self.module.epsilon))
        raise TypeError(f"no such norm: {type(self.module).__name__}")

    def __call__(self, states: Array) -> Array:
        """The norm of states [row, model]."""
        # axis=-1 is the width of the model: each position is normalized for itself.
        centered = states - states.mean(axis=-1, keepdims=True) if self.centered else states
        scaled = centered / self.spread(states) * self.gain
        return np.asarray(scaled if self.bias is None else scaled + self.bias)


@dataclass(frozen=True)
class Heads:
    """The maps of an attention sublayer.

    Attributes:
        query, key, value: the map from the stream to a head's query, key or value: [head_dim, model].
        output: the map from all heads' contexts to the stream: [model, head · head_dim].
        scale: factor of the dot products.
        rotation: turns queries and keys by their positions.
        queries_from, keys_from, values_from: what queries, keys and values are made of.
        norms: the norm of each head's `query` and `key` before they are rotated, where a network has one (Qwen 3).
        added: what is added to the scores of a head's query for each of so many keys, by their distance, [key]; None: nothing.
    """

    query: Callable[[int], Affine]
    key: Callable[[int], Affine]
    value: Callable[[int], Affine]
    output: Affine
    scale: float
    rotation: Rotation
    queries_from: Source
    keys_from: Source
    values_from: Source
    norms: Mapping[str, Norm] = field(default_factory=dict)
    added: Callable[[int, int, int], Array] | None = None

    def compared(self, side: str, vectors: Array, whole: Array, start: int) -> Array:
        """Parts of queries or keys [part, row, head_dim] as they are compared: normalized and rotated, where the network does.

        Args:
            side: `query` or `key`.
            whole: [row, head_dim], the sum of all parts, whose spread the norm has.
            start: the position of the first row.
        """
        # The spread is that of the whole query or key, never that of the part: all parts are divided by the same
        # number, so they still add up to the vector that was compared.
        if norm := self.norms.get(side):
            vectors = vectors * (norm.gain / norm.spread(whole))
        # A rotation takes [batch, head, row, head_dim]: the parts stand where the heads would.
        turned: Array = self.rotation(torch.tensor(vectors)[None], start)[0].numpy()
        return turned

    def weight(self, side: str, head: int) -> Array:
        """[head_dim, model], from the stream to a head's query, key or value as they are compared, but for norms' spreads."""
        # The gain multiplies the numbers of a head's vector, which are the rows of its matrix.
        weight: Array = getattr(self, side)(head).weight
        return weight * self.norms[side].gain[:, None] if side in self.norms else weight


@dataclass(frozen=True)
class Sublayer:
    """One application of a sublayer.

    Attributes:
        place: its name: a site, or a feed-forward sublayer.
        order: where its norm is: after the sum, before the sublayer, or nowhere.
        base: what it adds its output to: the stream, nothing (its output replaces the stream), or the encoder's output, from which
            the stream then goes on.
        norm: its norm.
        heads: None: it is a feed-forward network.
        layer: name of its layer, where it is the last sublayer of it; else empty.
    """

    place: str
    order: Order
    base: Base
    norm: Norm | None
    heads: Callable[[], Heads] | None
    layer: str = ""


@dataclass(frozen=True)
class Stack:
    """One stack: its sublayers in the order in which they run, all passes.

    Attributes:
        name: `encoder` or `decoder`.
        sublayers: the applications.
        final: the norm after the last layer.
        width: of its stream.
        enters: what enters its first layer, where the run does not record it apart: an embedding, or the sum of an embedding and a
            positional encoding; None: the run tells.
    """

    name: str
    sublayers: tuple[Sublayer, ...]
    final: Norm | None
    width: int
    enters: Literal["embedding", "sum"] | None = None

    def index(self, name: str) -> int:
        """The index of a sublayer."""
        return next(i for i, sublayer in enumerate(self.sublayers) if sublayer.place == name)


@dataclass(frozen=True)
class Anatomy:
    """A network.

    Attributes:
        stacks: by name.
        output: the rows of the output layer that make the logits of some ids; None: it has no output layer.
        embedding: [vocab, model], the table of what the decoder reads, where all of it is known; else None.
        unembedding: [vocab, model], the weight of the output layer; None: there is none.
    """

    stacks: Mapping[str, Stack]
    output: Callable[[Sequence[int]], Affine] | None
    embedding: Tensor | None
    unembedding: Tensor | None


def anatomy_of(network: Network) -> Anatomy:
    """The anatomy of one of our networks."""
    modules = dict(network.named_modules())
    # A language model is one stack by itself; other networks hold theirs as children, beside the output layer.
    stacks_of = {"decoder": network} if isinstance(network, CausalLM) else dict(network.named_children())
    stacks = {name: _stack(name, stack) for name, stack in stacks_of.items() if isinstance(stack, Encoder | Decoder | CausalLM)}
    table = modules.get("decoder.embedding.token", modules.get("embedding.token"))
    embedding = table.weight if isinstance(table, nn.Embedding) else None
    output = modules.get("output")
    if not isinstance(output, Output):
        return Anatomy(stacks, None, embedding, None)
    return Anatomy(stacks, lambda ids: affine_rows(output.weight, output.bias, ids), embedding, output.weight)


def affine_rows(weight: Tensor, bias: Tensor | None, rows: Sequence[int]) -> Affine:
    """Some rows of a linear map, in float64."""
    # The rows are chosen before they become float64: the whole output layer of a large vocabulary would take
    # gigabytes.
    indices = list(rows)
    return Affine(float64(weight.detach()[indices]), None if bias is None else float64(bias.detach()[indices]))


def _stack(name: str, stack: Encoder | Decoder | CausalLM) -> Stack:
    # A stack that shares its layers runs them in several passes, and each application writes into the stream anew.
    sublayers = tuple(
        sublayer
        for pass_ in range(stack.passes)
        for index, layer in enumerate(stack.layers)
        for sublayer in _layer(layer, name, pass_, index)
    )
    width = next(len(module.output.weight) for module in stack.modules() if isinstance(module, MultiHeadAttention))
    return Stack(name, sublayers, _norm(stack.final_norm), width)


def _layer(layer: nn.Module, stack: str, pass_: int, index: int) -> Iterator[Sublayer]:
    """The sublayers of one application of a layer."""
    name = f"{stack}.{pass_}.{index}"

    def attention(
        kind: Kind,
        module: MultiHeadAttention,
        residual: Residual,
        keys: Source,
        queries: Source = "normed",
        values: Source | None = None,
        last: bool = False,
    ) -> Sublayer:
        # After self-attention to the memory, the stream goes on from the encoder's output, no longer from the
        # decoder's.
        base: Base = "memory" if kind == "memory" else "stream"
        heads = _heads(module, queries, keys, values or keys)
        return Sublayer(f"{name}.{kind}", _order(residual), base, Norm(residual.norm), heads, name if last else "")

    match layer:
        # Attention alone, without a residual connection: its output replaces the stream.
        case AttentionLayer():
            yield Sublayer(f"{name}.self", "none", "nothing", None, _heads(layer.attention, "stream", "stream", "stream"), name)
            return
        case ResidualAttentionLayer():
            yield attention("self", layer.attention, layer.attention_residual, "normed", last=True)
            return
        case MemoryLayer():  # the decoder's stream is only the query: what goes on is the memory that attended to itself
            yield attention("memory", layer.memory_attention, layer.memory_residual, "normed memory", "normed memory")
            # Queries from the stream that entered the layer, keys from the encoder's output, values from the memory
            # as the line above left it.
            yield attention("cross", layer.cross_attention, layer.cross_residual, "memory", "before", "stream")
        case CrossAttentionLayer():
            yield attention("self", layer.self_attention, layer.self_residual, "normed")
            yield attention("cross", layer.cross_attention, layer.cross_residual, "memory")
        case SelfAttentionLayer():
            yield attention("self", layer.attention, layer.attention_residual, "normed")
        case _:
            raise TypeError(f"no such layer: {type(layer).__name__}")
    residual = layer.feed_forward_residual
    yield Sublayer(f"{name}.feed_forward", _order(residual), "stream", Norm(residual.norm), None, name)


def _order(residual: Residual) -> Order:
    return "post" if isinstance(residual, PostNorm) else "pre"


def _norm(module: nn.Module) -> Norm | None:
    return None if isinstance(module, nn.Identity) else Norm(module)


def _heads(attention: MultiHeadAttention, queries: Source, keys: Source, values: Source) -> Callable[[], Heads]:
    # Nothing is computed here: the matrices become float64 when `heads` is called, so those of all layers are never
    # held at once.
    groups = attention.heads // attention.key_heads  # heads that share their keys and values

    def heads() -> Heads:
        return Heads(
            lambda head: _of_head(attention.query, head, attention.heads),
            lambda head: _of_head(attention.key, head // groups, attention.key_heads),
            lambda head: _of_head(attention.value, head // groups, attention.key_heads),
            affine(attention.output),
            attention.scale,
            attention.rotation,
            queries,
            keys,
            values,
        )

    return heads


def affine(linear: nn.Linear) -> Affine:
    """A linear layer in float64."""
    return Affine(float64(linear.weight), None if linear.bias is None else float64(linear.bias))


def _of_head(projection: nn.Linear, head: int, heads: int) -> Affine:
    """The rows of a projection that make one head's vectors. A shared one reads the head's own columns of the stream alone."""
    if isinstance(projection, SharedProjection):
        # One small matrix serves every head, which reads its slice of the stream. As a map from the whole stream it
        # stands in the columns of this head, between zeros: the Kronecker product with a unit row.
        row_of_head = torch.eye(heads, dtype=torch.float64)[head : head + 1]
        return Affine(np.kron(row_of_head.numpy(), float64(projection.weight)))
    # The rows of a projection are the heads' vectors, one head after the other.
    width = projection.weight.shape[0] // heads
    rows = slice(head * width, (head + 1) * width)
    return Affine(float64(projection.weight[rows]), None if projection.bias is None else float64(projection.bias[rows]))
