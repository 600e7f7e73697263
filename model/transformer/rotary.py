"""Rotary positions: queries and keys are turned by an angle that grows with their position; nothing is added to the embeddings.

Two columns of a head are the two coordinates of a point. At position p the point is turned by the angle p · w, a query and a key
alike. The dot product of two turned points depends on the difference of their angles alone, so a score sees how far query and key
are apart and not where they are. Values are not turned: what is passed on does not depend on the position.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", equations 14, 15 and 34.
"""

from typing import Protocol

import torch
from torch import Tensor


class Rotation(Protocol):
    """Turns the queries or keys of consecutive positions."""

    def __call__(self, x: Tensor, start: int, /) -> Tensor:
        """[batch, head, position, head_dim] -> the same shape; the first of the positions is `start`."""


def unrotated(x: Tensor, start: int) -> Tensor:
    """The queries or keys unchanged: another encoding gives the positions."""
    return x


def angles(start: int, count: int, head_dim: int, base: float, device: torch.device | None = None) -> Tensor:
    """The angle of each pair of columns at each position: p / base^(2i/head_dim) at position p, where i counts pairs from 0.

    As with sinusoids, the first pair turns fast, once in 6.28 positions, and the last one slowly. Computed in float32, as the
    programs do that such networks are trained with.

    Returns:
        [position, pair], float32.
    """
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim  # [pair], the 2i/head_dim
    positions = torch.arange(start, start + count, dtype=torch.float32, device=device)
    return positions[:, None] / base**exponents


def turned(first: Tensor, second: Tensor, by: Tensor) -> tuple[Tensor, Tensor]:
    """The points with coordinates `first` and `second`, turned by the angles `by`: all [..., position, pair]."""
    cosine, sine = by.cos().to(first.dtype), by.sin().to(first.dtype)
    return first * cosine - second * sine, first * sine + second * cosine


def rotary_pairs(x: Tensor, start: int, base: float) -> Tensor:
    """Turns each pair of neighbors: columns 0 and 1, 2 and 3, …, as in the paper and in the programs of the Llama models.

    Args:
        x: [batch, head, position, head_dim].
        start: position of the first row.
        base: 10000 in the paper.
    """
    by = angles(start, x.shape[-2], x.shape[-1], base, x.device)  # [position, pair]
    first, second = turned(x[..., 0::2], x[..., 1::2], by)
    return torch.stack([first, second], dim=-1).flatten(-2)  # the two of each pair side by side again


def rotary_halves(x: Tensor, start: int, base: float) -> Tensor:
    """Turns pairs that lie half a head apart: of 8 columns 0 and 4, 1 and 5, 2 and 6, 3 and 7. Arguments as for `rotary_pairs`.

    It is the same encoding with the columns in another order. A network that was trained with one order computes something else
    with the other: which one it is must be known.

    Source: Black et al. 2022, "GPT-NeoX-20B", section 2.1, and its program, whose order many programs took over.
    """
    by = angles(start, x.shape[-2], x.shape[-1], base, x.device)  # [position, pair]
    first, second = x.chunk(2, dim=-1)
    return torch.cat(turned(first, second, by), dim=-1)
