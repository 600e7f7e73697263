"""Arrays of any library as numpy arrays of float32. None of these libraries is imported here."""

from typing import Any

import numpy as np

from model.trace.types import Array

LARGEST = 4 * 2**30
"""Most bytes of one array in float32: a page of more would take minutes and more memory than most notebooks have."""

AXES = ("layer", "batch", "head", "query", "key")
"""Names of axes, in the order in which they are brought."""

BY_DIMENSIONS = {2: "query key", 3: "head query key", 4: "batch head query key"}
"""The axes of one layer's array by their number, where nobody names them."""


def is_array(value: Any) -> bool:
    """Whether a value is an array of some library."""
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type)


def as_array(value: Any, name: str) -> Array:
    """An array of numbers as numpy's float32, without a copy where there is none to make.

    Args:
        value: of torch (any device, gradients, bfloat16), numpy, jax, tensorflow, or of anything with `__array__` or dlpack.
        name: what it is, for errors.

    Raises:
        ValueError: it holds no real numbers, or too many.
    """
    size = 4 * int(np.prod([int(length) for length in value.shape], dtype=np.int64))
    if size > LARGEST:
        raise ValueError(f"{name} has {size / 2**30:.1f} GiB as float32; at most {LARGEST >> 30} GiB are drawn: give fewer layers.")
    # Torch, which is not imported here: numpy knows neither its bfloat16 nor its devices nor its gradients.
    if callable(getattr(value, "detach", None)):
        value = value.detach().float().cpu().numpy()
    try:
        array = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
        if np.iscomplexobj(array) or array.dtype == object:
            raise TypeError(f"of {array.dtype}")
        return array.astype(np.float32, copy=False)
    except (TypeError, ValueError, BufferError) as error:
        raise ValueError(f"{name} is no array of real numbers ({type(value).__name__}: {error}).") from error


def arranged(array: Array, axes: str, name: str) -> tuple[Array, tuple[str, ...]]:
    """An array with its axes in the order of AXES, and their names.

    Args:
        axes: the names of its axes in their order, with blanks between them.
        name: what it is, for errors.

    Raises:
        ValueError: these are no names of all its axes, or an axis has the length 0.
    """
    names = tuple(axes.split())
    if len(names) != array.ndim or len(set(names)) < len(names) or not {"query", "key"} <= set(names) <= set(AXES):
        raise ValueError(
            f"{name} has the shape {array.shape}. Name its {array.ndim} axes with axes=, each once, out of {', '.join(AXES)}; "
            f"{axes!r} does not fit."
        )
    if 0 in array.shape:
        raise ValueError(f"{name} has the shape {array.shape}: there is nothing in it.")
    order = tuple(sorted(names, key=AXES.index))
    return array.transpose([names.index(axis) for axis in order]), order


def chosen_example(array: Array, example: int | None, name: str) -> Array:
    """One example of an array [batch, …].

    Raises:
        ValueError: there are several and none was chosen, or there is no such example.
    """
    count = len(array)
    if example is None and count > 1:
        raise ValueError(f"{name} holds {count} examples: choose one with example=0 to example={count - 1}.")
    if not 0 <= (example or 0) < count:
        raise ValueError(f"{name} holds {count} examples: example={example} is none of them, they count from 0.")
    chosen: Array = array[example or 0]
    return chosen


def layer(value: Any, example: int | None, axes: str, name: str) -> Array:
    """The maps [head, query, key] of one layer.

    Raises:
        ValueError: the array is none of a layer.
    """
    array = as_array(value, name)
    if not axes and array.ndim not in BY_DIMENSIONS:
        raise ValueError(f"{name} has the shape {array.shape}; a layer has [head, query, key] or [batch, head, query, key].")
    array, names = arranged(array, axes or BY_DIMENSIONS[array.ndim], name)
    if "batch" in names:
        array = chosen_example(array, example, name)
    return array if "head" in names else array[None]
