"""Lazy attention weights: an array-like that computes weights from the recorded queries and keys when they are read.

A long input runs through a fused kernel, which never holds all weights of a head (`attend_fused` in
model/transformer/attention.py). The weights are then computed here, as softmax(q kᵀ · scale) over the allowed keys, a block of
rows at a time. This needs numpy only, so a page can show them without torch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

BLOCK = 1 << 22
"""Weights computed at once: a bound on the memory that is needed besides the result. Smaller blocks would fit the processor's
cache, but each block is a matrix product of its own, and on a busy machine the threads of each product wait for each other."""


@dataclass(frozen=True, eq=False)
class LazyAttention:
    """Weights [head, query, key] that are indexed like an array and computed on every access; nothing is cached.

    Attributes:
        q: [head, query, head_dim].
        k: [head, key, head_dim].
        mask: [query, key] of bool, True where the query may attend to the key.
        scale: factor of the dot products.
        empty_rows: what a row without any allowed key becomes: `uniform` or `zeros`.
    """

    q: Array
    k: Array
    mask: Array
    scale: float
    empty_rows: Literal["uniform", "zeros"] = "uniform"

    dtype: ClassVar[npt.DTypeLike] = np.dtype(np.float32)
    ndim: ClassVar[int] = 3

    @property
    def array(self) -> Array:
        """This object, typed as an array: it supports every operation that callers use."""
        return cast(Array, self)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(heads, queries, keys)."""
        return len(self.q), *self.mask.shape

    def __len__(self) -> int:
        """Number of heads."""
        return len(self.q)

    def __iter__(self) -> Iterator[Array]:
        """The weights [query, key] of each head, computed one head at a time."""
        return (self[head] for head in range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        """The weights at `index`: up to three parts, each a number, a slice or a list of numbers or bools, as in `numpy.ix_`."""
        parts = (*(index if isinstance(index, tuple) else (index,)), *[slice(None)] * 3)[:3]
        heads, queries, keys = (np.arange(size)[part] for size, part in zip(self.shape, parts, strict=True))
        rows = self._rows(np.atleast_1d(heads), np.atleast_1d(queries))
        weights = rows if parts[2] == slice(None) else rows.take(np.atleast_1d(keys), axis=2)
        return np.asarray(weights.reshape((*heads.shape, *queries.shape, *keys.shape)))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        """All weights as a numpy array."""
        return self[:].astype(dtype or self.dtype, copy=False)

    def __getattr__(self, name: str) -> Any:
        """Any other attribute of an array: computes all weights and asks them for it.

        Raises:
            AttributeError: arrays have no such attribute; special methods are never looked up here.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self[:], name)

    def _rows(self, heads: Array, queries: Array) -> Array:
        """The weights of some heads and queries, [head, query, key].

        Each block is computed in place, in the result's memory: allocating memory costs more than the arithmetic.
        """
        weights = np.empty((len(heads), len(queries), self.shape[2]), self.dtype)
        block = max(1, BLOCK // max(1, self.shape[2]))
        with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is shown with them
            for of_head, head in zip(weights, heads, strict=True):
                for start in range(0, len(queries), block):
                    rows = queries[start : start + block]
                    scores = of_head[start : start + block]
                    np.matmul(self.q[head, rows], self.k[head].T, out=scores, casting="same_kind")
                    scores *= self.scale
                    self._softmax(scores, self.mask[rows])
        return weights

    def _softmax(self, scores: Array, allowed: Array) -> None:
        """Turns scores [query, key] into weights, in place, as `softmax_uniform` and `softmax_zeros` of the network do."""
        fill, forbidden = np.finfo(self.dtype).min, ~allowed
        np.copyto(scores, fill, where=forbidden)
        scores -= scores.max(axis=-1, keepdims=True, initial=fill)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        if self.empty_rows == "zeros":
            np.copyto(scores, 0, where=forbidden)
