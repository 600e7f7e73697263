"""The safetensors format: a length, a JSON header, then data in which every byte belongs to exactly one tensor."""

import json
from collections.abc import Mapping
from math import prod
from typing import Any, BinaryIO

from model.errors import DamagedFile, OverLimit, UnsoundFile, phrase
from model.safe_loading import limits
from model.safe_loading.inert_values import Storage, Tensor
from model.safe_loading.plan import ITEM_SIZES, Stored, printable

LENGTH = 8
"""Bytes at the beginning of a file that hold the length of its header."""

METADATA = "__metadata__"

_DTYPES: Mapping[str, str] = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
}


def read_safetensors(file: BinaryIO, size: int, path: str) -> tuple[Any, dict[str, Stored]]:
    """The tensors and metadata that the header describes, and where the bytes of each tensor are.

    Raises:
        UnsoundFile: a header longer than the file, doubled names, shapes that do not fit their bytes, holes or shared bytes.
        OverLimit: the header is too long.
        DamagedFile: the header is not a JSON object of the expected form.
    """
    file.seek(0)
    length = int.from_bytes(file.read(LENGTH), "little")
    if length > size - LENGTH:
        raise UnsoundFile(
            path=path, detail=phrase("its header claims {length:,} bytes, and the file has {size:,}", length=length, size=size)
        )
    if length > limits.MAX_HEADER:
        raise OverLimit(
            path=path,
            reason=phrase("its header has {found:,} bytes; at most {most:,} are read", found=length, most=limits.MAX_HEADER),
        )
    header = _header(file.read(length), path)
    root: dict[str, Any] = {METADATA: header.pop(METADATA)} if METADATA in header else {}
    stored = dict[str, Stored]()
    for name, entry in header.items():
        root[name], stored[name] = _tensor(name, entry, LENGTH + length, path)
    _check_cover(stored, LENGTH + length, size, path)
    return root, stored


def _header(written: bytes, path: str) -> dict[str, Any]:
    try:
        header = json.loads(written.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError as error:
        raise DamagedFile(path=path, detail=phrase("its header is nested too deeply")) from error
    except ValueError as error:
        raise DamagedFile(path=path, detail=phrase("its header is invalid: {reason}", reason=printable(error))) from error
    if not isinstance(header, dict) or not _is_metadata(header.get(METADATA, {})):
        raise DamagedFile(path=path, detail=phrase("its header is not a table of tensors"))
    return header


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name occurs twice")
    return table


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _is_metadata(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _tensor(name: str, entry: Any, data: int, path: str) -> tuple[Tensor, Stored]:
    match entry:
        case {"dtype": str(kind), "shape": [*shape], "data_offsets": [begin, end]} if len(entry) == 3 and _counts(
            [*shape, begin, end]
        ):
            dtype = _DTYPES.get(kind, kind)
            count = prod(shape)
        case _:
            raise DamagedFile(path=path, detail=phrase("its header does not say what {name} is", name=printable(name)))
    if dtype in ITEM_SIZES and count * ITEM_SIZES[dtype] != end - begin:
        raise UnsoundFile(
            path=path, detail=phrase("the tensor {name} does not fit its {value:,} bytes", name=printable(name), value=end - begin)
        )
    return Tensor(Storage(name, dtype, count), dtype, 0, tuple(shape), _strides(shape)), Stored(data + begin, end - begin)


def _counts(numbers: list[Any]) -> bool:
    return len(numbers) <= limits.MAX_AXES + 2 and all(type(number) is int and 0 <= number < 2**62 for number in numbers)


def _strides(shape: list[int]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _check_cover(stored: Mapping[str, Stored], start: int, size: int, path: str) -> None:
    """Checks that every byte after the header belongs to exactly one tensor."""
    # tensor after tensor without a gap: hidden bytes and shared ones are both refused
    for name, where in sorted(stored.items(), key=lambda item: (item[1].start, item[1].size)):
        if where.start != start:
            raise UnsoundFile(
                path=path, detail=phrase("the bytes of the tensor {name} overlap others or leave a hole", name=printable(name))
            )
        start += where.size
    if start != size:
        raise UnsoundFile(
            path=path, detail=phrase("its header accounts for {start:,} bytes, and the file has {size:,}", start=start, size=size)
        )
