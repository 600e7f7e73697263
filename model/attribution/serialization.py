"""Results as bytes and back: arrays bit by bit in safetensors, all other fields as JSON in its metadata. No torch."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from model.attribution.results import Result
from model.errors import BadSetting, Phrase, WireError, Words
from model.spec.validation import read

Kind = TypeVar("Kind", bound=Result)

_PARTS = ("headlight", "phrases")
"""Entries of the metadata: the fields, and the phrases among their sentences."""


def to_bytes(result: Result) -> bytes:
    """A result as bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in result.arrays().items()}
    others = {name: value for name, value in asdict(result).items() if name not in arrays}
    said: Mapping[str, Words] = getattr(result, "missing", {})
    others |= {"missing": {name: str(why) for name, why in said.items()}} if said else {}
    phrases = [why.to_json() for why in said.values() if isinstance(why, Phrase)]  # beside: older clients read the English
    return save(
        arrays, metadata={name: json.dumps(own, ensure_ascii=False) for name, own in zip(_PARTS, (others, phrases), strict=True)}
    )


def from_bytes(kind: type[Kind], data: bytes) -> Kind:
    """The result in the bytes.

    Raises:
        WireError: they hold none of this kind.
    """
    try:
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        others: Mapping[str, Any] = json.loads(header["__metadata__"]["headlight"])
        found: dict[str, Any] = {**load(data), **_others(get_type_hints(kind), others)}
        known = {str(each): each for each in map(Phrase.from_json, json.loads(header["__metadata__"].get(_PARTS[1], "[]")))}
        if "missing" in found:
            found["missing"] = {name: known.get(why, why) for name, why in found["missing"].items()}
        return kind(**found)
    except (SafetensorError, BadSetting, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error


def _others(hints: Mapping[str, Any], others: Mapping[str, Any]) -> dict[str, Any]:
    """The validated fields that are no arrays."""
    return {name: None if value is None else read(hints[name], value, name) for name, value in others.items()}
