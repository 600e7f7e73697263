"""Heads are told from examples wherever the program puts them: first, in the batch, in parts; joined, added, or projected apart."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import headlight

BATCH, HEADS, TOKENS, WIDTH = 2, 3, 4, 5
MODEL = HEADS * WIDTH
GENERATOR = torch.Generator().manual_seed(3)
X = torch.randn(BATCH, TOKENS, MODEL, generator=GENERATOR)


class Heads(nn.Module):
    """Projections of each head, and the output as one matrix or as one for each head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.q, self.k, self.v = (nn.ModuleList(nn.Linear(MODEL, WIDTH) for _ in range(HEADS)) for _ in range(3))
        self.out, self.outs = nn.Linear(MODEL, MODEL), nn.ModuleList(nn.Linear(WIDTH, MODEL) for _ in range(HEADS))
        self.shared, self.matrix = nn.Linear(WIDTH, MODEL), nn.Parameter(torch.randn(HEADS, WIDTH, MODEL))

    def stacked(self, axis: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values with the heads on an axis of their own."""
        return tuple(torch.stack([project(X) for project in own], axis) for own in (self.q, self.k, self.v))  # type: ignore[return-value]

    def wide(self) -> tuple[Tensor, ...]:
        """[batch, position, head · head_dim]."""
        return tuple(torch.cat([project(X) for project in own], -1) for own in (self.q, self.k, self.v))


MODULE = Heads()


def expected() -> np.ndarray:
    """[batch, head, query, key] in float64."""
    q, k = (each.detach().double() for each in MODULE.stacked(1)[:2])
    return np.asarray((q @ k.mT).softmax(-1))


def weighed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    context: Tensor = (q @ k.mT).softmax(-1) @ v
    return context


def first() -> Tensor:
    return weighed(*MODULE.stacked(0))


def in_batch(join: Callable[[Tensor], Tensor]) -> Tensor:
    return weighed(*(join(each) for each in MODULE.wide()))


def head_major() -> Tensor:
    """[head · batch, query, head_dim], the TensorFlow way."""
    return in_batch(lambda each: torch.cat(each.split(WIDTH, -1), 0))


def batch_major() -> Tensor:
    """[batch · head, query, head_dim]."""
    return in_batch(lambda each: torch.stack(each.chunk(HEADS, -1), 1).flatten(0, 1))


def last() -> Tensor:
    """[batch, query, head_dim, head] at the end."""
    q, k, v = MODULE.stacked(-1)
    weights = torch.einsum("bqdh,bkdh->bqkh", q, k).softmax(2)
    context: Tensor = torch.einsum("bqkh,bkdh->bqdh", weights, v)
    return context


def interleaved(context: Tensor) -> Tensor:
    return context.permute(0, 1, 3, 2).reshape(BATCH, TOKENS, MODEL)


def projected_apart(parts: list[Tensor] | tuple[Tensor, ...]) -> Tensor:
    return torch.stack([project(part) for project, part in zip(MODULE.outs, parts, strict=True)]).sum(0)


def added_up(parts: tuple[Tensor, ...]) -> object:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return MODULE.shared(total)


def views() -> Tensor:
    q, k, v = (each.unflatten(-1, (HEADS, WIDTH)).transpose(1, 2) for each in MODULE.wide())
    return weighed(q, k, v)


PROGRAMS: dict[str, Callable[[], object]] = {
    "first, joined by cat of unbind": lambda: MODULE.out(torch.cat(first().unbind(0), -1)),
    "first, joined by cat of an index": lambda: MODULE.out(
        torch.cat([first_[h] for first_ in [first()] for h in range(HEADS)], -1)
    ),
    "first, joined by cat of a list": lambda: MODULE.out(torch.cat(list(first()), -1)),
    "first, joined by cat of chunks": lambda: MODULE.out(torch.cat(first().chunk(HEADS), -1).squeeze(0)),
    "first, joined by stack": lambda: MODULE.out(torch.stack(list(first()), 2).flatten(2)),
    "first, permuted": lambda: MODULE.out(first().permute(1, 2, 0, 3).reshape(BATCH, TOKENS, MODEL)),
    "first, a projection for each": lambda: projected_apart(first().unbind(0)),
    "first, a projection for each by index": lambda: sum(MODULE.outs[h](own[h]) for own in [first()] for h in range(HEADS)),
    "first, a matrix for each": lambda: torch.matmul(first(), MODULE.matrix[:, None]).sum(0),
    "first, a slice of a matrix for each": lambda: sum(part @ MODULE.matrix[h] for h, part in enumerate(first())),
    "first, einsum with a matrix": lambda: torch.einsum("hbqd,hde->bqe", first(), MODULE.matrix),
    "first, averaged": lambda: MODULE.shared(first().mean(0)),
    "first, summed": lambda: MODULE.shared(first().sum(dim=0)),
    "first, added up": lambda: added_up(first().unbind(0)),
    "second, joined by cat of unbind": lambda: MODULE.out(torch.cat(weighed(*MODULE.stacked(1)).unbind(1), -1)),
    "second, a projection for each": lambda: projected_apart(weighed(*MODULE.stacked(1)).unbind(1)),
    "second, averaged": lambda: MODULE.shared(weighed(*MODULE.stacked(1)).mean(1)),
    "second, from views": lambda: MODULE.out(views().transpose(1, 2).flatten(2)),
    "third": lambda: MODULE.out(
        torch.einsum(
            "bqhk,bkhd->bqhd",
            torch.einsum("bqhd,bkhd->bqhk", *MODULE.stacked(2)[:2]).softmax(-1),
            MODULE.stacked(2)[2],
        ).flatten(2)
    ),
    "last": lambda: MODULE.out(interleaved(last())),
    "last, joined by cat": lambda: MODULE.out(torch.cat(last().unbind(-1), -1)),
    "before the batch, split": lambda: MODULE.out(torch.cat(head_major().split(BATCH, 0), -1)),
    "before the batch, chunked": lambda: MODULE.out(torch.cat(head_major().chunk(HEADS, 0), 2)),
    "before the batch, sliced": lambda: MODULE.out(
        torch.cat([own[h * BATCH : (h + 1) * BATCH] for own in [head_major()] for h in range(HEADS)], -1)
    ),
    "before the batch, viewed": lambda: MODULE.out(head_major().view(HEADS, BATCH, TOKENS, WIDTH).permute(1, 2, 0, 3).flatten(2)),
    "before the batch, a projection for each": lambda: projected_apart(head_major().split(BATCH, 0)),
    "after the batch, each example projected": lambda: [
        MODULE.out(torch.cat(list(own), -1)) for own in batch_major().split(HEADS, 0)
    ],
    "after the batch, viewed": lambda: MODULE.out(batch_major().view(BATCH, HEADS, TOKENS, WIDTH).transpose(1, 2).flatten(2)),
    "after the batch, stacked": lambda: MODULE.out(
        torch.stack([torch.cat(list(own), -1) for own in batch_major().split(HEADS, 0)])
    ),
}


@pytest.mark.parametrize("example", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_heads_are_told_from_examples(name: str, example: int) -> None:
    with headlight.record(example=example) as recording:
        PROGRAMS[name]()
    assert recording.missing == {}
    (site,) = recording.sites
    assert (site.batch, site.shape) == (BATCH, (HEADS, TOKENS, TOKENS))
    np.testing.assert_allclose(site.written(), expected()[example], atol=1e-5)


def by_kernel(axis: int) -> Tensor:
    q, k, v = MODULE.stacked(axis)
    context: Tensor = scaled_dot_product_attention(q, k, v, scale=1.0)
    return context


KERNELS: dict[str, Callable[[], object]] = {
    "first, joined by cat": lambda: MODULE.out(torch.cat(list(by_kernel(0)), -1)),
    "first, permuted": lambda: MODULE.out(by_kernel(0).permute(1, 2, 0, 3).flatten(2)),
    "first, a projection for each": lambda: projected_apart(by_kernel(0).unbind(0)),
    "first, averaged": lambda: MODULE.shared(by_kernel(0).mean(0)),
    "first, added up": lambda: added_up(by_kernel(0).unbind(0)),
    "second, joined by cat": lambda: MODULE.out(torch.cat(by_kernel(1).unbind(1), -1)),
    "second, permuted": lambda: MODULE.out(by_kernel(1).transpose(1, 2).flatten(2)),
}


@pytest.mark.parametrize("example", [0, 1])
@pytest.mark.parametrize("name", KERNELS)
def test_heads_that_a_kernel_takes_for_examples_are_told_from_them(name: str, example: int) -> None:
    with torch.no_grad(), headlight.record(example=example) as recording:
        KERNELS[name]()
    (site,) = recording.sites
    assert (recording.missing, site.batch, site.shape) == ({}, BATCH, (HEADS, TOKENS, TOKENS))
    assert site.difference is not None
    assert site.difference < 1e-5
    np.testing.assert_allclose(site.written(), expected()[example], atol=1e-5)


def one_head() -> Tensor:
    return weighed(MODULE.q[0](X), MODULE.k[0](X), MODULE.v[0](X))


ONE_HEAD: dict[str, Callable[[], object]] = {
    "projected": lambda: MODULE.shared(one_head()),
    "each example by itself": lambda: torch.stack([MODULE.shared(own) for own in one_head()]),
    "not projected": one_head,
    "an axis of length 1": lambda: MODULE.shared(weighed(*(each[:, :1] for each in MODULE.stacked(1))).squeeze(1)),
    "an axis of length 1 in front": lambda: MODULE.shared(weighed(*(each[:1] for each in MODULE.stacked(0))).squeeze(0)),
}


@pytest.mark.parametrize("name", ONE_HEAD)
def test_examples_are_never_heads(name: str) -> None:
    with headlight.record(example=1) as recording:
        ONE_HEAD[name]()
    (site,) = recording.sites
    np.testing.assert_allclose(site.written(), expected()[1, :1], atol=1e-5)


@pytest.mark.parametrize("axis", [0, 1])
def test_where_nothing_tells_the_heads_they_are_asked_for(axis: int) -> None:
    def program() -> Tensor:
        return weighed(*MODULE.stacked(axis))

    with headlight.record(example=1) as recording:
        program()
    assert recording.sites == []
    assert "is the heads: say it with heads=AXIS" in recording.missing["attention/no module"]
    with headlight.record(example=1, heads=axis) as recording:
        program()
    np.testing.assert_allclose(recording.sites[0].written(), expected()[1], atol=1e-5)


def test_where_the_usual_order_of_axes_is_taken_it_is_said() -> None:
    with headlight.record(example=1) as recording:
        views()
    np.testing.assert_allclose(recording.sites[0].written(), expected()[1], atol=1e-5)
    (note,) = recording.notes
    assert note.startswith("Nothing tells which axis of the weights in the program is the heads")


def test_where_one_axis_may_be_heads_or_examples_it_is_said() -> None:
    """A program writes its contexts into a tensor of its own, where they cannot be followed."""
    out = torch.zeros(BATCH * HEADS, TOKENS, WIDTH)

    def program() -> None:
        out[:] = head_major()

    with headlight.record() as recording:
        program()
    (note,) = recording.notes
    assert note.startswith("Nothing tells whether axis 0 of the weights in the program, counted from 0, is heads or examples")


def test_contexts_that_are_added_have_the_same_heads() -> None:
    q, k, v = MODULE.stacked(0)
    with headlight.record(example=1) as recording:
        context = weighed(q, k, v) + weighed(k, q, v)
        MODULE.out(context.permute(1, 2, 0, 3).flatten(2))
    first_site, second = recording.sites
    np.testing.assert_allclose(first_site.written(), expected()[1], atol=1e-5)
    np.testing.assert_allclose(second.written(), (k @ q.mT).softmax(-1)[:, 1].detach(), atol=1e-5)
