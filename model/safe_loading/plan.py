"""What a file holds, in plain values: which bytes are which tensor. The process that looks into the file hands this over."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
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
"""Bytes of one number by the kind's name in torch: the kinds that are read."""


@dataclass(frozen=True)
class Stored:
    """Where a storage's bytes are in the file, and their checksum (CRC-32) where the file has one."""

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
class Beside:
    """Something in the file that is no weight.

    Attributes:
        name: the keys that lead to it, joined by dots: epoch, args.heads.
        kind: its type by its name in Python: int, argparse.Namespace, torch.Tensor, an optimizer's torch.optim.
        value: what it says, if it is a plain one.
        size: bytes of its tensors.
    """

    name: str
    kind: str
    value: str | int | float | bool | None = None
    size: int = 0


@dataclass(frozen=True)
class Plan:
    """All that is known of a file before one byte of its weights is read."""

    format: Format
    storages: Mapping[str, Stored]
    candidates: Mapping[str, Mapping[str, Described]]
    beside: tuple[Beside, ...]


def to_json(plan: Plan) -> str:
    """The plan as text, for the way between two processes."""
    return json.dumps(asdict(plan))


def from_json(data: Mapping[str, Any]) -> Plan:
    """The plan that `to_json` wrote."""
    return Plan(
        format=data["format"],
        storages={key: Stored(**where) for key, where in data["storages"].items()},
        candidates={name: {key: _described(t) for key, t in table.items()} for name, table in data["candidates"].items()},
        beside=tuple(Beside(**entry) for entry in data["beside"]),
    )


def _described(data: Mapping[str, Any]) -> Described:
    return Described(data["storage"], data["dtype"], data["offset"], tuple(data["shape"]), tuple(data["stride"]))


def shown(text: object, length: int = 80) -> str:
    """A file's own words, fit for a sentence: one line of printable characters, not too long."""
    words = "".join(letter if letter.isprintable() else "�" for letter in str(text)[: length + 1])
    return words if len(words) <= length else f"{words[:length]}…"
