"""Where the rest of a row goes: a key that gets most of a head's weight, and the share of a learned sink.

Sources: Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3; OpenAI 2025, gpt-oss: a learned
number of each head joins the scores in the softmax, and its weight weighs no value.
"""

from dataclasses import dataclass

import numpy as np

from model.measures.of_run import weight_on
from model.measures.rows import choosing
from model.trace.types import Array, Attention, Trace
from viz.metrics.aggregation import relative_lengths

SINK = 1e-3
"""Rows whose weights lack more than this have a sink; below, it is rounding."""


def sink_shares(weights: Array, mask: Array) -> Array:
    """What the rows of each head lack to 1: [head, query], float64; 0 where it is rounding, and in rows without a key."""
    lack = 1 - np.asarray(weights[:], np.float64).sum(axis=-1)
    return np.where((lack > SINK) & mask.any(axis=1, keepdims=True).T, lack, 0.0)


def without_sink(weights: Array) -> Array:
    """Rows [query, key] as a softmax without the sink gives them: each divided by its sum."""
    rows = weights.astype(np.float64)
    sums = rows.sum(axis=-1, keepdims=True)
    divided: Array = np.divide(rows, sums, out=np.zeros_like(rows), where=sums > 0)
    return divided


SINK_SHARE = 0.5
"""A key is a sink where it holds more than this share of a head's weight."""

SMALL_VALUE = 0.5
"""A value is called small where it is shorter than this part of the mean over the keys."""


@dataclass(frozen=True)
class Sink:
    """Attention sink: a key that gets most of a head's weight.

    Attributes:
        key: counted from 0; the first key, or a special token.
        share: mean weight on it, from 0 to 1; of the first key the measure `first`.
        value: length of its value vector, relative to the mean length; None: values were not recorded.
    """

    key: int
    share: float
    value: float | None = None


def sink(trace: Trace, attention: Attention, head: int) -> Sink | None:
    """The sink of one head; None: neither the first nor a special key has more than SINK_SHARE of the weight.

    Args:
        trace: the run.
        attention: one of its sites; with `v`, the length of the sink's value is computed.
        head: counted from 0.

    Raises:
        UnknownHead: the site has no such head.
    """
    weights = attention.head(head).astype(np.float64)[choosing(attention)[head]]
    if not len(weights):
        return None
    key = int(weights.sum(axis=0).argmax())
    share = float(weight_on(trace, attention, [key])[head])
    if not share > SINK_SHARE or not (trace.tokens[attention.key_tokens].special[key] or key == 0):
        return None
    return Sink(key, share, None if attention.v is None else float(relative_lengths(attention.v[head])[key]))
