"""Trace files: recognizes, reads and checks `*.trace.safetensors`, and the zip archives that hold one. Executes nothing.

A file of this machine that is larger than MAPPED_FROM is mapped into memory, so that a page reads only the parts that it draws. A
smaller one is read whole, because a mapped file must not shrink while it is open.
"""

import io
import mmap
import zipfile
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
from safetensors import SafetensorError, safe_open

from model.errors import BadTrace, WireError, phrase
from model.safe_loading import packed_trace
from model.safe_loading.packed_trace import ENDING as ENDING
from model.safe_loading.packed_trace import header
from model.safe_loading.sandbox_process import unpacked
from model.trace.checks import check
from model.trace.serialization import DTYPES, ENTRY, from_bytes, trace_of
from model.trace.types import Array, Trace

ARCHIVE = "run" + ENDING
"""Name of the trace in an archive of a run."""

MAPPED_FROM = 256 * 2**20
"""Bytes above which a file is mapped instead of read."""


def holds_trace(data: bytes) -> bool:
    """Whether an uploaded file is a trace, or an archive with one."""
    return _is_trace(io.BytesIO(data)) or packed_trace.entry(io.BytesIO(data)) is not None


def is_trace_file(path: Path) -> bool:
    """Whether a file of this machine is a trace, by its name or its header, or an archive with one."""
    if path.name.endswith(ENDING):
        return path.is_file()
    try:
        with path.open("rb") as file:
            return _is_trace(file) or packed_trace.entry(file) is not None
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
        if packed_trace.entry(io.BytesIO(data)) is not None:
            with TemporaryFile() as file:
                file.write(data)
                file.flush()
                data = unpacked(file, name)
        header(io.BytesIO(data))
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
                is_packed = packed_trace.entry(file) is not None
                file.seek(0)
                data = unpacked(file, path.name) if is_packed else file.read()
            return read_bytes(data, path.name)
        return _checked(_mapped(path))
    except WireError as error:
        raise BadTrace(path=path.name, detail=error.fields["detail"]) from error
    except OSError as error:
        raise BadTrace(path=path.name, detail=phrase("it cannot be read ({name})", name=type(error).__name__)) from error


def _checked(trace: Trace) -> Trace:
    check(trace)
    return trace


def _is_trace(file: BinaryIO) -> bool:
    """Whether a safetensors file says in its header that it is a trace."""
    try:
        return ENTRY in header(file)[1]["__metadata__"]
    except (WireError, KeyError, TypeError):
        return False


def _mapped(path: Path) -> Trace:
    """The trace in a large file; its arrays are views of the mapped file."""
    with path.open("rb") as file:
        begin, entries = header(file)
        # Mapped, not read: a file may be larger than the memory, and a page looks at a few heads of it.
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        with safe_open(path, framework="numpy") as checked:  # checks that the tensors lie inside the file, one after the other
            names = list(checked.keys())
        stored = {name: _view(held, len(begin), entries[name]) for name in names}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise WireError(detail=f"{type(error).__name__}: {error}") from error
    return trace_of(entries, stored)


def _view(held: mmap.mmap, begin: int, entry: dict[str, Any]) -> Array:
    dtype, (first, last) = np.dtype(DTYPES[entry["dtype"]]), entry["data_offsets"]
    return np.frombuffer(held, dtype, (last - first) // dtype.itemsize, begin + first).reshape(entry["shape"])
