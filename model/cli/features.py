"""Float features from a file, for networks that have no embedding. Nothing in the file is executed."""

import re
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from model.errors import BadSetting
from model.spec.inputs import Features, RandomFeatures
from model.trace.types import Array

LARGEST = 2**22
"""Most numbers."""

FORM = "FILE[:TENSOR[ROW]] with a .safetensors or .npy file, or random:POSITIONS[:SEED]"


def read_features(name: str, text: str) -> Features | RandomFeatures:
    """The features that `text` names.

    Args:
        name: the option's name, for errors.
        text: FILE, FILE:TENSOR, FILE:TENSOR[ROW] for one example of a batch, or random:POSITIONS[:SEED].

    Raises:
        BadSetting: there is no such file, tensor or row, or it is not a [position, model] array of numbers.
    """
    if drawn := re.fullmatch(r"random:([0-9]{1,6})(?::([0-9]{1,18}))?", text):
        return RandomFeatures(int(drawn[1]), int(drawn[2] or 0))
    path, tensor, row = _parts(text)
    array = _array(name, text, path, tensor)
    if array.ndim == 3:
        array = array[_row(name, text, row, len(array))]
    if array.ndim != 2 or not array.size or array.size > LARGEST or array.dtype.kind not in "fiu":
        raise BadSetting(
            name=name, found=f"{text} of shape {list(array.shape)}", allowed=f"[position, model] of at most {LARGEST:,} numbers"
        )
    return Features(tuple(map(tuple, array.astype(np.float64).tolist())))


def _parts(text: str) -> tuple[Path, str, str]:
    """File, tensor and row. File names may contain a colon."""
    if Path(text).is_file():
        return Path(text), "", ""
    path, _, rest = text.rpartition(":")
    match = re.fullmatch(r"(.*?)(?:\[([0-9]{1,6})\])?", rest)
    return Path(path), match[1] if match else rest, (match[2] or "") if match else ""


def _array(name: str, text: str, path: Path, tensor: str) -> Array:
    try:
        if path.suffix == ".npy":
            array: Array = np.load(path, allow_pickle=False, mmap_mode="r")
            return array
        with safe_open(path, framework="np") as file:
            names = list(file.keys())
            wanted = tensor or (names[0] if len(names) == 1 else "")
            if wanted not in names:
                raise BadSetting(name=name, found=text, allowed=f"FILE:TENSOR with one of the tensors {', '.join(names[:20])}")
            stored: Array = file.get_tensor(wanted)
            return stored
    except (SafetensorError, OSError, ValueError, EOFError, TypeError) as error:
        raise BadSetting(name=name, found=text, allowed=f"{FORM} ({type(error).__name__})") from error


def _row(name: str, text: str, row: str, count: int) -> int:
    """Index of the example in a batch; optional in a batch of one."""
    if row and int(row) < count:
        return int(row)
    if not row and count == 1:
        return 0
    raise BadSetting(name=name, found=text, allowed=f"one example of the {count}: {text.partition('[')[0]}[0] and so on")
