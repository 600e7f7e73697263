"""The GGUF format of llama.cpp: three counts, settings by name, a list of tensors, and the bytes of each, in blocks of numbers.

Only this header is read here, in the sandbox: every count, length and offset is compared with the file before it is followed.
The gguf package reads such files too, but trusts their counts, and a count of 2⁶⁰ keeps it busy for ever.

Source: docs/gguf.md of ggml; versions 2 and 3, which differ only in that version 3 may be big-endian.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, BinaryIO

from model.errors import BadGguf, Phrase, phrase
from model.safe_loading import limits
from model.safe_loading.plan import printable

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
"""What offsets are multiples of, where `general.alignment` says nothing else."""

ARCHITECTURE = "general.architecture"

TYPES: Mapping[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
"""Types of tensors that are read: name, numbers in a block, bytes of a block."""

_PLAIN = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9
"""Kinds of settings: numbers and booleans by their form in `struct`, texts, lists."""


@dataclass(frozen=True)
class GgufTensor:
    """Where the bytes of a tensor are.

    Attributes:
        kind: a name of TYPES.
        shape: as torch counts axes: the last one is contiguous.
        start, size: its bytes in the file.
    """

    kind: str
    shape: tuple[int, ...]
    start: int
    size: int

    @property
    def bits(self) -> float:
        """Bits per number, with the scales of its blocks."""
        return 8 * self.size / prod(self.shape)


@dataclass(frozen=True)
class GgufHeader:
    """Everything in a GGUF file but the numbers.

    Attributes:
        settings: by name: numbers, booleans, texts, and lists of these.
        tensors: by name.
    """

    settings: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def to_json(header: GgufHeader) -> str:
    """The header as JSON, to be sent between processes."""
    return json.dumps(asdict(header))


def from_json(data: Mapping[str, Any]) -> GgufHeader:
    """The header that `to_json` wrote."""
    tensors = {name: GgufTensor(**tensor | {"shape": tuple(tensor["shape"])}) for name, tensor in data["tensors"].items()}
    return GgufHeader(data["settings"], tensors)


def read_header(file: BinaryIO, size: int, path: str) -> GgufHeader:
    """The header of an open file.

    Args:
        size: bytes of the file.
        path: the file's name in errors.

    Raises:
        BadGguf: a count, a length, a type or an offset does not fit the file or a limit, or a name occurs twice.
    """
    file.seek(0)
    read = _Header(file.read(min(size, limits.MAX_HEADER)), size, path)
    if read.bytes(len(MAGIC)) != MAGIC:
        raise read.bad(phrase("it does not begin with GGUF"))
    (version,) = read.numbers("I", 1)
    if version >= 2**16:
        raise read.bad(phrase("its numbers are big-endian, and only little-endian is read"))
    if version not in VERSIONS:
        raise read.bad(phrase("it is of version {version}; versions 2 and 3 are read", version=version))
    tensor_count, setting_count = read.numbers("Q", 2)
    if tensor_count > limits.MAX_TENSORS:
        raise read.bad(
            phrase("it claims {count:,} tensors; at most {most:,} are read", count=tensor_count, most=limits.MAX_TENSORS)
        )
    if setting_count > limits.MAX_SETTINGS:
        raise read.bad(
            phrase("it claims {count:,} settings; at most {most:,} are read", count=setting_count, most=limits.MAX_SETTINGS)
        )
    settings = dict[str, Any]()
    for _ in range(setting_count):
        name = read.name(settings)
        settings[name] = read.value(*read.numbers("I", 1))
    if not isinstance(settings.get(ARCHITECTURE), str):
        raise read.bad(phrase("it names no architecture"))
    listed = dict[str, tuple[tuple[int, ...], int, int]]()
    for _ in range(tensor_count):
        name = read.name(listed)
        listed[name] = read.tensor(name)
    return GgufHeader(settings, _places(read, listed, settings.get("general.alignment", ALIGNMENT)))


class _Header:
    """Reads the beginning of a file from the front to the back; every piece is asked for before it is taken."""

    def __init__(self, data: bytes, size: int, path: str) -> None:
        self.at, self.size = 0, size
        self._data, self._path, self._items = data, path, 0

    def bad(self, detail: Phrase) -> BadGguf:
        """The error about this file."""
        return BadGguf(path=self._path, detail=detail)

    def _skip(self, count: int) -> int:
        """Goes on by `count` bytes and returns where they begin."""
        start, self.at = self.at, self.at + count
        if self.at > self.size:
            raise self.bad(phrase("its header reaches beyond the {size:,} bytes of the file", size=self.size))
        if self.at > len(self._data):
            raise self.bad(phrase("its header has more than the {most:,} bytes that are read", most=len(self._data)))
        return start

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        start = self._skip(count)
        return self._data[start : self.at]

    def numbers(self, form: str, count: int) -> tuple[Any, ...]:
        """The next numbers of one kind."""
        return struct.unpack_from(f"<{count}{form}", self._data, self._skip(count * struct.calcsize(f"<{form}")))

    def text(self) -> str:
        """The next text: its length, then UTF-8."""
        (length,) = self.numbers("Q", 1)
        try:
            return self.bytes(length).decode()
        except UnicodeDecodeError as error:
            raise self.bad(phrase("a string in it is not UTF-8, near byte {at:,}", at=self.at)) from error

    def name(self, taken: Mapping[str, Any]) -> str:
        """The next text, if it can be a name that is not `taken`."""
        name = self.text()
        if not name or len(name) > limits.MAX_NAME or not name.isprintable():
            raise self.bad(phrase("the name {name} is empty, too long or cannot be printed", name=repr(printable(name))))
        if name in taken:
            raise self.bad(phrase("the name {name} occurs twice", name=printable(name)))
        return name

    def value(self, kind: int) -> Any:
        """The next value of a setting; a list holds plain values of one kind."""
        if kind in _PLAIN:
            (value,) = self.numbers(_PLAIN[kind], 1)
            return value
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            raise self.bad(phrase("a setting is of the type {kind}, which does not exist", kind=kind))
        ((inner,), (count,)) = self.numbers("I", 1), self.numbers("Q", 1)
        self._items += count
        if self._items > limits.MAX_ITEMS:
            raise self.bad(
                phrase("its lists claim {count:,} items; at most {most:,} are read", count=self._items, most=limits.MAX_ITEMS)
            )
        if inner in _PLAIN:
            return list(self.numbers(_PLAIN[inner], count))
        if inner != _TEXT:
            raise self.bad(phrase("a list in it contains items of the type {kind}, which are not read", kind=inner))
        return [self.text() for _ in range(count)]

    def tensor(self, name: str) -> tuple[tuple[int, ...], int, int]:
        """The next tensor's shape, type and offset."""
        (axes,) = self.numbers("I", 1)
        if not 1 <= axes <= limits.MAX_AXES:
            raise self.bad(
                phrase(
                    "the tensor {name} has {axes:,} axes, not 1 to {most}", name=printable(name), axes=axes, most=limits.MAX_AXES
                )
            )
        # ggml counts axes from the contiguous one
        shape = self.numbers("Q", axes)[::-1]
        (kind,), (offset,) = self.numbers("I", 1), self.numbers("Q", 1)
        if kind not in TYPES:
            allowed = ", ".join(known for known, _, _ in TYPES.values())
            raise self.bad(
                phrase(
                    "the tensor {name} is of the type number {kind}, and only these are read: {allowed}",
                    name=printable(name),
                    kind=kind,
                    allowed=allowed,
                )
            )
        return shape, kind, offset


