"""Recognizes what people hold in their hands when they have attention, and finds the maps of each layer in it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from model.trace.types import Array, Kind, Site
from viz.features.notebook import arrays, generated
from viz.features.notebook.arrays import is_array

EAGER = (
    "the fused kernel ran, which has no weights. Load the model with attn_implementation='eager' and call it with "
    "output_attentions=True, or record the call with headlight.record."
)

PARTS: Mapping[str, tuple[str, Kind]] = {
    "encoder_attentions": ("encoder", "self"),
    "attentions": ("program", "self"),
    "decoder_attentions": ("decoder", "self"),
    "cross_attentions": ("decoder", "cross"),
}
"""The fields of the outputs of transformers with attention: stack and kind of their sites."""

PATTERN = re.compile(r"(?:(encoder|decoder)\.|blocks\.)(\d+)\.(?:(cross_)?attn)\.hook_pattern")
"""The name of a map in a cache of TransformerLens."""


@dataclass(frozen=True, eq=False)
class Layer:
    """The maps of one layer.

    Attributes:
        weights: [head, query, key].
        mask: [query, key], False where a step of a decode did not have the key yet; None: it had all of them.
        module: what the layer is called where it comes from; empty: it has no name.
        newest: whether the rows belong to the last tokens of the keys, as in a step of a decode with a cache.
    """

    site: Site
    weights: Array
    mask: Array | None = None
    module: str = ""
    newest: bool = False


def layers(attention: Any, example: int | None, axes: str) -> list[Layer]:
    """The layers of what was given.

    Args:
        attention: see `headlight.show`.
        example: which example of a batch; None: the only one.
        axes: names of the axes of an array; empty: the usual ones.

    Raises:
        ValueError: it is nothing of this kind, or something must be said about it; the sentence names the argument.
    """
    attention = _value(attention)
    if attention is None:
        raise ValueError(f"attention is None: {EAGER}")
    # An output of transformers is a dict, too, and a cache is like one: what is more particular is asked for first.
    if parts := dict(_parts(attention)):
        return [layer for name, part in parts.items() for layer in _of_output(attention, name, part, example, axes)]
    if _is_output(attention):
        raise ValueError(f"{type(attention).__name__} holds no attention: {EAGER}")
    if is_array(attention):
        return _of_array(attention, example, axes)
    if (named := _named(attention)) is not None:
        return _of_names(named, example, axes)
    if isinstance(attention, Sequence) and not isinstance(attention, str | bytes):
        return _of_sequence(attention, ("program", "unknown"), example, axes, "attention")
    raise ValueError(
        f"attention is {type(attention).__name__}: give arrays of weights [batch, head, query, key] by layer, the output of a "
        "model with output_attentions=True, a cache or dict of them, a recording, or the path of a trace."
    )


def _value(attention: Any) -> Any:
    """What a proxy of nnsight holds; everything else as it is."""
    return getattr(attention, "value", attention) if type(attention).__module__.startswith("nnsight") else attention


def _is_output(attention: Any) -> bool:
    """Whether it is the output of a model of transformers."""
    return type(attention).__module__.startswith("transformers.") and hasattr(attention, "keys")


def _parts(attention: Any) -> Iterator[tuple[str, Any]]:
    """The fields with attention of a model's output, or of a dict with such names, that hold any."""
    for name in PARTS:
        part = attention.get(name) if isinstance(attention, Mapping) else getattr(attention, name, None)
        if isinstance(part, list | tuple) and part:
            yield name, part
        elif part is not None and is_array(part):
            yield name, list(iter(part))


def _of_output(output: Any, name: str, part: Any, example: int | None, axes: str) -> Iterator[Layer]:
    """The layers of one field of a model's output."""
    stack, kind = PARTS[name]
    if name == "attentions" and getattr(output, "cross_attentions", None):
        stack = "decoder"  # of a decoder that reads an encoder
    # The encoder ran once for each input, whose example may have several sequences.
    if name == "encoder_attentions" and (sequences := getattr(output, "sequences", None)) is not None and len(sequences) > 1:
        if example is None:
            raise ValueError(f"{name} is of {len(sequences)} sequences: choose one with example=0 to example={len(sequences) - 1}.")
        example = generated.input_of(output, example, len(part[0]))
    # `generate` gives a tuple of steps, each a tuple of layers; a single call gives the layers.
    if generated.is_by_steps(part):
        rows = _rows(output, example)
        for number, (weights, mask) in enumerate(generated.joined(part, rows, example, name)):
            yield Layer(Site(stack, 0, number, kind), weights, mask, newest=kind == "self")
        return
    for layer in _of_sequence(part, (stack, kind), example, axes, name):
        yield Layer(layer.site, layer.weights, newest=kind == "self" and layer.weights.shape[1] < layer.weights.shape[2])


def _rows(output: Any, example: int | None) -> list[int] | None:
    """Of each step the row of the batch that belongs to a generated sequence.

    Raises:
        ValueError: there are several sequences and none was chosen.
    """
    sequences = getattr(output, "sequences", None)
    if sequences is not None and len(sequences) > 1 and example is None:
        raise ValueError(f"There are {len(sequences)} sequences: choose one with example=0 to example={len(sequences) - 1}.")
    return generated.rows_of_beams(output, example or 0)


