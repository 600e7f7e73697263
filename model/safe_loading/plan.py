"""Plan: description of a file in plain values, which bytes are which tensor. The sandbox returns it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Format = Literal["safetensors", "torch zip", "torch legacy"]

ITEM_SIZES: Mapping[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint64": 8,
    "uint32": 4,
    "uint16": 2,
    "uint8": 1,
    "bool": 1,
    "complex64": 8,
    "complex128": 16,
}
"""Supported dtypes, by their name in torch, and the bytes of one number."""


@dataclass(frozen=True)
class Stored:
    """Position of a storage's bytes in the file, and their CRC-32 if the file has one."""

    start: int
    size: int
    checksum: int | None = None


@dataclass(frozen=True)
class Described:
    """A tensor as a view of a storage. Offset and strides count numbers, not bytes."""

    storage: str
    dtype: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


@dataclass(frozen=True)
class OtherEntry:
    """An entry of the file that is not a weight.

    Attributes:
        name: the keys that lead to it, joined by dots: epoch, args.heads.
        kind: its Python type: int, argparse.Namespace, torch.Tensor; torch.optim for an optimizer.
        value: its value, if it is a plain one.
        size: bytes of its tensors.
    """

    name: str
    kind: str
    value: str | int | float | bool | None = None
    size: int = 0


@dataclass(frozen=True)
class Plan:
    """Everything known of a file before its weights are read."""

    format: Format
    storages: Mapping[str, Stored]
    candidates: Mapping[str, Mapping[str, Described]]
    others: tuple[OtherEntry, ...]


def to_json(plan: Plan) -> str:
    """The plan as JSON, to be sent between processes."""
    return json.dumps(plan, default=vars)


def from_json(data: Mapping[str, Any]) -> Plan:
    """The plan that `to_json` wrote."""
    return Plan(
        format=data["format"],
        storages={key: Stored(**where) for key, where in data["storages"].items()},
        candidates={
            name: {
                key: Described(
                    tensor["storage"], tensor["dtype"], tensor["offset"], tuple(tensor["shape"]), tuple(tensor["stride"])
                )
                for key, tensor in table.items()
            }
            for name, table in data["candidates"].items()
        },
        others=tuple(OtherEntry(**entry) for entry in data["others"]),
    )


def printable(text: object, length: int = 80) -> str:
    """Text from a file, made safe for an error: one short line of printable characters."""
    words = "".join(letter if letter.isprintable() else "�" for letter in str(text)[: length + 1])
    return words if len(words) <= length else f"{words[:length]}…"
