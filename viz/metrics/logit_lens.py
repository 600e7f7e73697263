"""The logit lens: the next token if the output layer read the state after an earlier layer instead of the last.

    softmax( LayerNorm_final(h) W_outᵀ + b_out )

The final norm is there only in models that have one. Nothing was trained to make sense of the states in between: what the lens says
of them is a reading, not an output of the model. After the last layer it is the output itself.

Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.trace.types import Array, Trace


@dataclass(frozen=True, eq=False)
class Lens:
    """The most probable tokens after each decoder layer (logit lens).

    Attributes:
        layers: `pass.layer` of each, in the order in which they ran, counted from 0.
        ids: [layer, position, candidate], the most probable first.
        probabilities: [layer, position, candidate], float64.
    """

    layers: tuple[str, ...]
    ids: Array
    probabilities: Array


def output_names(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the parameters that `lens` needs of a model: the output layer's and, where there is one, the final norm's."""
    norm = "decoder.final_norm" if spec["encoder"] else "final_norm"
    names = ["output.weight", "output.bias"] if spec["output"]["bias"] else ["output.weight"]
    if spec["decoder"]["final_norm"]:
        names += [f"{norm}.weight"] + ([] if spec["decoder"]["norm"] in ("bias-free", "rms") else [f"{norm}.bias"])
    return tuple(names)


def lens(trace: Trace, spec: Mapping[str, Any], tensors: Mapping[str, Array], count: int = 5) -> Lens:
    """Logit lens: the output layer applied to the hidden states after each decoder layer.

    Args:
        trace: a run that kept `hidden`.
        spec: the ModelSpec as JSON values; it has an output layer.
        tensors: the parameters that `output_names` asks for.
        count: candidates for each position.
    """
    states = {name.removeprefix("decoder."): state for name, state in trace.hidden.items() if name.startswith("decoder.")}
    logits = (logits_of(state, spec, tensors) for state in states.values())
    best = [_best(row, count) for row in logits]
    return Lens(tuple(states), np.stack([ids for ids, _ in best]), np.stack([p for _, p in best]))


def logits_of(state: Array, spec: Mapping[str, Any], tensors: Mapping[str, Array]) -> Array:
    """Logits of hidden states: [position, model] -> [position, vocab], float64.

    The product with the vocabulary is computed in float32, as in the model.
    """
    by_end = {name.removeprefix("decoder."): tensor for name, tensor in tensors.items()}
    read = state.astype(np.float64)
    if spec["decoder"]["final_norm"]:
        shift = by_end.get("final_norm.bias", np.zeros(1))
        norm, epsilon = spec["decoder"]["norm"], spec["decoder"].get("norm_epsilon", 1e-5)
        read = _normed(read, norm, epsilon) * by_end["final_norm.weight"] + shift
    product = read.astype(np.float32) @ by_end["output.weight"].astype(np.float32, copy=False).T
    return product.astype(np.float64) + by_end.get("output.bias", np.zeros(1))


def _normed(state: Array, norm: str, epsilon: float = 1e-5) -> Array:
    """Mean 0 and deviation 1 at each position: that of LayerNorm, or of a sample; or a root mean square of 1
    (model/transformer/norms.py).
    """
    if norm == "rms":
        return np.asarray(state / np.sqrt((state**2).mean(axis=-1, keepdims=True) + epsilon))
    centred = state - state.mean(axis=-1, keepdims=True)
    if norm == "unbiased":
        return np.asarray(centred / (state.std(axis=-1, keepdims=True, ddof=1) + 1e-6))
    return np.asarray(centred / np.sqrt(state.var(axis=-1, keepdims=True) + epsilon))


def _best(logits: Array, count: int) -> tuple[Array, Array]:
    """Ids and probabilities of each row's likeliest tokens, best first: [position, vocab] -> [position, candidate] twice."""
    count = min(count, logits.shape[1])
    some = np.argpartition(-logits, count - 1, axis=-1)[:, :count]
    ids = np.take_along_axis(some, np.argsort(-np.take_along_axis(logits, some, axis=-1), axis=-1, kind="stable"), axis=-1)
    largest = logits.max(axis=-1, keepdims=True)
    total = np.exp(logits - largest).sum(axis=-1, keepdims=True)
    return ids, np.exp(np.take_along_axis(logits, ids, axis=-1) - largest) / total
