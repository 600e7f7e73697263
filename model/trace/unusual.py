"""Recorded weights that are no probabilities. A program may weigh its values by any numbers: they are shown and named.

`headlight.py`, which imports nothing of this project, names the same ones in the notes of a recording; a test compares both.
"""

import numpy as np

from model.errors import Words, phrase
from model.trace.lazy_attention import LazyAttention
from model.trace.types import Attention

FROM_ONE = 1e-2
"""Largest deviation of a row's sum from 1 that is not named: rounding explains it in any number type."""

MOST_ROWS = 8
"""Most rows that a sentence names."""


def about_head(attention: Attention, head: int) -> tuple[Words, ...]:
    """Sentences on the weights of a head that are no probabilities; none if all of them are."""
    weights: object = attention.weights
    if isinstance(weights, LazyAttention):
        return ()  # a softmax of queries and keys
    of_head, sentences = attention.weights[head], list[Words]()
    bad = ~np.isfinite(of_head)
    if bad.any():
        fields = {"rows": _rows(bad.any(axis=-1)), "cells": int(bad.sum()), "all": bad.size}
        sentences.append(
            phrase("The program computed NaN or infinite weights: {cells:,} of {all:,}, in the rows {rows}.", **fields)
        )
    sums = of_head.sum(axis=-1, dtype=np.float64)[attention.mask.any(axis=-1) & ~bad.any(axis=-1)]
    if len(sums) and np.abs(sums - 1).max() > FROM_ONE:
        sentences.append(
            phrase(
                "Rows of this head sum to {low:.2f} to {high:.2f}, not to 1: a part goes to a sink or a gate, or the program "
                "changed its weights after the softmax.",
                low=float(sums.min()),
                high=float(sums.max()),
            )
        )
    if (of_head < 0).any():
        sentences.append(phrase("The smallest weight of this head is {low:.2g}; colors begin at 0.", low=float(np.nanmin(of_head))))
    return tuple(sentences)


def _rows(chosen: np.ndarray) -> str:
    numbers = [str(row + 1) for row in np.flatnonzero(chosen)]
    return ", ".join(numbers[:MOST_ROWS]) + (" …" if len(numbers) > MOST_ROWS else "")
