"""Runs in bfloat16 and float16. Each is compared with a float32 run of the same tokens, and the trace holds the differences.

Weights, inputs and all arithmetic use the lower type. A trace stores the recorded numbers as float32, which holds them exactly.
Log-probabilities are computed in float32 from the logits.
"""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import torch

from model.checkpoints.loaded import Runner
from model.errors import BadSetting, Words, phrase
from model.huggingface.loaded import Foreign
from model.inference.calls import Ask, alone
from model.inference.inputs import Reader
from model.inference.run import run
from model.spec.inputs import POSITIONS
from model.spec.request import Precision, RunRequest
from model.trace.progress import Report, report_nothing
from model.trace.types import Array, Trace

FROM_FLOAT32 = "from_float32"
"""Key in `Trace.model` of the differences of `weights`, `logits` and `probabilities`, each a number or None."""


def lowered(found: Runner, precision: Precision) -> Runner:
    """A copy of the checkpoint with its weights in `precision`; the checkpoint itself for float32.

    Raises:
        BadSetting: another program runs the network; it may need some of its numbers in float32.
    """
    if precision == "float32":
        return found
    if isinstance(found, Foreign):
        raise BadSetting(
            name="precision", found=precision, allowed=phrase("float32 for a model that the transformers library runs")
        )
    return replace(found, network=deepcopy(found.network).to(getattr(torch, precision)))


def run_in(
    found: Runner,
    lower: Runner,
    request: RunRequest,
    device: torch.device,
    device_name: Words,
    ask: Ask = alone,
    most: int = POSITIONS,
    report: Report = report_nothing,
    earlier: tuple[int, ...] = (),
) -> Trace:
    """Runs `lower`, which `lowered` made of `found`, and adds the differences from a float32 run of the same tokens to the trace.

    Args:
        most: limit of positions for models that have more.
        report: receives the tokens written so far.
        earlier: ids that a run like this one wrote. They are used in float32 alone: the rounding of lower types differs more
            between a pass over several tokens and steps of one.

    Raises:
        HeadlightError: as `running.run`.
    """
    inputs = Reader(found.tokenizers, device, most).inputs(request, found.info.spec)
    if lower is found:
        return run(found, request, device, device_name, ask, inputs=inputs, report=report, earlier=earlier)
    trace = run(lower, request, device, device_name, ask, inputs=inputs, report=report)
    written = tuple(step.chosen.id for step in trace.steps)
    beside = run(found, replace(request, keep=()), device, device_name, ask, written, inputs=inputs)
    return replace(trace, model={**trace.model, FROM_FLOAT32: differences(trace, beside)})


def differences(lower: Trace, full: Trace) -> dict[str, float | None]:
    """The largest absolute differences between two runs of the same tokens.

    Returns:
        The difference of `weights` over all sites, None if they are computed lazily; of `logits` and of their `probabilities`, None
            if there are none. Each is None, too, if the lower type overflowed.
    """
    pairs = [(own.weights, full.attention[site].weights) for site, own in lower.attention.items()]
    written_out = bool(pairs) and all(isinstance(array, np.ndarray) for pair in pairs for array in pair)
    found: dict[str, float | None] = {"weights": None, "logits": None, "probabilities": None}
    if written_out:
        found["weights"] = float(np.max([_largest(*pair) for pair in pairs]))
    if lower.logits is not None and full.logits is not None:
        found["logits"] = _largest(lower.logits, full.logits)
        if (lower.model["spec"]["output"] or {}).get("softmax") != "batch":  # else each probability is 1
            rows = zip(lower.logits, full.logits, strict=True)  # one row at a time: a vocabulary is large
            found["probabilities"] = float(np.max([_largest(_softmax(ours), _softmax(theirs)) for ours, theirs in rows]))
    return {name: value if value is not None and np.isfinite(value) else None for name, value in found.items()}


def _largest(ours: Array, theirs: Array) -> float:
    with np.errstate(all="ignore"):
        return float(np.abs(ours.astype(np.float64) - theirs).max(initial=0))


def _softmax(logits: Array) -> Array:
    """[vocab], float64."""
    with np.errstate(all="ignore"):  # a run that holds NaN or infinite numbers is compared with them
        exponentials = np.exp(logits.astype(np.float64) - logits.max())
        return np.asarray(exponentials / exponentials.sum())
