"""Positions of a trace joined or left out: pieces of words, special tokens, padding, one sentence of two.

A group of positions becomes one: its columns are summed, its rows averaged, so that a row still sums to what it did. Where
positions are left out, rows are brought to the sum 1 again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from model.trace.types import Array, Attention, Tokens, Trace


@dataclass(frozen=True)
class Groups:
    """What becomes of a strip.

    Attributes:
        strip: the name of the new strip.
        texts: of each group.
        special: of each group, whether it stands for no text.
        positions: of each group.
    """

    strip: str
    texts: tuple[str, ...]
    special: tuple[bool, ...]
    positions: tuple[tuple[int, ...], ...]


def regrouped(trace: Trace, rows: Mapping[str, Groups], keys: Mapping[str, Groups], to_one: bool) -> Trace:
    """A trace with the groups of each strip as its queries and its keys, which may differ.

    Args:
        rows, keys: by the name of a strip.
        to_one: whether rows are brought to the sum 1, because positions were left out.

    Raises:
        ValueError: nothing is left of a strip.
    """
    if empty := [name for name, groups in (*rows.items(), *keys.items()) if not groups.positions]:
        raise ValueError(f"Nothing is left of the tokens of {empty[0]}: leave fewer of them out.")
    strips = {groups.strip: _strip(groups) for groups in (*rows.values(), *keys.values())}
    sites = {
        site: _regrouped(attention, rows[attention.query_tokens], keys[attention.key_tokens], to_one)
        for site, attention in trace.attention.items()
    }
    return replace(trace, tokens=strips, attention=sites)


def _strip(groups: Groups) -> Tokens:
    return Tokens(groups.strip, (), groups.texts, groups.special, (False,) * len(groups.texts))


def _regrouped(attention: Attention, rows: Groups, keys: Groups, to_one: bool) -> Attention:
    """One layer; positions beyond its maps, such as the last token of a decode, which was never read, have no rows and columns."""
    down = _starts(rows.positions, attention.weights.shape[1])
    across = _starts(keys.positions, attention.weights.shape[2])
    # Weights of a long recording are computed from queries and keys when they are read; here all of them are.
    weights = np.asarray(attention.weights, np.float32)
    if any(len(group) != 1 for group in across) or len(across) != weights.shape[2]:
        weights = np.stack([weights[:, :, group].sum(axis=2) for group in across], axis=2)
    if any(len(group) != 1 for group in down) or len(down) != weights.shape[1]:
        weights = np.stack([weights[:, group].mean(axis=1) for group in down], axis=1)
    # A group may attend to another if any of its positions may attend to any of that one's.
    mask = np.stack([attention.mask[:, group].any(axis=1) for group in across], axis=1)
    mask = np.stack([mask[group].any(axis=0) for group in down])
    weights = _to_one(weights) if to_one else weights
    return Attention(attention.site, rows.strip, keys.strip, weights, mask)


def _starts(positions: Sequence[Sequence[int]], length: int) -> list[list[int]]:
    """The groups inside a map of so many positions."""
    inside = [[at for at in group if at < length] for group in positions]
    return [group for group in inside if group]


def _to_one(weights: Array) -> Array:
    """Rows that sum to 1; a row of zeros stays."""
    sums = weights.sum(axis=-1, keepdims=True)
    scaled: Array = np.divide(weights, sums, out=np.zeros_like(weights), where=sums != 0)
    return scaled
