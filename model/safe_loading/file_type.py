"""File type detection by the first bytes, never by the name."""

from collections.abc import Mapping
from typing import Literal

from model.errors import NotACheckpoint

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""Magic number of torch's legacy format, which stores it as the first pickle."""

HEAD = 512
"""Number of bytes examined."""

LEGACY = b"\x8a\n" + LEGACY_MAGIC.to_bytes(10, "little")
"""The instruction of the legacy format's first pickle that pushes its magic number."""

ZIP = b"PK\x03\x04"

_OTHERS: Mapping[bytes, str] = {
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"%PDF": "a PDF document",
    b"\x1f\x8b": "a gzip archive (unpack it first)",
    b"7z\xbc\xaf": "a 7z archive (unpack it first)",
    b"Rar!": "a RAR archive (unpack it first)",
    b"BZh": "a bzip2 archive (unpack it first)",
    b"\xfd7zXZ": "an xz archive (unpack it first)",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive (unpack it first)",
    b"PK\x05\x06": "an empty zip archive",
    b"\x89HDF": "an HDF5 file, as Keras writes it",
    b"\x93NUMPY": "a NumPy array",
    b"GGUF": "a GGUF file, as llama.cpp reads it",
    b"version https://git-lfs": "a Git LFS pointer (the weights themselves were not downloaded: run git lfs pull)",
    b"<!DOCTYPE": "a web page",
    b"<!doctype": "a web page",
    b"<html": "a web page",
    b"\x80": "a Python pickle that torch.save did not write",
}


def format_of(head: bytes, path: str) -> Literal["archive", "stream", "safetensors"]:
    """The format of a file that begins with `head`.

    Raises:
        NotACheckpoint: it is none of the three; the error says what the file is.
    """
    if head.startswith(ZIP):
        return "archive"
    if head[:1] == b"\x80" and LEGACY in head[2:32]:
        return "stream"
    if head[8:9] == b"{":
        return "safetensors"
    raise NotACheckpoint(path=path, found=_other(head))


def _other(head: bytes) -> str:
    if not head:
        return "empty"
    if head[257:262] == b"ustar":
        return "a tar archive"
    for beginning, words in _OTHERS.items():
        if head.startswith(beginning):
            return words
    if all(byte in b"\t\n\r" or byte >= 32 for byte in head):
        return "a text"
    return f"of an unknown kind (it begins with the bytes {head[:4].hex(' ')})"
