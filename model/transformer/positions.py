"""Positions: attention alone does not know the order of its keys, so each position adds a vector of its own to the embedding.

All kinds answer one question, `rows(start, count)`.
"""

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn


class PositionalEncoding(Protocol):
    """What is added to the embeddings of consecutive positions."""

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""


class LearnedPositions(nn.Module):
    """One free vector for each position, learned like a word's: nothing says what lies beyond the last.

    Source: section 3.5, the alternative that the authors compared; table 3, row E.
    """

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))  # build() draws the numbers

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.weight[start : start + count]


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle.

    Column 2i is a wave of the length 2π · 10000^(2i/d_model) positions: from 6.28 in the first columns to nearly 62,832.
    Worked out in float64, since the sine of a large float32 angle is off in the fourth digit.

    Args:
        positions: [position], integers.

    Returns:
        [position, model], float32.

    Source: section 3.5.
    """
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model
    angles = positions.double()[:, None] / 10000.0**exponents  # [position, model / 2]
    interleaved = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # [position, model (+ 1 if odd)]
    return interleaved[:, :d_model].float()


def column_sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """PE(pos, i) = sin(pos / 10000^(2i/d_model)) in even columns i, and the cosine of that angle in odd ones.

    The exponent counts columns where the paper counts pairs of columns, so the waves grow twice as fast, and the sine and the
    cosine side by side are of different lengths: a slip of reference document 003, which its checkpoints were trained with.

    Args:
        positions: [position], integers.

    Returns:
        [position, model], float32.
    """
    columns = torch.arange(d_model, dtype=torch.float64, device=positions.device)
    angles = positions.double()[:, None] / 10000.0 ** (2 * columns / d_model)  # [position, model]
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()


class SinusoidalPositions(nn.Module):
    """Waves of growing length: nothing to learn, and a formula for every position.

    Args:
        waves: the formula, `sinusoids` or `column_sinusoids`.
    """

    def __init__(self, max_positions: int, d_model: int, waves: Callable[[Tensor, int], Tensor] = sinusoids) -> None:
        super().__init__()
        self.table: Tensor  # worked out once; no part of a checkpoint of ours
        self.register_buffer("table", waves(torch.arange(max_positions), d_model), persistent=False)

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.table[start : start + count]


class StoredPositions(nn.Module):
    """A table that some program worked out in its own way: it is a part of the checkpoint, and nothing learns it."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table: Tensor
        self.register_buffer("table", sinusoids(torch.arange(max_positions), d_model))

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.table[start : start + count]


class NoPositions(nn.Module):
    """Adds zeros: a causal mask alone already tells a decoder something about order, an encoder nothing."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table: Tensor
        self.register_buffer("table", torch.zeros(max_positions, d_model), persistent=False)

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] of zeros."""
        return self.table[start : start + count]


def running(start: int) -> int:
    """Positions go on where the earlier steps of a cached decode ended."""
    return start


def from_zero(start: int) -> int:
    """Every step begins at position 0: each written token is taken for the first, as in reference documents 003 and 004."""
    return 0
