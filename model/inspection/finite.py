"""Whether what a run computed, and what a file holds, is finite; and the sentences for people where it is not."""

import numpy as np

from model.inspection.report import Inspection
from model.trace.lazy_attention import LazyAttention
from model.trace.types import Trace


def is_finite(trace: Trace) -> bool:
    """Whether the end of a run is finite: what is not spreads to it. Weights that are not written out stay so."""
    if trace.logits is not None:
        return bool(np.isfinite(trace.logits).all())
    last = [attention.weights for attention in trace.attention.values()][-1:]
    ends = [end for weights in last for end in ((weights.q, weights.k) if isinstance(weights, LazyAttention) else (weights,))]
    return all(bool(np.isfinite(end).all()) for end in ends)


def warning_of_run(trace: Trace) -> str:
    """What to say of a run that is not finite; empty: it is."""
    if is_finite(trace):
        return ""
    if trace.model["dtype"] != "float32":
        return f"{trace.model['dtype']} cannot hold the numbers of this run: choose float32 as its number type."
    return (
        "This run holds NaN or infinite numbers, so there is nothing to draw: the model's weights are not finite. "
        "`inspect` says which tensors."
    )


def warning_of_file(found: Inspection) -> str:
    """What to say of a file whose numbers are not all finite; empty: they are."""
    bad = [tensor for tensor in found.tensors if tensor.nan or tensor.infinite]
    if not bad:
        return ""
    nan, infinite = sum(tensor.nan for tensor in bad), sum(tensor.infinite for tensor in bad)
    return f"{nan:,} numbers are NaN and {infinite:,} infinite, in {len(bad)} tensors: what uses them is not finite either."
