"""What `generate(…, return_dict_in_generate=True, output_attentions=True)` of the transformers library gives: for each step its
layers. The rows of all steps become one map for each layer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from model.trace.types import Array
from viz.features.notebook.arrays import as_array, chosen_example

Steps = Sequence[Sequence[Any]]
"""Arrays [batch, head, query, key] by step and layer."""


def is_by_steps(value: Any) -> bool:
    """Whether a value is a sequence of steps that are sequences of layers."""
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], list | tuple)


def joined(steps: Steps, rows: Sequence[int] | None, example: int | None, name: str) -> list[tuple[Array, Array]]:
    """For each layer its map [head, query, key] and its mask [query, key]: a key that a step did not have yet is masked.

    Args:
        rows: of each step the row of the batch, as `rows_of_beams` gives them; None: that of the example in all of them.
        name: what it is, for errors.

    Raises:
        ValueError: the steps do not fit together.
    """
    if len({len(layers) for layers in steps}) > 1:
        raise ValueError(f"The steps of {name} have different numbers of layers: {sorted({len(layers) for layers in steps})}.")
    chosen = [example] * len(steps) if rows is None else rows
    arrays = [[as_array(layer, name) for layer in layers] for layers in steps]
    parts = [
        [chosen_example(layer, row, f"step {step + 1} of {name}") for layer in layers]
        for step, (layers, row) in enumerate(zip(arrays, chosen, strict=False))
    ]
    return [_one_map(list(of_layer), name) for of_layer in zip(*parts, strict=True)]


def _one_map(parts: list[Array], name: str) -> tuple[Array, Array]:
    """The rows of all steps as one map: later steps have as many keys as the steps before, or more."""
    heads, keys = len(parts[0]), max(part.shape[2] for part in parts)
    if any(part.ndim != 3 or len(part) != heads for part in parts):
        raise ValueError(f"The steps of {name} have arrays of different shapes: {sorted({part.shape for part in parts})}.")
    weights = np.zeros((heads, sum(part.shape[1] for part in parts), keys), np.float32)
    mask = np.zeros(weights.shape[1:], bool)
    # Cells that no step computed stay 0 and masked: a key that did not exist yet was not attended to.
    row = 0
    for part in parts:
        weights[:, row : row + part.shape[1], : part.shape[2]] = part
        mask[row : row + part.shape[1], : part.shape[2]] = True
        row += part.shape[1]
    if 1 < row < keys and not weights[:, :, row:].any():  # a cache of fixed length, whose end was never filled
        weights, mask = weights[:, :, :row], mask[:, :row]
    return weights, mask


def rows_of_beams(output: Any, example: int) -> list[int] | None:
    """Of each step the row of the batch from which a sequence of a beam search was continued; None: it was no beam search."""
    indices = getattr(output, "beam_indices", None)
    if indices is None:
        return None
    path = chosen_example(as_array(indices, "beam_indices"), example, "beam_indices")
    return [int(index) for index in path if index >= 0]


def input_of(output: Any, example: int, inputs: int) -> int:
    """The example of the encoder's batch that a generated sequence is of: each has as many sequences as the others."""
    sequences = getattr(output, "sequences", None)
    return example if sequences is None or len(sequences) <= inputs else example * inputs // len(sequences)
