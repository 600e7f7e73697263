"""Trace files: recognizes, reads and checks `*.trace.safetensors`, and the zip archives that hold one. Executes nothing.

A file of this machine that is larger than MAPPED_FROM is mapped into memory, so that a page reads only the parts that it draws. A
smaller one is read whole, because a mapped file must not shrink while it is open.
"""

import io
import json
import lzma
import mmap
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from model.errors import BadTrace, WireError
from model.trace.checks import check
from model.trace.serialization import DTYPES, ENTRY, from_bytes, trace_of
from model.trace.types import Array, Trace

ENDING = ".trace.safetensors"
"""Ending of a trace's file name."""

ARCHIVE = "run" + ENDING
"""Name of the trace in an archive of a run."""

MOST_HEADER = 16 * 2**20
"""Most bytes of a header. A beam search of 32 hypotheses and 1,000 tokens needs 10 MB."""

MAPPED_FROM = 256 * 2**20
"""Bytes above which a file is mapped instead of read."""

MOST_UNPACKED = 1024 * 2**20
"""Most bytes of a trace in an archive, unpacked."""

MOST_DIRECTORY = 2**20
"""Most bytes of an archive's list of files."""

_LENGTH = 8  # bytes of a safetensors file that hold the length of its header
_END, _LOCATOR = 22, 20  # bytes of two records at the end of a zip archive


def holds_trace(data: bytes) -> bool:
    """Whether an uploaded file is a trace, or an archive with one."""
    return _is_trace(io.BytesIO(data)) or _trace_inside(io.BytesIO(data)) is not None


def is_trace_file(path: Path) -> bool:
    """Whether a file of this machine is a trace, by its name or its header, or an archive with one."""
    if path.name.endswith(ENDING):
        return path.is_file()
    try:
        with path.open("rb") as file:
            return _is_trace(file) or _trace_inside(file) is not None
    except OSError:
        return False


def read_bytes(data: bytes, name: str) -> Trace:
    """The trace in the bytes of a file or an archive.

    Args:
        name: its file name, for errors.

    Raises:
        BadTrace: it is none, or its parts contradict each other.
    """
    try:
        if (inside := _trace_inside(io.BytesIO(data))) is not None:
            data = _unpacked(io.BytesIO(data), inside)
        _header(io.BytesIO(data))
        return _checked(from_bytes(data))
    except WireError as error:
        raise BadTrace(path=name, detail=error.fields["detail"]) from error


def read_path(path: Path) -> Trace:
    """The trace in a file or an archive of this machine.

    Raises:
        BadTrace: it is none, its parts contradict each other, or it cannot be read.
    """
    try:
        if path.stat().st_size <= MAPPED_FROM or zipfile.is_zipfile(path):
            with path.open("rb") as file:
                inside = _trace_inside(file)
                file.seek(0)
                return read_bytes(file.read() if inside is None else _unpacked(file, inside), path.name)
        return _checked(_mapped(path))
    except WireError as error:
        raise BadTrace(path=path.name, detail=error.fields["detail"]) from error
    except OSError as error:
        raise BadTrace(path=path.name, detail=f"it cannot be read ({type(error).__name__})") from error


def _checked(trace: Trace) -> Trace:
    check(trace)
    return trace


def _is_trace(file: BinaryIO) -> bool:
    """Whether a safetensors file says in its header that it is a trace."""
    try:
        return ENTRY in _header(file)["__metadata__"]
    except (WireError, KeyError, TypeError):
        return False


def _header(file: BinaryIO) -> Any:
    """The header of a safetensors file.

    Raises:
        WireError: it has none, or one that is too long.
    """
    length = int.from_bytes(file.read(_LENGTH), "little")
    if length > MOST_HEADER:
        raise WireError(detail=f"its header would have {length:,} bytes; at most {MOST_HEADER:,} are read")
    try:
        return json.loads(file.read(length))
    except (ValueError, RecursionError) as error:
        raise WireError(detail=f"its header cannot be read ({type(error).__name__})") from error


def _mapped(path: Path) -> Trace:
    """The trace in a large file; its arrays are views of the mapped file."""
    with path.open("rb") as file:
        header = _header(file)
        begin = file.tell()
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        with safe_open(path, framework="numpy") as checked:  # checks that the tensors lie inside the file, one after the other
            names = list(checked.keys())
        stored = {name: _view(held, begin, header[name]) for name in names}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error
    return trace_of(header, stored)


_DAMAGED = (zipfile.BadZipFile, ValueError, RuntimeError, EOFError, OSError, struct.error, zlib.error, lzma.LZMAError)
"""Errors of `zipfile` and its decompressors. NotImplementedError (a way of packing that they do not know) is a RuntimeError."""


def _view(held: mmap.mmap, begin: int, entry: dict[str, Any]) -> Array:
    dtype, (first, last) = np.dtype(DTYPES[entry["dtype"]]), entry["data_offsets"]
    return np.frombuffer(held, dtype, (last - first) // dtype.itemsize, begin + first).reshape(entry["shape"])


def _trace_inside(file: BinaryIO) -> zipfile.ZipInfo | None:
    """The entry of the trace in an archive of a run; None: it is no such archive."""
    if not 0 < _directory_bytes(file) <= MOST_DIRECTORY:
        return None
    try:
        with zipfile.ZipFile(file) as archive:
            found = [entry for entry in archive.infolist() if entry.filename.rpartition("/")[2].endswith(ENDING)]
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError, struct.error):
        return None
    return found[0] if len(found) == 1 else None


def _directory_bytes(file: BinaryIO) -> int:
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


def _unpacked(file: BinaryIO, entry: zipfile.ZipInfo) -> bytes:
    """The trace in an archive.

    Raises:
        WireError: it is too large unpacked, or damaged.
    """
    if entry.file_size > MOST_UNPACKED:
        raise WireError(detail=f"it would have {entry.file_size:,} bytes unpacked; at most {MOST_UNPACKED:,} are read")
    try:
        with zipfile.ZipFile(file) as archive, archive.open(entry) as packed:
            data = packed.read(MOST_UNPACKED + 1)
    except _DAMAGED as error:
        raise WireError(detail=f"its archive is damaged ({type(error).__name__})") from error
    if len(data) > MOST_UNPACKED:
        raise WireError(detail=f"it has more than {MOST_UNPACKED:,} bytes unpacked")
    return data
