"""Packed traces: finds the trace in a zip archive of a run, and unpacks it. The standard library alone, so that a bare Python can.

An archive of 1 MB can unpack to 1 GB. So the header of the trace is read first: it says how long the trace is, which must agree
with the archive's own claim and stay within a bound that honest traces never reach.
"""

import io
import json
import lzma
import shutil
import struct
import sys
import zipfile
import zlib
from typing import IO, Any

from model.errors import WireError, phrase
from model.safe_loading import bounds, limits

ENDING = ".trace.safetensors"
"""Ending of a trace's file name."""

MOST_HEADER = 16 * 2**20
"""Most bytes of a header. A beam search of 32 hypotheses and 1,000 tokens needs 10 MB."""

MOST_UNPACKED = 1024 * 2**20
"""Most bytes of a trace in an archive, unpacked."""

MOST_GAIN, SPARE = 100, 16 * 2**20
"""Most times its packed size that a trace takes unpacked, and the bytes that it may take beyond. Weights shrink to a half."""

MOST_DIRECTORY = 2**20
"""Most bytes of an archive's list of files."""

LENGTH = 8
"""Bytes of a safetensors file that hold the length of its header."""

_END, _LOCATOR = 22, 20  # bytes of two records at the end of a zip archive
_DAMAGED = (zipfile.BadZipFile, ValueError, RuntimeError, EOFError, OSError, struct.error, zlib.error, lzma.LZMAError)
"""Errors of `zipfile` and its decompressors. NotImplementedError (a way of packing that they do not know) is a RuntimeError."""


def entry(file: IO[bytes]) -> zipfile.ZipInfo | None:
    """The entry of the trace in an archive of a run; None: it is no such archive."""
    if not 0 < _directory_bytes(file) <= MOST_DIRECTORY:
        return None
    try:
        with zipfile.ZipFile(file) as archive:
            traces = [member for member in archive.infolist() if member.filename.rpartition("/")[2].endswith(ENDING)]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error):
        return None
    return traces[0] if len(traces) == 1 else None


def header(file: IO[bytes]) -> tuple[bytes, Any]:
    """The beginning of a safetensors file and the header in it.

    Raises:
        WireError: it has none, or one that is too long.
    """
    begin = file.read(LENGTH)
    length = int.from_bytes(begin, "little")
    if length > MOST_HEADER:
        raise WireError(
            detail=phrase("its header would have {length:,} bytes; at most {most:,} are read", length=length, most=MOST_HEADER)
        )
    text = file.read(length)
    try:
        return begin + text, json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(detail=phrase("its header cannot be read ({name})", name=type(error).__name__)) from error


def unpack(file: IO[bytes], into: IO[bytes]) -> None:
    """Writes the trace in an archive.

    Raises:
        WireError: it is too large unpacked, or damaged; nothing, or a part of it, is written.
    """
    member = entry(file)
    if member is None:
        raise WireError(detail=phrase("its archive is damaged"))
    size = file.seek(0, io.SEEK_END)
    # what is claimed is bounded before anything is unpacked
    most = min(MOST_UNPACKED, SPARE + MOST_GAIN * min(size, member.compress_size))
    if member.file_size > most:
        raise WireError(
            detail=phrase(
                "it would have {file_size:,} bytes unpacked; at most {most:,} are read", file_size=member.file_size, most=most
            )
        )
    try:
        with zipfile.ZipFile(file) as archive, archive.open(member) as packed:
            begin, described = header(packed)
            if len(begin) + _length(described) != member.file_size:
                raise WireError(
                    detail=phrase(
                        "it would have {file_size:,} bytes unpacked; its header gives a different length",
                        file_size=member.file_size,
                    )
                )
            into.write(begin)
            shutil.copyfileobj(packed, into)
    except _DAMAGED as error:
        raise WireError(detail=phrase("its archive is damaged ({name})", name=type(error).__name__)) from error


def main() -> None:
    """Unpacks standard input to standard output, or writes an error, as JSON, to standard error."""
    bounds.limit_this_process(limits.MAX_MEMORY, limits.MAX_SECONDS, MOST_UNPACKED)
    try:
        unpack(sys.stdin.buffer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except WireError as error:
        sys.exit(json.dumps(error.to_json()))
    except MemoryError:
        sys.exit(json.dumps(WireError(detail=phrase("unpacking it takes too much memory")).to_json()))


def _length(described: Any) -> int:
    """Bytes of the tensors that a header lists."""
    try:
        return max((int(tensor["data_offsets"][1]) for name, tensor in described.items() if name != "__metadata__"), default=0)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise WireError(detail=phrase("its header cannot be read ({name})", name=type(error).__name__)) from error


def _directory_bytes(file: IO[bytes]) -> int:
    """Bytes of a zip archive's list of files, found as `zipfile` finds it; 0: no archive, or one in the format for huge archives.

    Python reads the whole list into memory, so its size is checked before.
    """
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        return 0
    size = file.seek(0, io.SEEK_END)
    start = file.seek(max(0, size - _END - 2**16 - _LOCATOR))
    tail = file.read(size - start)
    end = len(tail) - _END if tail[-_END:].startswith(b"PK\x05\x06") else tail.rfind(b"PK\x05\x06")
    if end < 0 or tail[max(0, end - _LOCATOR) : end].startswith(b"PK\x06\x07"):
        return 0
    return int.from_bytes(tail[end + 12 : end + 16], "little")
