"""File type detection by the first bytes, never by the name."""

from collections.abc import Mapping
from typing import Literal

from model.errors import NotACheckpoint, Phrase, phrase

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
"""Magic number of torch's legacy format, which stores it as the first pickle."""

HEAD = 512
"""Number of bytes examined."""

LEGACY = b"\x8a\n" + LEGACY_MAGIC.to_bytes(10, "little")
"""The instruction of the legacy format's first pickle that pushes its magic number."""

ZIP = b"PK\x03\x04"

_OTHERS: Mapping[bytes, Phrase] = {
    b"\x89PNG": phrase("a PNG image"),
    b"\xff\xd8\xff": phrase("a JPEG image"),
    b"GIF8": phrase("a GIF image"),
    b"%PDF": phrase("a PDF document"),
    b"\x1f\x8b": phrase("a gzip archive (unpack it first)"),
    b"7z\xbc\xaf": phrase("a 7z archive (unpack it first)"),
    b"Rar!": phrase("a RAR archive (unpack it first)"),
    b"BZh": phrase("a bzip2 archive (unpack it first)"),
    b"\xfd7zXZ": phrase("an xz archive (unpack it first)"),
    b"\x28\xb5\x2f\xfd": phrase("a Zstandard archive (unpack it first)"),
    b"PK\x05\x06": phrase("an empty zip archive"),
    b"\x89HDF": phrase("an HDF5 file, as Keras writes it"),
    b"\x93NUMPY": phrase("a NumPy array"),
    b"GGUF": phrase("a GGUF file, as llama.cpp reads it"),
    b"version https://git-lfs": phrase("a Git LFS pointer (the weights themselves were not downloaded: run git lfs pull)"),
    b"<!DOCTYPE": phrase("a web page"),
    b"<!doctype": phrase("a web page"),
    b"<html": phrase("a web page"),
    b"\x80": phrase("a Python pickle that torch.save did not write"),
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


def _other(head: bytes) -> Phrase:
    if not head:
        return phrase("an empty file")
    if head[257:262] == b"ustar":
        return phrase("a tar archive")
    for beginning, words in _OTHERS.items():
        if head.startswith(beginning):
            return words
    if all(byte in b"\t\n\r" or byte >= 32 for byte in head):
        return phrase("a text file")
    return phrase("a file of an unknown kind, which begins with the bytes {bytes}", bytes=head[:4].hex(" "))
