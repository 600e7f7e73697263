"""Kinds of masks: patterns over positions, which of them a recorded mask is, and how far a token reaches through layers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from model.trace.types import Array

Kind: TypeAlias = Literal["all", "causal", "window", "both-sides", "chunks", "prefix", "documents", "other"]
"""What a mask looks like; docs/today.md defines each."""

Made: TypeAlias = Literal["causal", "window", "chunks", "prefix", "documents"]
"""The kinds that the page Masks can put in the place of a model's own."""


@dataclass(frozen=True)
class MaskKind:
    """What a mask is.

    Attributes:
        kind: `all`: nothing is closed; `causal`: nothing later; `window`: causal, and only the newest `size` tokens; `both-sides`:
            at most `size` - 1 tokens away, before or after; `chunks`: causal within each chunk of `size` tokens; `prefix`: causal,
            but the first `size` tokens are open to all; `documents`: causal within each of several texts; `other`: none of these.
        size: of the kind; of `documents` their number; else 0.
    """

    kind: Kind
    size: int = 0


def pattern(kind: Made, count: int, size: int = 0, starts: Iterable[int] = ()) -> Array:
    """A mask [query, key] of bool over so many tokens.

    Args:
        kind: as in MaskKind.
        count: number of tokens.
        size: of a window, a chunk or a prefix.
        starts: first tokens of documents after the first one.
    """
    query, key = np.arange(count)[:, None], np.arange(count)[None]
    causal = key <= query
    match kind:
        case "window":
            return np.asarray(causal & (query - key < size))
        case "chunks":
            return np.asarray(causal & (query // size == key // size))
        case "prefix":
            return np.asarray(causal | (key < size))
        case "documents":
            document = np.zeros(count, int)
            document[[start for start in starts if start < count]] = 1
            number = document.cumsum()
            return np.asarray(causal & (number[:, None] == number[None]))
    return np.asarray(causal)


def kind_of(mask: Array) -> MaskKind:
    """What a mask [query, key] of self-attention is; keys that no query may attend to, such as padding, are left out of account."""
    reachable, count = mask.any(axis=0, keepdims=True), len(mask)
    if mask.shape != (count, count):
        return MaskKind("other")
    query, key = np.arange(count)[:, None], np.arange(count)[None]
    rows = mask.sum(axis=1)

    def same(other: Array) -> bool:
        return bool((mask == (other & reachable)).all())

    if same(np.ones_like(mask)):
        return MaskKind("all")
    if same(pattern("causal", count)):
        return MaskKind("causal")
    window = int(rows.max(initial=0))
    if same(pattern("window", count, window)):
        return MaskKind("window", window)
    closed = np.flatnonzero(~mask[:, 0])
    if len(closed) and closed[0] and same(pattern("chunks", count, int(closed[0]))):
        return MaskKind("chunks", int(closed[0]))
    if same(pattern("prefix", count, int(rows[0]))):
        return MaskKind("prefix", int(rows[0]))
    side = int(mask[0].sum())
    if same(np.abs(query - key) < side):
        return MaskKind("both-sides", side)
    starts = [position for position in range(1, count) if int(mask[position].argmax()) == position]
    if starts and same(pattern("documents", count, starts=starts)):
        return MaskKind("documents", len(starts) + 1)
    return MaskKind("other")


def reached(masks: Iterable[Array], token: int) -> Array:
    """Which states a token can reach: [layer + 1, position] of bool, its own place first, then after each layer.

    A state is reached if its query may attend to a state that was reached, or was itself reached before, by the residual stream.

    Args:
        masks: [query, key] of bool, of the self-attention of each layer.
        token: the token, counted from 0.
    """
    rows = list[Array]()
    for mask in masks:
        if not rows:
            rows.append(np.arange(len(mask)) == token)
        rows.append(rows[-1] | (mask & rows[-1][None]).any(axis=1))
    return np.array(rows)


def farthest(masks: Iterable[Array]) -> int:
    """How many tokens back the last state depends on, at most, its own counted."""
    all_masks = list(masks)
    open_ = np.arange(len(all_masks[0])) == len(all_masks[0]) - 1  # backwards: from the last state to what it was made of
    for mask in reversed(all_masks):
        open_ = open_ | mask[open_].any(axis=0)
    return int(len(open_) - open_.argmax())
