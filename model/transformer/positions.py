"""Positional encodings: one vector for each position, which is added to the embedding of the token that stands there; and rotary
positions, by which queries and keys are turned instead.

Attention is a weighted mean, and a mean does not depend on order: with the keys shuffled, its result would be the same. Without
positions, "dog bites man" and "man bites dog" would be one sentence to an encoder. All encodings share one method,
`rows(start, count)`.

Source: section 3.5.
"""

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor, nn


class PositionalEncoding(Protocol):
    """The vectors that are added to the embeddings of consecutive positions."""

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""


class LearnedPositions(nn.Module):
    """One learned vector for each position, trained like a token's embedding; so there is none beyond `max_positions`.

    Source: section 3.5, the alternative that the authors compared; table 3, row E.
    """

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, d_model))  # [position, model]; build() draws the numbers

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.weight[start : start + count]


def sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle.

    Columns 2i and 2i+1 are waves with a length of 2π · 10000^(2i/d_model) positions: from 6.28 in the first pair of columns to
    nearly 62,832 in the last. Short waves tell neighbors apart, long ones the beginning of a text from its end, as the digits of
    a number do.

    The angles are computed in float64, since the sine of a large float32 angle is wrong in the fourth digit.

    Args:
        positions: [position], integers.

    Returns:
        [position, model], float32.

    Source: section 3.5.
    """
    exponents = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device) / d_model  # [model / 2], the 2i/d_model
    angles = positions.double()[:, None] / 10000.0**exponents  # [position, model / 2]
    # A pair (sin, cos) and not a sine alone: the pair at pos + k is a rotation of the pair at pos, by an angle that depends on k
    # only. So a linear map can find "k positions before" from anywhere in the text.
    interleaved = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # [position, model (+ 1 if odd)]
    return interleaved[:, :d_model].float()


def column_sinusoids(positions: Tensor, d_model: int) -> Tensor:
    """PE(pos, i) = sin(pos / 10000^(2i/d_model)) in even columns i, and the cosine of that angle in odd ones.

    Here i counts columns; in the paper it counts pairs of columns. So wavelengths grow twice as fast, and the sine and the cosine
    side by side have different wavelengths. This is a slip of reference document 003 (docs/references.md) that its checkpoints
    were trained with.

    Args:
        positions: [position], integers.

    Returns:
        [position, model], float32.
    """
    columns = torch.arange(d_model, dtype=torch.float64, device=positions.device)  # [model], every column and not every pair
    angles = positions.double()[:, None] / 10000.0 ** (2 * columns / d_model)  # [position, model]
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos()).float()


class SinusoidalPositions(nn.Module):
    """Sines and cosines of growing wavelength: nothing to learn, and a formula for every position.

    Args:
        waves: the formula, `sinusoids` or `column_sinusoids`.
    """

    def __init__(self, max_positions: int, d_model: int, waves: Callable[[Tensor, int], Tensor] = sinusoids) -> None:
        super().__init__()
        self.table: Tensor  # [position, model]; a buffer, since nothing learns it; not saved, since the formula gives it back
        self.register_buffer("table", waves(torch.arange(max_positions), d_model), persistent=False)

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.table[start : start + count]


class StoredPositions(nn.Module):
    """A fixed table that is stored in the checkpoint, since another program computed it in its own way."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table: Tensor
        self.register_buffer("table", sinusoids(torch.arange(max_positions), d_model))  # replaced when the checkpoint is loaded

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return self.table[start : start + count]


FAIRSEQ_FIRST = 2
"""The number of the first position in fairseq: it counts on from the id of padding, which is 1."""


class LearnedPositionsFrom2(LearnedPositions):
    """Learned vectors of which the first token takes the third: the first two rows are never used.

    Source: fairseq, `LearnedPositionalEmbedding` and `make_positions`.
    """

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__(max_positions + FAIRSEQ_FIRST, d_model)

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] for the positions `start` to `start + count - 1`."""
        return super().rows(start + FAIRSEQ_FIRST, count)


def sinusoids_from_2(positions: Tensor, d_model: int) -> Tensor:
    """All sines, then all cosines, of (pos + 2) / 10000^(i / (half - 1)), where half = d_model / 2 and i counts from 0.

    Three differences to `sinusoids`: the columns are in another order, the longest wave is exactly 10,000 times the shortest, and
    positions count from 2. Angles are computed in float32, as the networks were trained with.

    Args:
        positions: [position], integers.

    Returns:
        [position, model], float32; a last column of zeros if d_model is odd.

    Source: fairseq, `SinusoidalPositionalEmbedding.get_embedding`.
    """
    half = d_model // 2
    step = math.log(10000) / max(half - 1, 1)
    waves = torch.exp(torch.arange(half, dtype=torch.float32, device=positions.device) * -step)  # [half]
    angles = (positions + FAIRSEQ_FIRST).float()[:, None] * waves  # [position, half]
    return nn.functional.pad(torch.cat([angles.sin(), angles.cos()], dim=-1), (0, d_model % 2))


class NoPositions(nn.Module):
    """No positional encoding: adds zeros. A decoder still learns something of the order from its causal mask; an encoder cannot."""

    def __init__(self, max_positions: int, d_model: int) -> None:
        super().__init__()
        self.table: Tensor
        # A table of zeros, not None: the sum, the trace and the limit of positions then need no special case.
        self.register_buffer("table", torch.zeros(max_positions, d_model), persistent=False)

    def rows(self, start: int, count: int) -> Tensor:
        """[position, model] of zeros."""
        return self.table[start : start + count]


def running(start: int) -> int:
    """Counts positions on through a cached decode: a step begins where the earlier ones ended."""
    return start


def from_zero(start: int) -> int:
    """Begins every step of a cached decode at position 0, so each written token is encoded as the first.

    This is what reference documents 003 and 004 compute (docs/references.md).
    """
    return 0


# --- Rotary positions --------------------------------------------------------------------------------------------------


class Rotation(Protocol):
    """Turns the queries or keys of consecutive positions by angles that grow with the position; nothing is added to the embeddings.

    Two columns of a head are the two coordinates of a point. At position p the point is turned by the angle p · w, a query and a
    key alike. The dot product of two turned points depends on the difference of their angles alone, so a score sees how far query
    and key are apart and not where they are. Values are not turned: what is passed on does not depend on the position.

    Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", equations 14, 15 and 34.
    """

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
