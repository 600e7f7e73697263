"""build(spec) -> network: the one place where the choices of a ModelSpec become parts. No other code asks the spec."""

import math
from collections.abc import Callable, Iterable

from torch import nn

from model.spec import AttentionSpec, ModelSpec, StackSpec
from model.transformer.attention import MultiHeadAttention, softmax_uniform, softmax_zeros
from model.transformer.layers import CrossAttentionLayer, FeedForward, PostNorm, PreNorm, Residual, SelfAttentionLayer
from model.transformer.positions import LearnedPositions, NoPositions, PositionalEncoding, SinusoidalPositions
from model.transformer.stacks import CausalLM, Decoder, Embedding, Encoder, EncoderDecoder

POSITIONS: dict[str, Callable[[int, int], PositionalEncoding]] = {
    "learned": LearnedPositions,
    "sinusoidal": SinusoidalPositions,
    "none": NoPositions,
}
RESIDUALS: dict[str, Callable[[int, float], Residual]] = {"post": PostNorm, "pre": PreNorm}
ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU}
SOFTMAXES = {"uniform": softmax_uniform, "zeros": softmax_zeros}


def build(spec: ModelSpec) -> EncoderDecoder | CausalLM:
    """The network that `spec` describes, freshly initialised: Xavier-uniform matrices, biases zero.

    Source: Glorot and Bengio 2010, equation 16, for the initial values.
    """
    network = _causal_lm(spec) if spec.encoder is None else _encoder_decoder(spec, spec.encoder)
    for parameter in network.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return network


def _encoder_decoder(spec: ModelSpec, source: StackSpec) -> EncoderDecoder:
    encoder = Encoder(
        _embedding(source, spec.dropout),
        _self_attention_layers(source, spec.dropout),
        source.passes,
        _final_norm(source),
    )
    decoder = Decoder(
        _embedding(spec.decoder, spec.dropout),
        _cross_attention_layers(spec.decoder, source.d_model, spec.dropout),
        spec.decoder.passes,
        _final_norm(spec.decoder),
    )
    return EncoderDecoder(encoder, decoder, _output(spec, decoder.embedding), spec.pad_id)


def _causal_lm(spec: ModelSpec) -> CausalLM:
    embedding = _embedding(spec.decoder, spec.dropout)
    layers = _self_attention_layers(spec.decoder, spec.dropout)
    output = _output(spec, embedding)
    return CausalLM(embedding, layers, spec.decoder.passes, _final_norm(spec.decoder), output, spec.pad_id)


def _embedding(stack: StackSpec, dropout: float) -> Embedding:
    scale = math.sqrt(stack.d_model) if stack.embed_scale == "sqrt" else 1.0
    positions = POSITIONS[stack.positions](stack.max_positions, stack.d_model)
    return Embedding(stack.vocab, stack.d_model, scale, positions, dropout)


def _self_attention_layers(stack: StackSpec, dropout: float) -> Iterable[SelfAttentionLayer]:
    for _ in range(stack.layers):
        attention = _attention(stack.attention, stack.d_model, stack.d_model, dropout)
        residuals = _residual(stack, dropout), _residual(stack, dropout)
        yield SelfAttentionLayer(attention, _feed_forward(stack, dropout), residuals)


def _cross_attention_layers(stack: StackSpec, d_memory: int, dropout: float) -> Iterable[CrossAttentionLayer]:
    for _ in range(stack.layers):
        self_attention = _attention(stack.attention, stack.d_model, stack.d_model, dropout)
        cross_attention = _attention(stack.attention, stack.d_model, d_memory, dropout)
        residuals = _residual(stack, dropout), _residual(stack, dropout), _residual(stack, dropout)
        yield CrossAttentionLayer(self_attention, cross_attention, _feed_forward(stack, dropout), residuals)


def _attention(spec: AttentionSpec, d_model: int, d_memory: int, dropout: float) -> MultiHeadAttention:
    softmax = SOFTMAXES[spec.empty_rows]
    return MultiHeadAttention(spec.heads, spec.head_dim, d_model, d_memory, spec.bias, softmax, dropout)


def _feed_forward(stack: StackSpec, dropout: float) -> FeedForward:
    return FeedForward(stack.d_model, stack.hidden, ACTIVATIONS[stack.activation](), stack.bias, dropout)


def _residual(stack: StackSpec, dropout: float) -> Residual:
    return RESIDUALS[stack.norm_order](stack.d_model, dropout)


def _final_norm(stack: StackSpec) -> nn.Module:
    return nn.LayerNorm(stack.d_model) if stack.final_norm else nn.Identity()


def _output(spec: ModelSpec, embedding: Embedding) -> nn.Linear:
    output = nn.Linear(spec.decoder.d_model, spec.decoder.vocab, spec.output.bias)
    if spec.output.tied:
        output.weight = embedding.token.weight
    return output
