"""Warnings about runs and files with numbers that are not finite."""

from model.inspection.report import Inspection
from model.trace.types import Trace


def warning_of_run(trace: Trace) -> str:
    """The warning for a run with numbers that are not finite; empty: all are finite."""
    if trace.is_finite:
        return ""
    if trace.model["dtype"] != "float32":
        return f"The numbers of this run do not fit into {trace.model['dtype']}. Choose float32 as the precision."
    return (
        "This run produced NaN or infinite values, so there is nothing to draw. Weights of the model are not finite (`inspect` "
        "lists them), or so large that a result does not fit into float32."
    )


def warning_of_file(inspection: Inspection) -> str:
    """The warning for a file with numbers that are not finite; empty: all are finite."""
    bad = [tensor for tensor in inspection.tensors if tensor.nan or tensor.infinite]
    if not bad:
        return ""
    nan, infinite = sum(tensor.nan for tensor in bad), sum(tensor.infinite for tensor in bad)
    where = "1 tensor contains" if len(bad) == 1 else f"{len(bad)} tensors contain"
    return f"{where} {nan:,} NaN and {infinite:,} infinite values; everything computed from them will not be finite either."
