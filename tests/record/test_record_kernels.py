"""Fused kernels never hold weights: they are computed again, and compared with the program's own attention in float64."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import headlight

GENERATOR = torch.Generator().manual_seed(1)
Q = torch.randn(2, 4, 5, 8, generator=GENERATOR)
K = torch.randn(2, 4, 6, 8, generator=GENERATOR)
V = torch.randn(2, 4, 6, 8, generator=GENERATOR)
ALLOWED = torch.rand(2, 1, 5, 6, generator=GENERATOR) > 0.4
ALLOWED[..., 0] = True
BIAS = torch.randn(2, 4, 5, 6, generator=GENERATOR)


def expected(bias: Tensor | None = None, scale: float | None = None, k: Tensor = K) -> Tensor:
    """[batch, head, query, key] in float64."""
    scores = Q.double() @ k.double().mT * (1 / math.sqrt(8) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    return scores.softmax(-1)


def hidden(allowed: Tensor) -> Tensor:
    return torch.zeros(allowed.shape, dtype=torch.float64).masked_fill(~allowed, -math.inf)


CAUSAL = torch.ones(5, 6, dtype=torch.bool).tril()
CASES: dict[str, tuple[dict[str, Any], Tensor]] = {
    "plain": ({}, expected()),
    "scale": ({"scale": 0.3}, expected(scale=0.3)),
    "causal": ({"is_causal": True}, expected(hidden(CAUSAL))),
    "bool mask": ({"attn_mask": ALLOWED}, expected(hidden(ALLOWED))),
    "float mask": ({"attn_mask": BIAS}, expected(BIAS.double())),
    "dropout": ({"dropout_p": 0.5}, expected()),
    "dropout of a causal one": ({"dropout_p": 0.5, "is_causal": True}, expected(hidden(CAUSAL))),
}


@pytest.mark.parametrize("example", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_scaled_dot_product_attention(name: str, example: int) -> None:
    arguments, wanted = CASES[name]
    with headlight.record(example=example, keep=["qkv", "context"]) as recording:
        functional.scaled_dot_product_attention(Q, K, V, **arguments).transpose(1, 2).flatten(2)
    (site,) = recording.sites
    np.testing.assert_allclose(site.written(), wanted[example], atol=1e-5)
    assert site.origin == ("computed" if "dropout" in name else "recomputed")
    assert (site.difference is None) == ("dropout" in name)
    assert site.difference is None or site.difference < 1e-5
    if "dropout" not in name:  # that path scales queries and keys before it multiplies them
        np.testing.assert_array_equal(site.k, K[example])
    if name == "bool mask":
        np.testing.assert_array_equal(site.mask, ALLOWED[example, 0])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("arguments", [{}, {"attn_mask": ALLOWED}, {"dropout_p": 0.1}])
def test_grouped_queries(arguments: dict[str, Any], mode: Any) -> None:
    with mode(), headlight.record(example=1) as recording:
        out = functional.scaled_dot_product_attention(Q, K[:, :2], V[:, :2], enable_gqa=True, **arguments)
        out.transpose(1, 2).flatten(2)
    wanted = expected(hidden(ALLOWED) if "attn_mask" in arguments else None, k=K[:, [0, 0, 1, 1]])
    np.testing.assert_allclose(recording.sites[0].written(), wanted[1], atol=1e-5)


def test_a_row_without_any_allowed_key_is_zero() -> None:
    allowed = torch.ones(5, 6, dtype=torch.bool)
    allowed[2] = False
    with headlight.record() as recording:
        functional.scaled_dot_product_attention(Q, K, V, attn_mask=allowed)
    assert (recording.sites[0].written()[:, 2] == 0).all()
    assert recording.sites[0].difference == pytest.approx(0, abs=1e-5)


def test_another_kernel_output_shows_in_the_difference() -> None:
    """The comparison is with what the kernel returned: weights that are not its own are found."""
    with headlight.record() as recording:
        functional.scaled_dot_product_attention(Q, K, V)
    site = recording.sites[0]
    wrong = headlight.Site("", "", "", 0, 0)
    headlight._fill_fused(wrong, Q[0], K[0], V[0], torch.zeros(4, 5, 8), 1.0, None, False, False)
    assert site.difference is not None
    assert wrong.difference is not None
    assert site.difference < 1e-5 < 0.1 < wrong.difference


def test_a_long_input_keeps_queries_and_keys_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headlight, "LAZY", 100)
    with headlight.record(example=1) as recording:
        functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
    (site,) = recording.sites
    assert site.weights is None
    np.testing.assert_allclose(site.written(), expected(hidden(CAUSAL))[1], atol=1e-5)


@pytest.mark.filterwarnings("ignore")  # PyTorch warns that it is slow without torch.compile
def test_flex_attention() -> None:
    def score_mod(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return score + (query - key) * (head + 1) * 0.1 + batch

    def mask_mod(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return query >= key

    mask = create_block_mask(mask_mod, None, None, 5, 6, device="cpu")
    with headlight.record(example=1) as recording:
        out = flex_attention(Q, K, V, score_mod=score_mod, block_mask=mask)
    (site,) = recording.sites
    assert torch.equal(out, flex_attention(Q, K, V, score_mod=score_mod, block_mask=mask))
    slope = torch.arange(5)[:, None] - torch.arange(6)
    bias = slope * (torch.arange(4) + 1).view(4, 1, 1) * 0.1 + hidden(CAUSAL)
    np.testing.assert_allclose(site.written(), expected(bias)[1], atol=1e-5)
    assert site.difference is not None
    assert site.difference < 1e-5


ATTENTION = nn.MultiheadAttention(16, 4, batch_first=True).eval()
X = torch.randn(3, 5, 16, generator=GENERATOR)
PADDING = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])


@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("padding", [None, PADDING])
def test_multi_head_attention_in_each_of_its_paths(padding: Tensor | None, need_weights: bool, mode: Any) -> None:
    with mode(), headlight.record(ATTENTION, example=1) as recording:
        ATTENTION(X, X, X, key_padding_mask=padding, need_weights=need_weights)
    with torch.enable_grad():  # the path that gives the weights
        _out, wanted = ATTENTION(X, X, X, key_padding_mask=padding, need_weights=True, average_attn_weights=False)
    (site,) = recording.sites
    assert (site.kind, site.module) == ("self", "MultiheadAttention")
    np.testing.assert_allclose(site.written(), wanted[1].detach(), atol=1e-5)
    if padding is not None:
        np.testing.assert_array_equal(site.mask, (~padding[1]).expand(5, 5))


def test_multi_head_attention_with_the_sequence_first_and_other_keys() -> None:
    attention = nn.MultiheadAttention(16, 2, kdim=6, vdim=7).train()
    keys, values = torch.randn(4, 3, 6), torch.randn(4, 3, 7)
    with headlight.record(attention, example=2) as recording:
        _out, wanted = attention(X.transpose(0, 1), keys, values, average_attn_weights=False)
    (site,) = recording.sites
    assert (site.kind, site.batch) == ("cross", 3)
    np.testing.assert_allclose(site.written(), wanted[2].detach(), atol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_fast_path_of_an_encoder_layer(norm_first: bool, activation: str, masked: bool) -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, activation=activation, batch_first=True, norm_first=norm_first).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(5) if masked else None
    with torch.no_grad(), headlight.record(layer, example=2) as fast, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch converts the mask to bool and says so
        layer(X, src_mask=mask)
    with headlight.record(layer, example=2) as slow:
        layer(X, src_mask=mask)
    assert fast.sites[0].operation == "aten._transformer_encoder_layer_fwd"
    assert slow.sites[0].operation != fast.sites[0].operation
    np.testing.assert_allclose(fast.sites[0].written(), slow.sites[0].written(), atol=1e-5)
    np.testing.assert_array_equal(fast.sites[0].mask, slow.sites[0].mask)
    assert fast.sites[0].difference is not None
    assert fast.sites[0].difference < 1e-5


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_the_fast_path_without_padding_shows_the_tokens_that_ran() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2).eval()
    with torch.no_grad(), headlight.record(encoder, example=1) as fast:
        encoder(X, src_key_padding_mask=PADDING)
    with headlight.record(encoder, example=1) as slow:
        encoder(X, src_key_padding_mask=PADDING)
    assert [site.module for site in fast.sites] == ["layers.0", "layers.1"]
    for one, other in zip(fast.sites, slow.sites, strict=True):
        assert one.shape == (4, 3, 3)
        np.testing.assert_allclose(one.written(), other.written()[:, :3, :3], atol=1e-5)
        assert one.difference is not None
        assert one.difference < 1e-5


def test_an_unknown_kernel_is_named() -> None:
    library = torch.library.Library("somebodys", "FRAGMENT")
    library.define("fast_attention(Tensor query, Tensor key, Tensor value) -> Tensor")
    library.impl("fast_attention", lambda query, key, value: value.clone(), "CPU")
    with headlight.record() as recording:
        torch.ops.somebodys.fast_attention(Q, K, V)
    assert not recording.sites
    assert recording.missing["attention/no module"] == "attention by somebodys.fast_attention: this kernel is not known"


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_number_types(dtype: torch.dtype) -> None:
    with headlight.record() as recording:
        functional.scaled_dot_product_attention(Q.to(dtype), K.to(dtype), V.to(dtype))
    scores = Q.to(dtype).double() @ K.to(dtype).double().mT / math.sqrt(8)
    np.testing.assert_allclose(recording.sites[0].written(), scores.softmax(-1)[0], atol=1e-5)
    assert recording.sites[0].difference is not None
    assert recording.sites[0].difference < {torch.bfloat16: 2e-2, torch.float16: 2e-3, torch.float64: 1e-12}[dtype]
