"""Queries that a program cuts into parts, to save memory, are rows of one map, whatever cuts them and whatever weighs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import headlight

HEADS, TOKENS, WIDTH = 2, 8, 5
X = torch.randn(1, TOKENS, HEADS * WIDTH, generator=torch.Generator().manual_seed(5))


class Program(nn.Module):
    """Attention whose queries come in parts."""

    def __init__(self, weigh: Callable[[Tensor, Tensor, Tensor], Tensor], cut: Callable[[Tensor], list[Tensor]]) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.q, self.k, self.v, self.out = (nn.Linear(HEADS * WIDTH, HEADS * WIDTH) for _ in range(4))
        self.weigh, self.cut, self.early = weigh, cut, False

    def heads(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], HEADS, WIDTH).transpose(1, 2)

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.heads(self.k(x)), self.heads(self.v(x))
        parts = [self.heads(self.q(part)) for part in self.cut(x)] if self.early else self.cut(self.heads(self.q(x)))
        context = torch.cat([self.weigh(part, k, v) for part in parts], 2)
        joined: Tensor = self.out(context.transpose(1, 2).flatten(2))
        return joined


def by_matmul(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return (q @ k.mT / WIDTH**0.5).softmax(-1) @ v


def by_einsum(q: Tensor, k: Tensor, v: Tensor) -> Any:
    return torch.einsum("bhqk,bhkd->bhqd", (torch.einsum("bhqd,bhkd->bhqk", q, k) / WIDTH**0.5).softmax(-1), v)


def by_bmm(q: Tensor, k: Tensor, v: Tensor) -> Any:
    weights = torch.bmm(q.flatten(0, 1) / WIDTH**0.5, k.flatten(0, 1).mT).softmax(-1)
    return torch.bmm(weights, v.flatten(0, 1)).view(1, HEADS, -1, WIDTH)


def by_hand(q: Tensor, k: Tensor, v: Tensor) -> Any:
    exponentials = (q @ k.mT / WIDTH**0.5).exp()
    return exponentials / exponentials.sum(-1, keepdim=True) @ v


WEIGHINGS = [by_matmul, by_einsum, by_bmm, by_hand, scaled_dot_product_attention]

CUTS: dict[str, Callable[[Tensor], list[Tensor]]] = {
    "split": lambda q: list(q.split(3, -2)),
    "chunk": lambda q: list(q.chunk(2, -2)),
    "slices": lambda q: [q[..., start : start + 3, :] for start in range(0, TOKENS, 3)],
    "narrow": lambda q: [q.narrow(-2, start, 4) for start in (0, 4)],
    "single rows": lambda q: [q[..., row : row + 1, :] for row in range(TOKENS)],
    "unbind": lambda q: [row.unsqueeze(-2) for row in q.unbind(-2)],
    "an index": lambda q: [q[..., row, :].unsqueeze(-2) for row in range(TOKENS)],
}


@pytest.mark.parametrize("early", [False, True], ids=["queries", "inputs"])
@pytest.mark.parametrize(
    "weigh", [by_matmul, by_einsum, by_bmm, by_hand, scaled_dot_product_attention], ids=lambda own: own.__name__
)
@pytest.mark.parametrize("cut", CUTS)
def test_parts_are_rows_of_one_map(cut: str, weigh: Callable[[Tensor, Tensor, Tensor], Tensor], early: bool) -> None:
    program = Program(weigh, CUTS[cut])
    program.early = early
    with torch.no_grad(), headlight.record(program) as recording:
        program(X)
    q, k = (program.heads(own(X)).detach().double()[0] for own in (program.q, program.k))
    (site,) = recording.sites
    assert (site.kind, site.shape, recording.missing, recording.notes) == ("self", (HEADS, TOKENS, TOKENS), {}, [])
    np.testing.assert_allclose(site.written(), (q @ k.mT / WIDTH**0.5).softmax(-1), atol=1e-6)


def test_parts_that_read_up_to_their_own_end_are_one_causal_map() -> None:
    program = Program(by_matmul, CUTS["split"])
    ends = iter((3, 6, 8))
    program.weigh = lambda q, k, v: by_matmul(q, k[..., : (end := next(ends)), :], v[..., :end, :])
    with torch.no_grad(), headlight.record(program) as recording:
        program(X)
    (site,) = recording.sites
    assert site.shape == (HEADS, TOKENS, TOKENS)
    assert site.mask is not None
    assert site.mask.sum(-1).tolist() == [3, 3, 3, 6, 6, 6, 8, 8]


def test_parts_that_read_keys_of_their_own_are_named() -> None:
    program = Program(by_matmul, CUTS["chunk"])
    starts = iter((0, 4))
    program.weigh = lambda q, k, v: by_matmul(q, k[..., (own := next(starts)) : own + 4, :], v[..., own : own + 4, :])
    with torch.no_grad(), headlight.record(program) as recording:
        program(X)
    assert [site.shape for site in recording.sites] == [(HEADS, 4, 4)] * 2
    (note,) = recording.notes
    assert note.startswith("Program cut its queries into parts that read keys of their own.")


def test_two_attentions_of_one_module_are_not_parts() -> None:
    program = Program(by_matmul, lambda q: [q, q * 2])
    with torch.no_grad(), headlight.record(program) as recording:
        program(X)
    assert [site.shape for site in recording.sites] == [(HEADS, TOKENS, TOKENS)] * 2
