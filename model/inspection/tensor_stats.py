"""Streaming statistics of a stored tensor: all numbers are read, in chunks, so memory stays flat."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from model.inspection.report import TensorInfo

PIECE = 2**15
"""Numbers in a chunk, which is converted to float64. It fits into a processor's cache, and torch does not split it among its
threads: on a busy machine these wait for each other longer than they compute."""

BINS = 24
"""Bins of a histogram, of equal width, from the lowest number to the highest."""

TENSORS_READ: ContextVar[Callable[[int, int], None] | None] = ContextVar("tensors_read", default=None)
"""Is called with the number of tensors whose statistics are known, and the number of all; a context variable, since a diagnosis of
any kind of file reads its tensors somewhere inside."""

_measured = WeakTensorKeyDictionary()
"""Statistics of tensors that are still in memory: those of an upload stay the same while its open settings are answered."""


def each_measured(infos: Mapping[str, TensorInfo], tensor_of: Callable[[str], Tensor]) -> Iterator[TensorInfo]:
    """The description of each tensor of a file with its statistics; what TENSORS_READ holds is called with how many are done.

    Args:
        tensor_of: reads a tensor by its name; only one at a time is needed.
    """
    report = TENSORS_READ.get()
    for done, (name, info) in enumerate(infos.items(), 1):
        yield measured(info, tensor_of(name))
        if report is not None:
            report(done, len(infos))


def measured(info: TensorInfo, tensor: Tensor) -> TensorInfo:
    """`info` with the statistics of the tensor, computed in float64; unchanged where the tensor does not hold real numbers."""
    if not tensor.numel() or tensor.dtype == torch.bool or tensor.is_complex():
        return info
    # The same tensor is measured once, however many pages and questions ask for it.
    if tensor not in _measured:
        _measured[tensor] = _measure(tensor)
    return replace(info, **_measured[tensor])


def _measure(tensor: Tensor) -> dict[str, Any]:
    """Statistics in two passes: first range, sum and counts; then the deviation from the mean, and the histogram."""
    lowest, highest, total, squares, zeros, nan, infinite = math.inf, -math.inf, 0.0, 0.0, 0, 0, 0
    # Piece by piece in float64, so that a large tensor needs no second one of its size beside it.
    for piece in _pieces(tensor):
        finite = _finite(piece)
        if finite is not piece:
            nan, infinite = nan + int(piece.isnan().sum()), infinite + int(piece.isinf().sum())
        if finite.numel():
            low, high = finite.aminmax()
            lowest, highest = min(lowest, low.item()), max(highest, high.item())
            total += finite.sum().item()
            zeros += finite.numel() - int(finite.count_nonzero())
            squares = math.hypot(squares, finite.norm().item())
    count = tensor.numel() - nan - infinite
    statistics: dict[str, Any] = {"nan": nan, "infinite": infinite}
    if not count:
        return statistics
    statistics |= {"mean": total / count, "lowest": lowest, "highest": highest, "norm": squares, "sparsity": zeros / count}
    # The mean is known only now: a deviation computed in one pass loses digits where the mean is large.
    apart, bars = 0.0, torch.zeros(BINS, dtype=torch.long)
    for piece in map(_finite, _pieces(tensor)):
        apart = math.hypot(apart, (piece - total / count).norm().item())
        if lowest < highest:
            bars += _bars(piece, lowest, highest)
    histogram = tuple(bars.tolist()) if lowest < highest else ()
    statistics |= {"deviation": apart / math.sqrt(count), "histogram": histogram}
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in statistics.items()}


def _bars(piece: Tensor, lowest: float, highest: float) -> Tensor:
    """The count of each bin. torch.histc counts the same, but splits even a chunk among threads."""
    if math.isinf(highest - lowest):
        piece, lowest, highest = piece / 2, lowest / 2, highest / 2
    bins = ((piece - lowest) / (highest - lowest) * BINS).long().clamp_(max=BINS - 1)
    return bins.bincount(minlength=BINS)


def _pieces(tensor: Tensor) -> Iterator[Tensor]:
    for piece in tensor.reshape(-1).split(PIECE):
        yield piece.double()


def _finite(piece: Tensor) -> Tensor:
    """The finite numbers of a chunk; the chunk itself where all are. The sum tells: one number that is not finite makes it so."""
    return piece if piece.sum().isfinite() else piece[piece.isfinite()]