def _of_array(attention: Any, example: int | None, axes: str) -> list[Layer]:
    """The layers of one array; of four axes the first is the layers."""
    array = arrays.as_array(attention, "attention")
    usual = {2: "query key", 3: "head query key", 4: "layer head query key", 5: "layer batch head query key"}
    array, names = arrays.arranged(array, axes or usual.get(array.ndim, ""), "attention")
    rest = " ".join(name for name in names if name != "layer")
    return _of_sequence(array if "layer" in names else array[None], ("program", "unknown"), example, rest, "attention")


def _of_sequence(values: Iterable[Any], of: tuple[str, Kind], example: int | None, axes: str, name: str) -> list[Layer]:
    """The layers of a sequence of arrays, or of steps with such sequences.

    Raises:
        ValueError: one of them is missing or no array.
    """
    values = [_value(value) for value in values]
    if not values or any(value is None or (isinstance(value, list | tuple) and not value) for value in values):
        raise ValueError(f"{name} holds no arrays: {EAGER}")
    if generated.is_by_steps(values):
        maps = enumerate(generated.joined(values, None, example, name))
        return [Layer(Site(of[0], 0, number, of[1]), weights, mask, newest=True) for number, (weights, mask) in maps]
    if wrong := [value for value in values if not is_array(value)]:
        raise ValueError(f"{name} is a sequence of {type(wrong[0]).__name__}: give one array of weights for each layer.")
    if not axes and any(len(value.shape) < 3 for value in values):
        raise ValueError(f"{name} is a sequence of maps: give one array [head, query, key], or say axes='query key' of layers.")
    of_layers = [arrays.layer(value, example, axes, f"layer {number + 1} of {name}") for number, value in enumerate(values)]
    return [Layer(Site(of[0], 0, number, of[1]), weights) for number, weights in enumerate(of_layers)]


def _named(attention: Any) -> dict[str, Any] | None:
    """The arrays of a dict, or of a cache that is like one, by their names; of a cache of TransformerLens its patterns."""
    if not isinstance(attention, Mapping) and not (hasattr(attention, "items") and hasattr(attention, "keys")):
        return None
    named = {str(name): _value(value) for name, value in attention.items()}
    return {name: value for name, value in named.items() if PATTERN.fullmatch(name)} or named


def _of_names(named: Mapping[str, Any], example: int | None, axes: str) -> list[Layer]:
    """The layers of arrays with names, in their order.

    Raises:
        ValueError: there are none, or one is no array.
    """
    if wrong := [name for name, value in named.items() if not is_array(value)]:
        raise ValueError(f"attention is a dict, and its entry {wrong[0]!r} is no array of weights.")
    if not named:
        raise ValueError("attention is a dict without arrays; a cache of TransformerLens needs the names that end in hook_pattern.")
    named_layers = list[Layer]()
    for name, value in named.items():
        known = PATTERN.fullmatch(name)
        stack = known[1] if known and known[1] else "program"
        kind: Kind = "cross" if known and known[3] else "self" if known else "unknown"
        number = sum(layer.site.stack == stack and layer.site.kind == kind for layer in named_layers)
        maps = arrays.layer(value, example, axes, name)
        named_layers.append(Layer(Site(stack, 0, number, kind), maps, module="" if known else name))
    return named_layers


def check_rows(layers: Iterable[Layer]) -> None:
    """Checks that rows are probabilities.

    Raises:
        ValueError: rows sum to something else, with what they may be.
    """
    for layer in layers:
        weights = layer.weights
        sums = weights.sum(axis=-1, dtype=np.float64)
        wrong = np.isfinite(sums) & (np.abs(sums - 1) > FROM_ONE) & (sums != 0)
        if wrong.any():
            raise ValueError(f"Rows of layer {layer.site.layer + 1} sum to {sums[wrong][0]:.3g} instead of 1: {_why(weights)}")


FROM_ONE = 2e-2
"""Largest deviation of a row's sum from 1 that rounding explains: bfloat16 has eight bits."""


def _why(weights: Array) -> str:
    """What rows with other sums are, and what to do."""
    if all(length < 2 for length in weights.shape[1:]) or (weights < 0).any():
        return "they look like scores. Give weights after the softmax, or show them as they are with any_sums=True."
    across = np.nan_to_num(weights).sum(axis=1, dtype=np.float64)
    if np.abs(across - 1).max() <= FROM_ONE:
        return "its columns do, so the last axes are key and query. Name them, as in axes='batch head key query'."
    heads = np.nan_to_num(weights).sum(axis=0, dtype=np.float64)
    if np.abs(heads - 1).max() <= FROM_ONE:
        return "its sums over the heads do, so the axes are in another order. Name them with axes=, such as axes='query key head'."
    return (
        "weights after dropout (call model.eval()), scores before the softmax, or rows with a sink. "
        "Give others, or show them as they are with any_sums=True."
    )
