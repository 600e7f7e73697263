"""Results as bytes and back: arrays bit by bit in safetensors, all other fields as JSON in its metadata. No torch."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.attribution.results import Result
from model.errors import BadSetting, WireError
from model.spec.validation import read

Kind = TypeVar("Kind", bound=Result)


def to_bytes(result: Result) -> bytes:
    """A result as bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in result.arrays().items()}
    others = {name: value for name, value in asdict(result).items() if name not in arrays}
    return save(arrays, metadata={"headlight": json.dumps(others, ensure_ascii=False)})


def from_bytes(kind: type[Kind], data: bytes) -> Kind:
    """The result in the bytes.

    Raises:
        WireError: they hold none of this kind.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        others: Mapping[str, Any] = json.loads(header["__metadata__"]["headlight"])
        found: dict[str, Any] = {**load(data), **_others(get_type_hints(kind), others)}
        return kind(**found)
    except (SafetensorError, BadSetting, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _others(hints: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The validated fields that are no arrays."""
    return {name: None if value is None else read(hints[name], value, name) for name, value in others.items()}
