"""Weights that a program changes after its softmax are shown as they weighed the values; dropout is no change."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import headlight
from tests.record.test_record_forms import ALLOWED, HEADS, KEYS, K, Q, V, expected, joined

PADDED = torch.tensor([True, True, True, False])[:, None]
"""[query, 1]: the last row is padding."""

HEAD_MASK = torch.tensor([1.0, 0.0, 1.0]).view(HEADS, 1, 1)
WEIGHTS = torch.from_numpy(expected()).float()


def assigned(weights: Tensor) -> Tensor:
    weights = weights.clone()
    weights[..., 1] = 0
    return weights


def renormalized(weights: Tensor) -> Tensor:
    allowed = weights * ALLOWED
    return allowed / allowed.sum(-1, keepdim=True)


def strongest(weights: Tensor) -> Tensor:
    return weights.masked_fill(weights < weights.topk(2, -1).values[..., -1:], 0)


CHANGES: dict[str, Callable[[Tensor], Tensor]] = {
    "a matrix of 0 and 1": lambda weights: weights * ALLOWED,
    "a matrix of 0 and 1 on the left": lambda weights: ALLOWED.float() * weights,
    "a matrix of 0 and 2": lambda weights: weights * (ALLOWED * 2.0),
    "masked_fill": lambda weights: weights.masked_fill(~ALLOWED, 0.0),
    "masked_fill in place": lambda weights: weights.masked_fill_(~ALLOWED, 0.0),
    "where": lambda weights: torch.where(ALLOWED, weights, 0.0),
    "where with a tensor": lambda weights: torch.where(ALLOWED, weights, torch.zeros(())),
    "a padding row": lambda weights: weights * PADDED,
    "a head mask": lambda weights: weights * HEAD_MASK,
    "a threshold": lambda weights: weights * (weights > 0.2),
    "functional.threshold": lambda weights: functional.threshold(weights, 0.2, 0.0),
    "the strongest two": strongest,
    "a factor": lambda weights: weights * 0.7,
    "a factor in place": lambda weights: weights.mul_(2.0),
    "a quotient": lambda weights: weights / 3,
    "one key set to 0": assigned,
    "tril": lambda weights: weights.tril(),
    "smoothed": lambda weights: 0.9 * weights + 0.1 / KEYS,
    "less a threshold": lambda weights: functional.relu(weights - 0.1),
    "sharpened": lambda weights: weights**2 / (weights**2).sum(-1, keepdim=True),
    "clamped": lambda weights: weights.clamp(max=0.3),
    "masked, then divided by its sum": renormalized,
}

PRODUCTS: dict[str, Callable[[Tensor], Tensor]] = {
    "matmul": lambda weights: joined(weights @ V),
    "bmm": lambda weights: joined(torch.bmm(weights.flatten(0, 1), V.flatten(0, 1)).view(*weights.shape[:3], -1)),
    "einsum": lambda weights: torch.einsum("bhqk,bhkd->bqhd", weights, V).flatten(2),
    "a product and a sum": lambda weights: joined((weights[..., None] * V[..., None, :, :]).sum(-2)),
}


def recorded(change: Callable[[Tensor], Tensor], product: Callable[[Tensor], Tensor], example: int = 0) -> headlight.Site:
    with headlight.record(example=example, keep=["context"]) as recording:
        product(change((Q @ K.mT).softmax(-1)))
    assert recording.missing == {}
    (site,) = recording.sites
    return site


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("change", CHANGES)
def test_the_weights_that_weighed_are_shown(change: str, product: str) -> None:
    site = recorded(CHANGES[change], PRODUCTS[product], example=1)
    wanted = CHANGES[change](WEIGHTS.clone())[1]
    np.testing.assert_allclose(site.written(), wanted, atol=1e-6)


def by_hand(weights: Tensor) -> Tensor:
    return weights * (torch.rand_like(weights) > 0.25) / 0.75


def by_a_drawn_mask(weights: Tensor) -> Tensor:
    return weights.masked_fill(torch.rand(weights.shape) < 0.25, 0.0) * (1 / 0.75)


def by_bernoulli(weights: Tensor) -> Tensor:
    return torch.bernoulli(torch.full_like(weights, 0.75)).div(0.75) * weights


DROPOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "functional": lambda weights: functional.dropout(weights, 0.5),
    "in place": lambda weights: functional.dropout(weights, 0.5, inplace=True),
    "module": nn.Dropout(0.1),
    "native": lambda weights: torch.native_dropout(weights, 0.5, True)[0],
    "of whole heads": lambda weights: functional.dropout2d(weights, 0.5),
    "by hand": by_hand,
    "a drawn mask": by_a_drawn_mask,
    "bernoulli": by_bernoulli,
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("dropout", DROPOUTS)
def test_weights_are_shown_before_dropout(dropout: str, product: str) -> None:
    torch.manual_seed(1)
    site = recorded(DROPOUTS[dropout], PRODUCTS[product])
    np.testing.assert_allclose(site.written(), WEIGHTS[0], atol=1e-6)


@pytest.mark.parametrize("inplace", [False, True])
@pytest.mark.parametrize(
    "change", ["a matrix of 0 and 1", "masked_fill in place", "a factor", "a head mask", "where", "a quotient"]
)
def test_a_change_before_or_after_dropout_is_shown_without_it(change: str, inplace: bool) -> None:
    torch.manual_seed(1)
    own, wanted = CHANGES[change], CHANGES[change](WEIGHTS.clone())[0]
    for program in (
        lambda weights: functional.dropout(own(weights), 0.5, inplace=inplace),
        lambda weights: own(functional.dropout(weights, 0.5, inplace=inplace)),
    ):
        np.testing.assert_allclose(recorded(program, PRODUCTS["matmul"]).written(), wanted, atol=1e-6)


def test_a_drawn_mask_that_scales_nothing_is_a_change() -> None:
    torch.manual_seed(1)
    drawn = (torch.rand(WEIGHTS.shape) > 0.5).float()
    torch.manual_seed(1)
    site = recorded(lambda weights: weights * (torch.rand(weights.shape) > 0.5), PRODUCTS["matmul"])
    np.testing.assert_allclose(site.written(), (WEIGHTS * drawn)[0], atol=1e-6)


def test_dropout_of_an_evaluated_module_is_none() -> None:
    site = recorded(lambda weights: nn.Dropout(0.5).eval()(weights) * ALLOWED, PRODUCTS["matmul"])
    np.testing.assert_allclose(site.written(), (WEIGHTS * ALLOWED)[0], atol=1e-6)


@pytest.mark.parametrize("extra", [0.0, 1.0], ids=["softmax", "softmax1"])
@pytest.mark.parametrize("reciprocal", [False, True])
def test_a_sum_that_divides_the_values_may_hold_more_than_the_weights(extra: float, reciprocal: bool) -> None:
    def program() -> Tensor:
        exponentials = (Q @ K.mT).exp()
        total = exponentials.sum(-1, keepdim=True) + extra
        context = exponentials @ V
        return joined(context * (1 / total) if reciprocal else context / total)

    with headlight.record() as recording:
        program()
    exponentials = np.exp(np.einsum("hqd,hkd->hqk", Q[0].double(), K[0].double()))
    np.testing.assert_allclose(
        recording.sites[0].written(), exponentials / (extra + exponentials.sum(-1, keepdims=True)), rtol=1e-5, atol=1e-6
    )


def test_a_mask_after_the_sum_is_shown() -> None:
    def program() -> Tensor:
        exponentials = (Q @ K.mT).exp()
        return joined((exponentials * ALLOWED) @ V / exponentials.sum(-1)[..., None])

    with headlight.record() as recording:
        program()
    np.testing.assert_allclose(recording.sites[0].written(), (WEIGHTS * ALLOWED)[0], atol=1e-6)


def test_a_buffer_that_is_used_again_after_it_weighed_leaves_the_weights() -> None:
    def program() -> Tensor:
        weights = (Q @ K.mT).softmax(-1)
        context = weights @ V
        weights.zero_()
        return joined(context)

    with headlight.record() as recording:
        program()
    np.testing.assert_allclose(recording.sites[0].written(), WEIGHTS[0], atol=1e-6)
