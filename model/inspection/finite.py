"""Checks that the numbers of a run or a file are finite, with warnings for viewers where they are not."""

import numpy as np

from model.inspection.report import Inspection
from model.trace.lazy_attention import LazyAttention
from model.trace.types import Trace


def is_finite(trace: Trace) -> bool:
    """Whether a run's last numbers are finite: NaN and infinity spread to them. No lazy weights are computed for this."""
    if trace.logits is not None:
        return bool(np.isfinite(trace.logits).all())
    last = [attention.weights for attention in trace.attention.values()][-1:]
    ends = [end for weights in last for end in ((weights.q, weights.k) if isinstance(weights, LazyAttention) else (weights,))]
    return all(bool(np.isfinite(end).all()) for end in ends)


def warning_of_run(trace: Trace) -> str:
    """The warning for a run with numbers that are not finite; empty: all are finite."""
    if is_finite(trace):
        return ""
    if trace.model["dtype"] != "float32":
        return f"The numbers of this run do not fit into {trace.model['dtype']}. Choose float32 as the precision."
    return (
        "This run produced NaN or infinite values because the model’s weights are not finite, so there is nothing to draw. "
        "`inspect` lists the tensors concerned."
    )


def warning_of_file(found: Inspection) -> str:
    """The warning for a file with numbers that are not finite; empty: all are finite."""
    bad = [tensor for tensor in found.tensors if tensor.nan or tensor.infinite]
    if not bad:
        return ""
    nan, infinite = sum(tensor.nan for tensor in bad), sum(tensor.infinite for tensor in bad)
    where = "1 tensor contains" if len(bad) == 1 else f"{len(bad)} tensors contain"
    return f"{where} {nan:,} NaN and {infinite:,} infinite values; everything computed from them will not be finite either."
