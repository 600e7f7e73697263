"""Runs that read the tokens which another run wrote, so that both can be compared row by row."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from model.measures.rows import choosing, mean, overlap
from model.requests.request import Decoding, RunRequest
from model.trace.types import Array, Attention, Tokens, Trace
from viz.labels import tokens


def teacher_forced_request(request: RunRequest, trace: Trace) -> RunRequest:
    """The request that reads what `trace` wrote; a given target, and vectors, are read as they are.

    Args:
        request: that of the run, without edits.
        trace: the run.
    """
    strip = tokens.written_strip(trace)
    ids = trace.tokens[strip].ids
    if request.target is not None or not trace.steps or not ids:
        return request
    read = ids[: len(ids) - 1 if trace.logits is None else len(trace.logits)]  # the last token that was written was not read
    if strip == "target":
        return replace(request, target=read, decoding=Decoding(), begin=())
    return replace(request, source=read, decoding=Decoding(max_length=0), begin=())


def first_written(trace: Trace) -> int:
    """Position of the first token that a model wrote, in the strip that is written."""
    return min((step.computed[1] for step in trace.steps), default=1)


def similarity(attention: Attention, last: Attention) -> Array:
    """[head], how similar each head is to the same head of the last snapshot, from 0 to 1: what their rows have in common, the mean
    over the rows that have a choice in both.

    It equals 1 minus the total variation distance of the rows.
    """
    return mean(overlap(attention.weights, last.weights), choosing(attention) & choosing(last))


def fed(whole: Trace) -> Tokens:
    """The strip that is forced at all snapshots: the target, or the only strip."""
    return whole.tokens[tokens.written_strip(whole)]


def surprise(trace: Trace, ids: Sequence[int]) -> Array:
    """Surprisal -ln p of each forced token but the first, in nats: [token].

    Args:
        trace: a run that keeps its logits, [position, vocab].
        ids: the forced tokens, followed by the expected last token if there is one.
    """
    if trace.logits is None:
        return np.empty(0)
    wanted = np.asarray(ids[1 : 1 + len(trace.logits)], np.int64)
    logits = trace.logits[: len(wanted)].astype(np.float64)
    highest = logits.max(axis=-1)
    total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=-1))
    lost: Array = total - logits[np.arange(len(wanted)), wanted]
    return lost
