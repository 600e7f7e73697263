"""build(spec) -> network: the one place where the choices in a ModelSpec become modules. Modules never read the spec.

To add a choice, such as a positional encoding: write the module, then add its name to the table here and to
model/requests/network.py.
"""

import math
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import TypeAlias

import torch
from torch import Tensor, nn

from model.requests.network import AttentionSpec, ModelSpec, StackSpec
from model.transformer.attention import MultiHeadAttention, softmax_uniform, softmax_zeros
from model.transformer.layers import (
    AttentionLayer,
    CrossAttentionLayer,
    FeedForward,
    GatedFeedForward,
    PostNorm,
    PreNorm,
    Residual,
    ResidualAttentionLayer,
    SelfAttentionLayer,
)
from model.transformer.masks import TargetMask, causal_padding_mask, padding_only_mask
from model.transformer.norms import RMSNorm, norm_of_a_sample, norm_without_bias
from model.transformer.positions import (
    LearnedPositions,
    LearnedPositionsFrom2,
    NoPositions,
    PositionalEncoding,
    Rotation,
    SinusoidalPositions,
    StoredPositions,
    column_sinusoids,
    from_zero,
    rotary_halves,
    rotary_pairs,
    running,
    sinusoids_from_2,
    unrotated,
)
from model.transformer.shared_head import MemoryLayer, SharedProjection
from model.transformer.stacks import (
    CausalLM,
    Decoder,
    Embedding,
    EmbeddingAlone,
    Encoder,
    EncoderAlone,
    EncoderDecoder,
    Features,
    NoOutput,
    Output,
    ReadingLayer,
    WritingLayer,
)

Network: TypeAlias = EncoderDecoder | CausalLM | EncoderAlone

POSITIONS: dict[str, Callable[[int, int], PositionalEncoding]] = {
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
    "sinusoidal-column": partial(SinusoidalPositions, waves=column_sinusoids),
    "stored": StoredPositions,
    "none": NoPositions,
    "learned-from-2": LearnedPositionsFrom2,
    "sinusoidal-from-2": partial(SinusoidalPositions, waves=sinusoids_from_2),
    "rotary": NoPositions,  # nothing is added to the embeddings: see ROTATIONS
    "rotary-pairs": NoPositions,
}
"""What makes a positional encoding, given the number of positions and the width of the model."""

ROTATIONS: dict[str, Callable[..., Tensor]] = {"rotary": rotary_halves, "rotary-pairs": rotary_pairs}
"""How encodings that add nothing to the embeddings rotate queries and keys."""

NORMS: dict[str, Callable[[int, float], nn.Module]] = {
    "standard": nn.LayerNorm,
    "bias-free": norm_without_bias,
    "unbiased": norm_of_a_sample,
    "rms": RMSNorm,
}
"""What makes a norm, given the width of the model and ε."""

RESIDUALS: dict[str, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
"""The order of residual sum and norm."""

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "gelu-tanh": partial(nn.GELU, approximate="tanh"),
    "silu": nn.SiLU,
}
FIRST_POSITIONS: dict[str, Callable[[int], int]] = {"running": running, "zero": from_zero}
"""The position of a step's first token in a cached decode."""

SOFTMAXES = {"uniform": softmax_uniform, "zeros": softmax_zeros}
"""What a row becomes in which no key is allowed."""

WRITING_LAYERS: dict[str, type[CrossAttentionLayer] | type[MemoryLayer]] = {"standard": CrossAttentionLayer, "memory": MemoryLayer}
"""The layers of a decoder that attends to an encoder."""


def build(spec: ModelSpec) -> Network:
    """The network that `spec` describes, with new initial values: Xavier-uniform matrices, and biases as torch initializes them.

    Xavier-uniform draws from ±√(6 / (inputs + outputs)), so that numbers neither grow nor shrink on their way through a matrix.

    Source: Glorot and Bengio 2010, "Understanding the difficulty of training deep feedforward neural networks", equation 16.
    """
    network = _assemble(spec)
    # Matrices have two axes; biases and the weights of norms have one and keep torch's initial values.
    for parameter in network.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return network


@lru_cache(maxsize=16)
def needed(spec: ModelSpec) -> Network:
    """The network of a spec on the meta device: shapes without memory. It is read, never changed."""
    with torch.device("meta"):
        return build(spec)


def _assemble(spec: ModelSpec) -> Network:
    match spec.encoder, spec.decoder:
        case StackSpec() as source, StackSpec() as target:
            return _encoder_decoder(spec, source, target)
        case None, StackSpec() as target:
            return _causal_lm(spec, target)
        case _:
            return EncoderAlone(_encoder(spec.writer, spec.dropout), spec.pad_id)


def _encoder_decoder(spec: ModelSpec, source: StackSpec, target: StackSpec) -> EncoderDecoder:
    embedding = _embedding(target, spec.dropout)
    layers = _cross_attention_layers(target, source.d_model, spec.dropout)
    decoder = Decoder(embedding, layers, target.passes, _final_norm(target))
    source_pad_id = spec.source_padding if source.vocab else None  # vectors hold no ids
    return EncoderDecoder(
        _encoder(source, spec.dropout), decoder, _output(spec, target, embedding), source_pad_id, _target_mask(target, spec.pad_id)
    )


