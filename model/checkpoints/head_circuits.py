"""Head circuits: the two products of a head's matrices that say what it does; heads that do nothing (dead) or the same (twins).

A head compares x W_Q with y W_K, so W_Q W_Kᵀ decides where it attends. It adds weighted y W_V W_O, so W_V W_O decides what it
writes. The single matrices say less: an invertible map between W_Q and W_K, or between W_V and W_O, changes them and not the
products. Rotary positions turn both in between: W_Q W_Kᵀ is then what a head compares at distance 0.

Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", QK and OV circuits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model.inspection.report import HeadNote
from model.trace.types import Site
from model.transformer.attention import MultiHeadAttention
from model.transformer.shared_head import SharedProjection

DEAD, TWIN = 0.01, 0.99
"""Thresholds, see HeadNote: a share of the largest norm, and a cosine. Products of random heads have a cosine of about 0."""

_PATH_OF_SITE = re.compile(r"(?:(encoder|decoder)\.)?layers\.(\d+)\.(attention|self_attention|cross_attention|memory_attention)")
_KINDS = {"attention": "self", "self_attention": "self", "cross_attention": "cross", "memory_attention": "memory"}


@dataclass(frozen=True)
class HeadMaps:
    """The matrices of all heads of a site, without biases.

    Attributes:
        query, key, value: [head, head_dim, model].
        output: [head, model, head_dim].
    """

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor

    @property
    def products(self) -> dict[str, tuple[Tensor, Tensor]]:
        """The two factors of each product, by the product's name: [head, model, head_dim] and [head, head_dim, model]."""
        return {"query-key": (self.query.mT, self.key), "value-output": (self.output, self.value)}


def sites(network: nn.Module) -> dict[Site, MultiHeadAttention]:
    """The attention sublayers, by their site in the first pass."""
    attentions = {}
    for name, module in network.named_modules():
        if isinstance(module, MultiHeadAttention) and (match := _PATH_OF_SITE.fullmatch(name)):
            attentions[Site(match[1] or "decoder", 0, int(match[2]), _KINDS[match[3]])] = module  # type: ignore[arg-type]  # of _KINDS
    return attentions


def head_maps(attention: MultiHeadAttention) -> HeadMaps:
    """The matrices of each head, in float64."""
    query = _rows(attention.query, attention.heads)
    groups = attention.heads // attention.key_heads  # heads that share their keys and values
    key, value = (
        _rows(projection, attention.key_heads).repeat_interleave(groups, 0) for projection in (attention.key, attention.value)
    )
    output: Tensor = attention.output.weight.detach().cpu().double().unflatten(1, (attention.heads, -1))  # [model, head, head_dim]
    return HeadMaps(query, key, value, output.transpose(0, 1))


def _rows(projection: nn.Linear, heads: int) -> Tensor:
    """A projection by head, [head, head_dim, model]. A shared one is zero outside of the head's own columns of the stream."""
    weight = projection.weight.detach().cpu().double().contiguous()  # kron takes no weights that are stored column by column
    if isinstance(projection, SharedProjection):
        identity = torch.eye(heads, dtype=weight.dtype)
        return torch.stack([torch.kron(identity[head : head + 1], weight) for head in range(heads)])
    separate: Tensor = weight.unflatten(0, (heads, -1))
    return separate


def singular_values(left: Tensor, right: Tensor) -> Tensor:
    """Singular values of each head's product, in falling order: [head, head_dim]; all others are 0. NaN where a factor is not
    finite.

    Args:
        left: [head, model, head_dim].
        right: [head, head_dim, model].
    """
    if not (left.isfinite().all() and right.isfinite().all()):
        return torch.full((len(left), left.shape[-1]), torch.nan)
    # the product is [model, model] and of low rank; its factors are not
    inner = torch.linalg.qr(left).R @ torch.linalg.qr(right.mT).R.mT  # [head, head_dim, head_dim]: the same singular values
    values: Tensor = torch.linalg.svdvals(inner)
    return values


def notes(network: nn.Module) -> tuple[HeadNote, ...]:
    """Notes about dead and twin heads of the network."""
    return tuple(note for site, attention in sites(network).items() for note in _notes(site, head_maps(attention)))


def _notes(site: Site, maps: HeadMaps) -> Iterator[HeadNote]:
    inner = {name: _inner(*factors) for name, factors in maps.products.items()}
    # a head whose product is a hundredth of the largest one writes next to nothing
    norms = inner["value-output"].diagonal().clamp(min=0).sqrt()
    dead = [head for head, norm in enumerate(norms.tolist()) if norm == 0 or norm < DEAD * norms.max().item()]
    for head in dead:
        yield HeadNote(str(site), head, "dead", "value-output", norms[head].item())
    for name, products in inner.items():
        lengths = products.diagonal().clamp(min=0).sqrt()
        cosines = products / (lengths[:, None] * lengths)
        for head, other in (cosines >= TWIN).triu(diagonal=1).nonzero().tolist():
            if head not in dead and other not in dead:
                yield HeadNote(str(site), head, "twin", name, cosines[head, other].item(), other)


def _inner(left: Tensor, right: Tensor) -> Tensor:
    """Inner products between the heads' products, [head, head], computed from the factors without forming the products."""
    first = torch.einsum("hmd,gme->hgde", left, left)
    second = torch.einsum("hdm,gem->hgde", right, right)
    return (first * second).sum(dim=(-2, -1))
