"""Headers of GGUF files taken apart and put together again, so that one thing in them can be wrong."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEXT, LIST, U32, U64 = 8, 9, 4, 10
ALIGNMENT = 32


@dataclass
class Forged:
    """A header.

    Attributes:
        settings: name, type and bytes of each.
        tensors: name, numbers along each axis (the contiguous one first), type and offset of each.
        size: bytes of the tensors' numbers, which are all 0.
        tensor_count, setting_count: what the header says; None: the truth.
    """

    settings: list[tuple[bytes, int, bytes]]
    tensors: list[tuple[bytes, list[int], int, int]]
    size: int
    magic: bytes = b"GGUF"
    version: int = 3
    tensor_count: int | None = None
    setting_count: int | None = None
    end: bytes = field(default=b"")

    def header(self) -> bytes:
        """Its bytes, up to where the numbers begin."""
        counts = (
            len(self.tensors) if self.tensor_count is None else self.tensor_count,
            len(self.settings) if self.setting_count is None else self.setting_count,
        )
        parts = [self.magic, struct.pack("<IQQ", self.version, *counts)]
        parts += [text(name) + struct.pack("<I", kind) + value for name, kind, value in self.settings]
        for name, shape, kind, offset in self.tensors:
            parts.append(text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset))
        data = b"".join(parts) + self.end
        return data + bytes(-len(data) % ALIGNMENT)

    def write(self, path: Path) -> Path:
        """Writes the file; its numbers take no place on a disk."""
        with path.open("wb") as file:
            header = self.header()
            file.write(header)
            file.truncate(len(header) + self.size)
        return path

    def set(self, name: bytes, kind: int, value: bytes) -> None:
        """Gives a setting another value."""
        self.settings = [each for each in self.settings if each[0] != name] + [(name, kind, value)]


def text(content: bytes) -> bytes:
    """A text as the format stores it."""
    return struct.pack("<Q", len(content)) + content


def taken_apart(path: Path) -> Forged:
    """The header of a valid file."""
    with path.open("rb") as file:
        data = file.read(16 << 20)
    at = 24
    tensors, settings = struct.unpack_from("<QQ", data, 8)

    def number(form: str) -> int:
        nonlocal at
        (value,) = struct.unpack_from(f"<{form}", data, at)
        at += struct.calcsize(form)
        return int(value)

    def word() -> bytes:
        nonlocal at
        length = number("Q")
        at += length
        return data[at - length : at]

    def value(kind: int) -> bytes:
        nonlocal at
        start = at
        if kind == TEXT:
            word()
        elif kind == LIST:
            inner, count = number("I"), number("Q")
            for _ in range(count if inner == TEXT else 0):
                word()
            at += 0 if inner == TEXT else count * _SIZES[inner]
        else:
            at += _SIZES[kind]
        return data[start:at]

    def setting() -> tuple[bytes, int, bytes]:
        name, kind = word(), number("I")
        return name, kind, value(kind)

    def tensor() -> tuple[bytes, list[int], int, int]:
        name = word()
        return name, [number("Q") for _ in range(number("I"))], number("I"), number("Q")

    found = [setting() for _ in range(settings)], [tensor() for _ in range(tensors)]
    return Forged(*found, path.stat().st_size - at - -at % ALIGNMENT)


def numbered(names: Iterator[bytes]) -> list[tuple[bytes, int, bytes]]:
    """A setting of one number for each name."""
    return [(name, U32, struct.pack("<I", 1)) for name in names]
