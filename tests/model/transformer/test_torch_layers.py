"""The encoder-decoder against torch's own Transformer layers with the same weights, where the two architectures coincide."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model.requests.network import Activation, AttentionSpec, ModelSpec, NormOrder, StackSpec
from model.transformer.layers import FeedForward
from model.transformer.masks import causal_mask
from model.transformer.stacks import EncoderDecoder
from tests.networks import PAD, padded, translator

STACK = StackSpec(vocab=13, d_model=12, layers=2, attention=AttentionSpec(heads=3, head_dim=4), hidden=20, max_positions=10)
SOURCES, TARGETS = padded([[2, 5, 6, 7, 3], [2, 8, 3]]), padded([[2, 9, 4, 4], [2, 5, 7, 11]])


def merged(ours: nn.Module, name: str) -> Iterator[tuple[str, Tensor]]:
    """Our four projections under the names of nn.MultiheadAttention."""
    state = ours.state_dict()
    for kind in ("weight", "bias"):
        yield f"{name}.in_proj_{kind}", torch.cat([state[f"{p}.{kind}"] for p in ("query", "key", "value")])
        yield f"{name}.out_proj.{kind}", state[f"output.{kind}"]


def renamed(ours: nn.Module, theirs: str) -> Iterator[tuple[str, Tensor]]:
    return ((f"{theirs}.{name}", value) for name, value in ours.state_dict().items())


def layer_state(layer: nn.Module, attentions: dict[str, str], norms: dict[str, str]) -> dict[str, Tensor]:
    """The state of one of our layers under torch's names; `attentions` and `norms` map our names to theirs."""
    state: dict[str, Tensor] = {}
    for ours, theirs in attentions.items():
        state |= merged(layer.get_submodule(ours), theirs)
    for ours, theirs in norms.items():
        state |= renamed(layer.get_submodule(f"{ours}.norm"), theirs)
    feed_forward = layer.get_submodule("feed_forward")
    assert isinstance(feed_forward, FeedForward)
    return state | dict(renamed(feed_forward.expand, "linear1")) | dict(renamed(feed_forward.contract, "linear2"))


def torchs_layers(order: NormOrder, activation: Activation) -> tuple[nn.TransformerEncoder, nn.TransformerDecoder]:
    how: dict[str, Any] = {"nhead": 3, "dim_feedforward": 20, "dropout": 0.0, "activation": activation, "batch_first": True}
    how["norm_first"] = order == "pre"
    encoder_norm, decoder_norm = (nn.LayerNorm(12), nn.LayerNorm(12)) if order == "pre" else (None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says at length that the nested-tensor fast path is not taken
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, **how), 2, encoder_norm)
    return encoder.train(), nn.TransformerDecoder(nn.TransformerDecoderLayer(12, **how), 2, decoder_norm)  # in eval mode: fused


def copy_weights(ours: EncoderDecoder, encoder: nn.TransformerEncoder, decoder: nn.TransformerDecoder) -> None:
    for index in range(2):
        norms = {"attention_residual": "norm1", "feed_forward_residual": "norm2"}
        state = layer_state(ours.encoder.layers[index], {"attention": "self_attn"}, norms)
        encoder.layers[index].load_state_dict(state)
        norms = {"self_residual": "norm1", "cross_residual": "norm2", "feed_forward_residual": "norm3"}
        attentions = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}
        decoder.layers[index].load_state_dict(layer_state(ours.decoder.layers[index], attentions, norms))
    for theirs, mine in ((encoder.norm, ours.encoder.final_norm), (decoder.norm, ours.decoder.final_norm)):
        if theirs is not None:
            theirs.load_state_dict(mine.state_dict())


def embedded(half: nn.Module, ids: Tensor) -> Tensor:
    vectors: Tensor = half.get_parameter("embedding.token.weight")[ids] * 12**0.5
    return vectors + half.get_parameter("embedding.positions.weight")[: ids.shape[1]]


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["post", "pre"])
def test_logits_agree_with_torchs_transformer_layers(order: NormOrder, activation: Activation) -> None:
    stack = replace(STACK, norm_order=order, activation=activation, final_norm=order == "pre")
    ours = translator(ModelSpec(encoder=stack, decoder=stack))
    encoder, decoder = torchs_layers(order, activation)
    copy_weights(ours, encoder, decoder)
    last = decoder(
        embedded(ours.decoder, TARGETS),
        encoder(embedded(ours.encoder, SOURCES), src_key_padding_mask=SOURCES == PAD),
        tgt_mask=~causal_mask(4, 4)[0, 0],
        tgt_key_padding_mask=TARGETS == PAD,
        memory_key_padding_mask=SOURCES == PAD,
    )
    torch.testing.assert_close(ours(SOURCES, TARGETS), ours.output(last), rtol=1e-5, atol=1e-5)