def _places(read: _Header, listed: Mapping[str, tuple[tuple[int, ...], int, int]], alignment: Any) -> dict[str, GgufTensor]:
    """The tensors with their bytes, each inside the file and none inside another."""
    if type(alignment) is not int or not 1 <= alignment <= limits.MAX_ALIGNMENT or alignment & (alignment - 1):
        raise read.bad(
            phrase(
                "its alignment is {found}, not a power of two up to {most:,}", found=printable(alignment), most=limits.MAX_ALIGNMENT
            )
        )
    # rounded up
    start = -(-read.at // alignment) * alignment
    places = dict[str, GgufTensor]()
    for name, (shape, number, offset) in listed.items():
        kind, block, bytes_ = TYPES[number]
        count = prod(shape)
        if not count or shape[-1] % block:
            raise read.bad(
                phrase(
                    "the tensor {name} is {shape}, which blocks of {block} numbers do not fill",
                    name=printable(name),
                    shape="×".join(map(str, shape)),
                    block=block,
                )
            )
        size = count // block * bytes_
        if start + offset + size > read.size:
            raise read.bad(
                phrase("the tensor {name} reaches beyond the {size:,} bytes of the file", name=printable(name), size=read.size)
            )
        if offset % alignment:
            raise read.bad(
                phrase("the tensor {name} does not begin at a multiple of {alignment}", name=printable(name), alignment=alignment)
            )
        places[name] = GgufTensor(kind, shape, start + offset, size)
    end = 0
    for name, tensor in sorted(places.items(), key=lambda item: item[1].start):
        if tensor.start < end:
            raise read.bad(phrase("the tensor {name} shares bytes with another", name=printable(name)))
        end = tensor.start + tensor.size
    return places
