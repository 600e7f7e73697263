"""Every way to write attention by hand is seen, and its weights are those of an independent computation in float64."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

import headlight

BATCH, HEADS, QUERIES, KEYS, WIDTH = 2, 3, 4, 5, 6
GENERATOR = torch.Generator().manual_seed(0)
Q = torch.randn(BATCH, HEADS, QUERIES, WIDTH, generator=GENERATOR)
K = torch.randn(BATCH, HEADS, KEYS, WIDTH, generator=GENERATOR)
V = torch.randn(BATCH, HEADS, KEYS, WIDTH, generator=GENERATOR)
ALLOWED = torch.ones(QUERIES, KEYS, dtype=torch.bool).tril(1)


def expected(mask: Tensor | None = None) -> np.ndarray:
    """[batch, head, query, key], in float64, from the formula."""
    scores = np.einsum("bhqd,bhkd->bhqk", Q.double().numpy(), K.double().numpy())
    if mask is not None:
        scores = np.where(mask.numpy(), scores, -np.inf)
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(-1, keepdims=True))


def joined(context: Tensor) -> Tensor:
    """[batch, query, head · head_dim]."""
    return context.transpose(1, 2).reshape(BATCH, QUERIES, HEADS * WIDTH)


def matmul() -> Tensor:
    return joined((Q @ K.transpose(-1, -2)).softmax(-1) @ V)


def functional_softmax() -> Tensor:
    return joined(torch.matmul(functional.softmax(torch.matmul(Q, K.mT), dim=3), V))


def torch_softmax_in_float64() -> Tensor:
    return joined(torch.softmax(Q @ K.mT, -1, dtype=torch.float64).float() @ V)


def softmax_module() -> Tensor:
    return joined(torch.nn.Softmax(dim=-1)(Q @ K.mT) @ V)


def einsum() -> Tensor:
    scores = torch.einsum("bqhd,bkhd->bhqk", Q.transpose(1, 2), K.transpose(1, 2))
    return torch.einsum("bhqk,bkhd->bqhd", scores.softmax(-1), V.transpose(1, 2)).flatten(2)


def einsum_with_the_axes_elsewhere() -> Tensor:
    weights = torch.einsum("bhid,bhjd->ijbh", Q, K).softmax(1)
    return torch.einsum("ijbh,bhjd->bihd", weights, V).reshape(BATCH, QUERIES, -1)


def einsum_into_the_output_projection() -> Tensor:
    context = (Q @ K.mT).softmax(-1) @ V
    return torch.einsum("bhqd,hde->bqe", context, torch.ones(HEADS, WIDTH, 7))


def heads_in_the_batch() -> Tensor:
    q, k, v = (each.flatten(0, 1) for each in (Q, K, V))
    return joined(torch.bmm(torch.bmm(q, k.mT).softmax(-1), v).view(BATCH, HEADS, QUERIES, WIDTH))


def values_on_the_left() -> Tensor:
    weights = (K @ Q.mT).softmax(-2)  # [batch, head, key, query]
    return (V.mT @ weights).permute(0, 3, 1, 2).reshape(BATCH, QUERIES, -1)


def multiplied_and_summed() -> Tensor:
    weights = (Q @ K.mT).softmax(-1)
    return joined((weights.unsqueeze(-1) * V.unsqueeze(-3)).sum(-2))


def exp_and_sum() -> Tensor:
    scores = Q @ K.mT
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return joined(exponentials / exponentials.sum(-1, keepdim=True) @ V)


def exp_divided_at_the_end() -> Tensor:
    scores = Q @ K.mT
    exponentials = torch.exp(scores - scores.amax(-1, keepdim=True))
    return joined(exponentials @ V / exponentials.sum(-1, keepdim=True))


def exp_of_the_logarithm() -> Tensor:
    scores = Q @ K.mT
    return joined((scores - scores.logsumexp(-1, keepdim=True)).exp() @ V)


def exp_of_log_softmax() -> Tensor:
    return joined((Q @ K.mT).log_softmax(-1).exp() @ V)


def in_place() -> Tensor:
    scores = Q @ K.mT
    scores.exp_()
    scores /= scores.sum(-1, keepdim=True)
    return joined(scores @ V)


def with_dropout() -> Tensor:
    return joined(functional.dropout((Q @ K.mT).softmax(-1), 0.5) @ V)


def with_dropout_in_place() -> Tensor:
    return joined(functional.dropout((Q @ K.mT).softmax(-1), 0.5, inplace=True) @ V)


PLAIN = [
    matmul,
    functional_softmax,
    torch_softmax_in_float64,
    softmax_module,
    einsum,
    einsum_with_the_axes_elsewhere,
    einsum_into_the_output_projection,
    heads_in_the_batch,
    values_on_the_left,
    multiplied_and_summed,
    exp_and_sum,
    exp_divided_at_the_end,
    exp_of_the_logarithm,
    exp_of_log_softmax,
    in_place,
    with_dropout,
    with_dropout_in_place,
]


def recorded(program: Callable[[], Tensor], example: int) -> headlight.Site:
    with headlight.record(example=example, keep=["qkv", "context"]) as recording:
        program()
    assert recording.missing == {}
    (site,) = recording.sites
    return site


@pytest.mark.parametrize("example", [0, 1])
@pytest.mark.parametrize("program", PLAIN, ids=lambda program: program.__name__)
def test_attention_by_hand_is_seen(program: Callable[[], Tensor], example: int) -> None:
    site = recorded(program, example)
    assert (site.origin, site.batch, site.difference) == ("computed", BATCH, None)
    np.testing.assert_allclose(site.written(), expected()[example], atol=1e-5)
    assert site.mask is not None
    assert site.mask.all()
    assert site.q is not None
    assert site.k is not None
    own_q, own_k = (site.q, site.k) if site.q.shape == (HEADS, QUERIES, WIDTH) else (site.k, site.q)
    np.testing.assert_array_equal(own_q, Q[example])
    np.testing.assert_array_equal(own_k, K[example])


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_it_is_seen_in_every_mode_of_autograd(mode: Callable[[], "torch.inference_mode"]) -> None:
    with mode():
        site = recorded(einsum, 0)
    np.testing.assert_allclose(site.written(), expected()[0], atol=1e-5)


MASKED: dict[str, Callable[[Tensor], Tensor]] = {
    "masked_fill": lambda scores: scores.masked_fill(~ALLOWED, -math.inf),
    "the smallest number": lambda scores: scores.masked_fill(~ALLOWED, torch.finfo(scores.dtype).min),
    "where": lambda scores: torch.where(ALLOWED, scores, -1e9),
    "added": lambda scores: scores + (~ALLOWED) * -1e4,
    "in place": lambda scores: scores.masked_fill_(~ALLOWED, -math.inf),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_mask_is_seen_however_it_is_applied(name: str) -> None:
    site = recorded(lambda: joined(MASKED[name](Q @ K.mT).softmax(-1) @ V), 0)
    assert site.mask is not None
    np.testing.assert_array_equal(site.mask, ALLOWED)
    np.testing.assert_allclose(site.written(), expected(ALLOWED)[0], atol=1e-5)


def test_a_weight_that_underflows_is_not_masked() -> None:
    site = recorded(lambda: joined((Q @ K.mT * 200).softmax(-1) @ V), 0)
    assert site.mask is not None
    assert (site.written() == 0).any()
    assert site.mask.all()


def test_a_mask_multiplied_into_the_exponentials_is_seen() -> None:
    def program() -> Tensor:
        exponentials = (Q @ K.mT).exp() * ALLOWED
        return joined(exponentials / exponentials.sum(-1, keepdim=True) @ V)

    np.testing.assert_allclose(recorded(program, 1).written(), expected(ALLOWED)[1], atol=1e-5)


def test_weights_that_were_changed_after_the_softmax_are_those_that_weighed() -> None:
    gate = torch.tensor([1.0, 0.5, 0.0]).view(1, HEADS, 1, 1)
    site = recorded(lambda: joined(((Q @ K.mT).softmax(-1) * gate) @ V), 0)
    np.testing.assert_allclose(site.written(), expected()[0] * gate[0].numpy(), atol=1e-5)


def test_a_sink_takes_its_share() -> None:
    def program() -> Tensor:
        sink = torch.zeros(BATCH, HEADS, QUERIES, 1)
        return joined(torch.cat([Q @ K.mT, sink], -1).softmax(-1)[..., :-1] @ V)

    exponentials = np.exp(np.einsum("hqd,hkd->hqk", Q[0].double(), K[0].double()))
    with headlight.record() as recording:
        program()
    np.testing.assert_allclose(recording.sites[0].written(), exponentials / (1 + exponentials.sum(-1, keepdims=True)), atol=1e-5)


def test_one_head_without_an_axis_of_its_own() -> None:
    site = recorded(lambda: (Q[:, 0] @ K[:, 0].mT).softmax(-1) @ V[:, 0], 1)
    np.testing.assert_allclose(site.written(), expected()[1, :1], atol=1e-5)


def test_two_dimensions_are_one_example_of_one_head() -> None:
    with headlight.record() as recording:
        _ = (Q[0, 0] @ K[0, 0].mT).softmax(-1) @ V[0, 0]
    (site,) = recording.sites
    np.testing.assert_allclose(site.written(), expected()[0, :1], atol=1e-5)


def test_one_softmax_that_weighs_twice_is_one_site() -> None:
    def program() -> Tensor:
        weights = (Q @ K.mT).softmax(-1)
        return joined(weights @ V) + joined(weights @ (V + 1))

    np.testing.assert_allclose(recorded(program, 0).written(), expected()[0], atol=1e-5)


def test_a_softmax_that_weighs_nothing_is_named_and_is_no_site() -> None:
    with headlight.record() as recording:
        (Q @ K.mT).softmax(-1).argmax(-1)
        torch.einsum("bhqk,hg->bgqk", (Q @ K.mT).softmax(-1), torch.ones(HEADS, HEADS)) @ V
    assert not recording.sites
    assert "no values were seen to be weighted by a softmax" in recording.missing["attention/no module"]


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(*[st.integers(1, 4)] * 5),
    st.permutations("bhqk"),
    st.sampled_from(["bqhd", "bhqd", "qbhd", "hbqd"]),
)
def test_any_order_of_axes_and_any_sizes(sizes: tuple[int, ...], order: list[str], out: str) -> None:
    """Axes of size 1, batches as long as heads, keys before queries: the axes are told by what is computed."""
    batch, heads, queries, keys, width = sizes
    width += 1
    q, k = torch.randn(batch, heads, queries, width), torch.randn(batch, heads, keys + 1, width)
    axes = "".join(order)
    with headlight.record() as recording:
        weights = torch.einsum(f"bhqd,bhkd->{axes}", q, k).softmax(axes.index("k"))
        context = torch.einsum(f"{axes},bhkd->{out}", weights, k)
        context.permute([out.index(axis) for axis in "bqhd"]).reshape(batch, queries, heads * width)
    (site,) = recording.sites
    wanted = torch.einsum("hqd,hkd->hqk", q[0].double(), k[0].double()).softmax(-1)
    np.testing.assert_allclose(site.written(), wanted, atol=1e-5)
