"""The effect of edits on what a model wrote before: the same tokens are fed to the network with and without the edits.

Of each token written: its natural log-probability in both runs, and how far the two distributions that it was taken from lie apart:

    Kullback-Leibler divergence in nats = Σ p ln(p / q)      p: without the edits, q: with them, over the vocabulary

0: the same distribution. It has no upper limit.

Source: Kullback and Leibler 1951, "On Information and Sufficiency".
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.trace.types import Array, Trace
from viz.labels import tokens

ROUNDING = 1e-5
"""Differences of log-probabilities, divergences and weights up to this are what rounding of float32 makes, and count as none."""


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of edits on each token that was generated before, in order.

    Attributes:
        texts: the tokens.
        before, now: [token], natural log-probabilities without and with the edits; NaN and infinities as they were computed.
        divergence: [token], of the two distributions, in nats.
    """

    texts: tuple[str, ...]
    before: Array
    now: Array
    divergence: Array

    @property
    def change(self) -> Array:
        """[token]: log-probability now minus before; differences that rounding makes are 0."""
        with np.errstate(invalid="ignore"):
            found = self.now - self.before
        return np.where(np.abs(found) <= ROUNDING, 0.0, found)

    @property
    def finite(self) -> bool:
        """Whether every log-probability is a number, so that totals can be given."""
        return bool(np.isfinite(self.now).all() and np.isfinite(self.before).all())


def effect(before: Trace, now: Trace, first: int) -> Effect:
    """Compares two runs that read the same tokens, up to one that was written and not read.

    Args:
        before, now: the runs without and with the edits; both recorded logits.
        first: position of the first token that counts, in the strip that is written.
    """
    strip = before.tokens[tokens.written_strip(before)]
    assert before.logits is not None
    assert now.logits is not None
    places = range(first, min(len(strip), len(before.logits) + 1, len(now.logits) + 1))
    rows = [place - 1 for place in places]
    ids = [strip.ids[place] for place in places]
    one, other = _log_softmax(before.logits[rows]), _log_softmax(now.logits[rows])
    each = range(len(rows))
    return Effect(tuple(strip.texts[place] for place in places), one[each, ids], other[each, ids], _divergence(one, other))


def divergence(first: Array, second: Array) -> Array:
    """Kullback-Leibler divergence in nats of the distributions of two sets of logits: two of [row, vocab] -> [row].

    What rounding makes is 0.
    """
    return _divergence(_log_softmax(first), _log_softmax(second))


def _divergence(one: Array, other: Array) -> Array:
    """The divergence of log-probabilities: two of [row, vocab] -> [row]."""
    with np.errstate(invalid="ignore"):
        p = np.exp(one)
        terms = np.where(p > 0, p * (one - other), 0.0)
        found: Array = np.maximum(terms.sum(axis=-1), 0.0)
    return np.where(found <= ROUNDING, 0.0, found)


def _log_softmax(logits: Array) -> Array:
    """Natural log-probabilities, in float64; NaN in rows that hold NaN or infinity."""
    with np.errstate(invalid="ignore"):
        shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True, initial=-np.inf)
        found: Array = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def most_looked_at(weights: Array, candidates: Sequence[int]) -> int:
    """The key, among `candidates`, that all rows of all heads together look at most: [head, query, key] -> key."""
    total = weights.astype(np.float64).sum(axis=(0, 1))
    return max(candidates, key=lambda key: (total[key], -key))
