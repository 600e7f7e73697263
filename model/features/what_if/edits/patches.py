"""Patches: values of a run that come from a second run."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from model.errors import phrase
from model.features.what_if.edits.places import Notes, Strips
from model.requests.edits import Patch
from model.trace.types import Array, Trace


class Patched:
    """The rows that a patch replaces in one value, and where they come from.

    Args:
        second: the second run's value, [head, position, …] or [position, …].
        tokens: texts of the second run's tokens in that strip.
        strip: the strip of the rows.
        heads: the heads that are replaced; empty: all, or the value has none.
    """

    def __init__(
        self, edit: Patch, second: Array, tokens: Sequence[str], strip: str, strips: Strips, notes: Notes, heads: Sequence[int]
    ) -> None:
        self._edit, self._second, self._tokens, self._strip = edit, second, tokens, strip
        self._strips, self._notes, self._heads = strips, notes, list(heads)
        self._length = second.shape[-2]
        # Without `at`, row i takes the place of row i: then both runs must have the same rows. What a run still writes may grow to
        # any length.
        here = len(strips.given[strip]) if strip in strips.given else 0
        if not edit.at and strip == "source" and strip != strips.growing and here != self._length:
            raise edit.refuse(
                phrase(
                    "{strip} has {here:,} tokens here and {length:,} rows in the second run: name rows (at=…)",
                    strip=strip,
                    here=here,
                    length=self._length,
                )
            )

    def __call__(self, value: Tensor, start: int) -> Tensor:
        """The value with its rows replaced."""
        # The network's own tensor stays as it is: it may be recorded already, or shared.
        changed = value.clone()
        count = value.shape[-2]
        # In a beam search each row is a text of its own, in which a word may stand elsewhere.
        for row in range(len(value)):
            # This call computes the positions from `start` on; pairs of other steps are made in those.
            pairs = [(p - start, t) for p, t in self._pairs(row, start + count) if start <= p < start + count]
            if not pairs:
                continue
            self._notes.made.add(self._edit)
            positions, taken = map(list, zip(*pairs, strict=True))
            new = self._rows(taken, value)
            heads = self._heads or list(range(len(new) if new.dim() == 3 else 0))
            if new.dim() == 3:  # a value with an axis of heads; hidden states and outputs of sites have none
                for head in heads:
                    changed[row, head, positions] = new[head]
            else:
                changed[row, positions] = new
        return changed

    def _pairs(self, row: int, count: int) -> list[tuple[int, int]]:
        """Positions here, and those of the second run that they get their rows from."""
        if not self._edit.at:
            return [(p, p) for p in range(count)]
        # A batch may hold several hypotheses, each with words of its own; one known text serves all of them.
        texts = self._strips.rows(self._strip)
        words, pairs = texts[row % len(texts)], list[tuple[int, int]]()
        for number, token in enumerate(self._edit.at):
            places = [token] if isinstance(token, int) else [p for p, word in enumerate(words) if token in (word, word.strip())]
            pairs += zip(places, self._taken(number, places), strict=True)
        return pairs

    def _taken(self, number: int, places: Sequence[int]) -> list[int]:
        """The second run's positions for the places of one token."""
        if not self._edit.take:
            return list(places)
        token = self._edit.take[number]
        candidates = [token] if isinstance(token, int) else [p for p, t in enumerate(self._tokens) if token in (t, t.strip())]
        if not candidates:
            raise self._edit.refuse(
                phrase(
                    "the second run has no token “{token}”. Available: {names}",
                    token=token,
                    names=", ".join(dict.fromkeys(self._tokens)),
                )
            )
        # One row may go to several places; several rows go to as many places, in their order.
        if len(candidates) == 1:
            return candidates * len(places)
        if places and len(candidates) != len(places):
            raise self._edit.refuse(
                phrase(
                    "“{token}” occurs at {names} in the second run: choose one by its index",
                    token=token,
                    names=", ".join(map(str, candidates)),
                )
            )
        return candidates[: len(places)]

    def _rows(self, positions: list[int], value: Tensor) -> Tensor:
        """Rows of the second run, [head, row, …] or [row, …]."""
        if max(positions) >= self._length:
            raise self._edit.refuse(
                phrase(
                    "the second run has {length:,} rows, counted from 0, and no row {row}: name rows that both runs have (at=…)",
                    length=self._length,
                    row=max(positions),
                )
            )
        rows = np.ascontiguousarray(self._second[..., positions, :])
        if self._edit.value == "weights":
            rows = self._fitted(rows, value.shape[-1])
        return torch.as_tensor(rows).to(value)

    def _fitted(self, rows: Array, keys: int) -> Array:
        """Rows of weights over as many keys as there are here: those that are not there yet have no weight."""
        # A weight on a key that does not exist here cannot be given to another one without inventing a row.
        if rows[..., keys:].any():
            second = rows.shape[-1]
            raise self._edit.refuse(
                phrase("rows of weights have {found:,} keys in the second run and {keys:,} here", found=second, keys=keys)
            )
        return np.pad(rows[..., :keys], [(0, 0)] * (rows.ndim - 1) + [(0, max(0, keys - rows.shape[-1]))])


def second_values(edit: Patch, trace: Trace) -> dict[str, Array]:
    """The values of the second run, by the names that they have in a run."""
    if edit.value == "hidden":
        return {f"hidden/{name}": array for name, array in trace.hidden.items()}
    return {
        f"attention/{site}/{edit.value}": np.asarray(getattr(attention, edit.value)) for site, attention in trace.attention.items()
    }
