"""The request that reads the tokens which a run wrote, so that two runs can be compared row by row."""

from dataclasses import replace

from model.spec.request import Decoding, RunRequest
from model.trace.types import Trace
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