def _causal_lm(spec: ModelSpec, stack: StackSpec) -> CausalLM:
    embedding = _embedding(stack, spec.dropout)
    layers = _self_attention_layers(stack, spec.dropout)
    output = _output(spec, stack, embedding)
    # No padding: each token was typed or written, whatever its id is. In training it only comes after a text, in its future.
    mask = _target_mask(stack, pad_id=None)
    return CausalLM(embedding, layers, stack.passes, _final_norm(stack), output, mask)


def _encoder(stack: StackSpec, dropout: float) -> Encoder:
    layers = _self_attention_layers(stack, dropout)
    return Encoder(_embedding(stack, dropout), layers, stack.passes, _final_norm(stack))


def _target_mask(stack: StackSpec, pad_id: int | None) -> TargetMask:
    """The mask of the decoder's self-attention, with its padding id filled in."""
    return partial(causal_padding_mask if stack.causal else padding_only_mask, pad_id=pad_id)


def _embedding(stack: StackSpec, dropout: float) -> Embedding | Features:
    if not stack.vocab:  # no vocabulary: the input is vectors, which need no table
        return Features()
    scale = math.sqrt(stack.d_model) if stack.embed_scale == "sqrt" else 1.0  # section 3.4, last sentence
    positions = POSITIONS[stack.positions](stack.max_positions, stack.d_model)
    kind = EmbeddingAlone if stack.positions in ROTATIONS else Embedding
    return kind(stack.vocab, stack.d_model, scale, positions, dropout, FIRST_POSITIONS[stack.decode_positions])


def _self_attention_layers(stack: StackSpec, dropout: float) -> Iterable[ReadingLayer]:
    for _ in range(stack.layers):
        # Queries, keys and values are all projections of the layer's own stream.
        attention = _attention(stack.attention, stack.d_model, stack.d_model, dropout, _rotation(stack))
        if stack.wiring == "attention":
            yield AttentionLayer(attention)
        elif stack.wiring == "no-feed-forward":
            yield ResidualAttentionLayer(attention, _residual(stack, dropout))
        else:
            residuals = _residual(stack, dropout), _residual(stack, dropout)
            yield SelfAttentionLayer(attention, _feed_forward(stack, dropout), residuals)


def _cross_attention_layers(stack: StackSpec, d_memory: int, dropout: float) -> Iterable[WritingLayer]:
    for _ in range(stack.layers):
        first = _attention(stack.attention, stack.d_model, stack.d_model, dropout, _rotation(stack))
        # Queries come from the decoder's stream; keys and values from the encoder's output, which may have another width.
        cross_attention = _attention(stack.attention, stack.d_model, d_memory, dropout)
        residuals = _residual(stack, dropout), _residual(stack, dropout), _residual(stack, dropout)
        yield WRITING_LAYERS[stack.wiring](first, cross_attention, _feed_forward(stack, dropout), residuals)


def _rotation(stack: StackSpec) -> Rotation:
    """The rotation of a stack's self-attention. Cross-attention has none: source and target do not count the same positions."""
    if stack.positions not in ROTATIONS:
        return unrotated
    return partial(ROTATIONS[stack.positions], base=stack.rotary_base)


def _attention(
    spec: AttentionSpec, d_model: int, d_memory: int, dropout: float, rotation: Rotation = unrotated
) -> MultiHeadAttention:
    # Called like nn.Linear, but the size of a shared projection follows from the head's width alone.
    def shared(d_in: int, d_out: int, bias: bool) -> nn.Linear:
        return SharedProjection(spec.heads, spec.head_dim)

    projections: dict[str, Callable[[int, int, bool], nn.Linear]] = {"separate": nn.Linear, "shared": shared}
    projection = projections[spec.projections]
    softmax = SOFTMAXES[spec.empty_rows]
    return MultiHeadAttention(
        spec.heads, spec.head_dim, d_model, d_memory, spec.bias, softmax, dropout, projection, spec.key_heads, rotation
    )


def _feed_forward(stack: StackSpec, dropout: float) -> FeedForward:
    kind = GatedFeedForward if stack.gated else FeedForward
    return kind(stack.d_model, stack.hidden, ACTIVATIONS[stack.activation](), stack.bias, dropout)


def _residual(stack: StackSpec, dropout: float) -> Residual:
    return RESIDUALS[stack.norm_order](stack.d_model, dropout, lambda d_model: _norm(stack, d_model))


def _norm(stack: StackSpec, d_model: int) -> nn.Module:
    return NORMS[stack.norm](d_model, stack.norm_epsilon)


def _final_norm(stack: StackSpec) -> nn.Module:
    # After post-norm layers the stream is normed already; after pre-norm layers it never was.
    return _norm(stack, stack.d_model) if stack.final_norm else nn.Identity()


def _output(spec: ModelSpec, stack: StackSpec, embedding: Embedding | Features) -> Output | NoOutput:
    if spec.output is None:
        return NoOutput()
    output = Output(stack.d_model, stack.vocab, spec.output.bias)
    if spec.output.tied and isinstance(embedding, Embedding):
        # Both are [vocab, model]: the logit of a token is then the dot product of the last state with that token's embedding.
        # One parameter, not a copy, so that training moves both (section 3.4).
        output.weight = embedding.token.weight
    return output
