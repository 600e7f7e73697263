"""attend() and MultiHeadAttention against loops in float64, against torch's own kernel and against torch's own module."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from model.trace.types import Array, Site
from model.transformer.attention import (
    Dropout,
    MultiHeadAttention,
    Run,
    attend,
    join_heads,
    softmax_uniform,
    softmax_zeros,
    split_heads,
)
from model.transformer.masks import causal_mask, padding_mask
from tests.networks import Notes

SITE = Site("decoder", 0, 1, "cross")
BATCH, HEADS, QUERIES, KEYS, HEAD_DIM = 2, 3, 5, 7, 4
Softmax = Callable[[Tensor, Tensor], Tensor]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def a_mask(empty: tuple[int, ...] = ()) -> Tensor:
    """[batch, 1, query, key], random; the queries in `empty` may look at nothing, all others at one key at least."""
    allowed = torch.rand((BATCH, 1, QUERIES, KEYS), generator=torch.Generator().manual_seed(1)) < 0.5
    allowed[..., 0] = True
    allowed[:, :, list(empty)] = False
    return allowed


def looped(q: Array, k: Array, v: Array, allowed: Array, scale: float, empty: float) -> tuple[Array, Array, Array]:
    """Scores, weights and context of one head, float64; a row without an allowed key has `empty` everywhere."""
    scores, weights, context = np.zeros((len(q), len(k))), np.zeros((len(q), len(k))), np.zeros((len(q), v.shape[1]))
    for i in range(len(q)):
        for j in range(len(k)):
            scores[i, j] = scale * sum(float(a) * float(b) for a, b in zip(q[i], k[j], strict=True))
        keys = [j for j in range(len(k)) if allowed[i, j]]
        weights[i] = 0.0 if keys else empty
        for j in keys:
            weights[i, j] = 1 / sum(np.exp(scores[i, other] - scores[i, j]) for other in keys)
        for j in range(len(k)):
            context[i] += weights[i, j] * v[j]
    return scores, weights, context


@pytest.mark.parametrize(("softmax", "empty"), [(softmax_uniform, 1 / KEYS), (softmax_zeros, 0.0)])
def test_attend_is_the_formula(softmax: Softmax, empty: float) -> None:
    q, k, v = normal(BATCH, HEADS, QUERIES, 4), normal(BATCH, HEADS, KEYS, 4, seed=1), normal(BATCH, HEADS, KEYS, 6, seed=2)
    allowed = a_mask(empty=(1, 4))
    found = attend(q, k, v, allowed, 0.7, softmax)
    for b in range(BATCH):
        for h in range(HEADS):
            one_q, one_k, one_v = (x[b, h].double().numpy() for x in (q, k, v))
            expected = looped(one_q, one_k, one_v, allowed[b, 0].numpy(), 0.7, empty)
            for ours, theirs in zip((found.scores, found.weights, found.context), expected, strict=True):
                np.testing.assert_allclose(ours[b, h].numpy(), theirs, atol=2e-6)


def test_attend_agrees_with_torchs_fused_kernel() -> None:
    q, k, v = normal(BATCH, HEADS, QUERIES, 4), normal(BATCH, HEADS, KEYS, 4, seed=1), normal(BATCH, HEADS, KEYS, 4, seed=2)
    fused = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=a_mask())
    torch.testing.assert_close(attend(q, k, v, a_mask(), 0.5).context, fused, rtol=0, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("softmax", [softmax_uniform, softmax_zeros])
@pytest.mark.parametrize("shift", [0, -3e4, 3e4])
def test_masked_keys_weigh_exactly_nothing_however_large_their_scores(softmax: Softmax, dtype: torch.dtype, shift: float) -> None:
    scores = (normal(BATCH, HEADS, QUERIES, KEYS) * 100 + shift).to(dtype)
    scores[..., 3] = 6e4
    allowed = a_mask()
    allowed[..., 3] = False
    weights = softmax(scores, allowed)
    assert (weights[~allowed.expand_as(weights)] == 0).all()
    torch.testing.assert_close(weights.double().sum(-1), torch.ones(BATCH, HEADS, QUERIES, dtype=torch.float64), rtol=0, atol=1e-2)


@pytest.mark.parametrize(("softmax", "expected"), [(softmax_uniform, 1 / KEYS), (softmax_zeros, 0.0)])
def test_a_query_without_keys_gets_its_row_and_finite_gradients(softmax: Softmax, expected: float) -> None:
    q, k, v = (normal(BATCH, HEADS, n, 4, seed=n).requires_grad_() for n in (QUERIES, KEYS, KEYS))
    found = attend(q, k, v, a_mask(empty=(2,)), 0.5, softmax)
    assert (found.weights[:, :, 2] == torch.tensor(expected)).all()
    found.context.square().sum().backward()
    for leaf in (q, k, v):
        assert leaf.grad is not None
        assert leaf.grad.isfinite().all()
    assert q.grad is not None
    assert (q.grad[:, :, 2] == 0).all()
    assert (q.grad[:, :, 0] != 0).any()


def test_scores_are_recorded_before_the_mask_and_after_scaling() -> None:
    q, k = normal(1, 1, 2, 4), normal(1, 1, 3, 4, seed=1)
    found = attend(q, k, k, torch.zeros(1, 1, 2, 3, dtype=torch.bool), 0.5)
    torch.testing.assert_close(found.scores, torch.einsum("bhqd,bhkd->bhqk", q, k) / 2)


def test_heads_own_runs_of_columns_and_join_again() -> None:
    x = normal(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4)
    assert torch.equal(heads[1, 2, 3], x[1, 3, 8:12])
    assert torch.equal(join_heads(heads), x)


def ours_and_torchs(bias: bool, d_memory: int) -> tuple[MultiHeadAttention, nn.MultiheadAttention]:
    """Our module and torch's, with the same random weights."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(heads=3, head_dim=4, d_model=12, d_memory=d_memory, bias=bias).eval()
    theirs = nn.MultiheadAttention(12, 3, bias=bias, kdim=d_memory, vdim=d_memory, batch_first=True).eval()
    projections = (ours.query, ours.key, ours.value)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.normal_(0, 0.5)
        if d_memory == 12:
            theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        else:
            for name, p in zip("qkv", projections, strict=True):
                getattr(theirs, f"{name}_proj_weight").copy_(p.weight)
        theirs.out_proj.weight.copy_(ours.output.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            theirs.out_proj.bias.copy_(ours.output.bias)
    return ours, theirs


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("d_memory", [12, 10])
def test_multi_head_attention_agrees_with_torchs_module(bias: bool, d_memory: int) -> None:
    ours, theirs = ours_and_torchs(bias, d_memory)
    x, memory = normal(2, 5, 12), normal(2, 7, d_memory, seed=1)
    ids = torch.tensor([[2, 5, 6, 7, 8, 3, 1], [2, 5, 3, 1, 1, 1, 1]])
    notes = Notes()
    found = ours(x, memory, padding_mask(ids, 1), SITE, Run(record=notes))
    output, weights = theirs(x, memory, memory, key_padding_mask=ids == 1, average_attn_weights=False)
    torch.testing.assert_close(found, output, rtol=0, atol=1e-5)
    torch.testing.assert_close(notes[f"attention/{SITE}/weights"], weights, rtol=0, atol=1e-6)


def test_causal_self_attention_agrees_with_torchs_module() -> None:
    ours, theirs = ours_and_torchs(True, 12)
    x = normal(2, 6, 12)
    output, _ = theirs(x, x, x, attn_mask=~causal_mask(6, 6)[0, 0])
    torch.testing.assert_close(ours(x, x, causal_mask(6, 6), SITE), output, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("heads", "head_dim"), [(3, 5), (1, 1), (7, 2)])
def test_head_dim_is_free_of_the_models_width(heads: int, head_dim: int) -> None:
    ours = MultiHeadAttention(heads, head_dim, d_model=8, d_memory=6)
    notes = Notes()
    found = ours(normal(2, 5, 8), normal(2, 7, 6), a_mask()[:, :, :5], SITE, Run(record=notes))
    assert found.shape == (2, 5, 8)
    assert ours.scale == head_dim**-0.5
    shapes = {name.rpartition("/")[2]: tuple(value.shape) for name, value in notes.items()}
    assert shapes == {
        "weights": (2, heads, 5, 7),
        "scores": (2, heads, 5, 7),
        "q": (2, heads, 5, head_dim),
        "k": (2, heads, 7, head_dim),
        "v": (2, heads, 7, head_dim),
        "context": (2, heads, 5, head_dim),
        "output": (2, 5, 8),
    }


def test_without_bias_there_are_no_biases_not_zero_ones() -> None:
    assert {name for name, _ in MultiHeadAttention(2, 4, 8, 8, bias=False).named_parameters()} == {
        f"{name}.weight" for name in ("query", "key", "value", "output")
    }


def test_dropout_acts_on_the_weights_in_training_alone() -> None:
    torch.manual_seed(0)
    ours = MultiHeadAttention(2, 4, 8, 8, dropout=0.5)
    x, everything = normal(1, 6, 8), torch.ones(1, 1, 6, 6, dtype=torch.bool)
    assert not torch.equal(ours(x, x, everything, SITE), ours(x, x, everything, SITE))
    ours.eval()
    assert torch.equal(ours(x, x, everything, SITE), ours(x, x, everything, SITE))


def test_values_may_be_made_of_another_stream_than_the_keys() -> None:
    ours, x, memory, values = MultiHeadAttention(2, 4, 8, 6).eval(), normal(1, 3, 8), normal(1, 5, 6), normal(1, 5, 6, seed=1)
    everything, notes = torch.ones(1, 1, 3, 5, dtype=torch.bool), {"same": Notes(), "other": Notes()}
    ours(x, memory, everything, SITE, Run(record=notes["same"]))
    ours(x, memory, everything, SITE, Run(record=notes["other"]), values)
    assert torch.equal(notes["other"][f"attention/{SITE}/weights"], notes["same"][f"attention/{SITE}/weights"])
    assert torch.equal(notes["other"][f"attention/{SITE}/v"], split_heads(ours.value(values), 2))


def test_dropout_called_straight_is_that_of_torch() -> None:
    x, dropout, theirs = normal(3, 5), Dropout(0.4), nn.Dropout(0.4)
    torch.manual_seed(3)
    dropped = dropout(x)
    torch.manual_seed(3)
    torch.testing.assert_close(dropped, theirs(x), rtol=0, atol=0)
    assert (dropped == 0).any()
    assert torch.equal(dropout.eval()(x), x)
