"""Files to open: honest ones as torch and safetensors write them, and dishonest ones with every part free to choose."""

import io
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

Entries = list[tuple[str, bytes]]


@dataclass(frozen=True)
class Storage:
    """A storage that a forged pickle names."""

    kind: Any = torch.FloatStorage
    key: Any = "0"
    count: Any = 4


class Forged:
    """A tensor that a forged pickle describes: nothing of it needs to be true."""

    def __init__(
        self, storage: Any, offset: Any, shape: Any, stride: Any, rebuild: Any = torch._utils._rebuild_tensor_v2, *more: Any
    ) -> None:
        self.call = (rebuild, (storage, offset, shape, stride, False, {}, *more))

    def __reduce__(self) -> Any:
        return self.call


class Call:
    """Asks for `function(*arguments)` when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        return ("storage", value.kind, value.key, "cpu", value.count) if isinstance(value, Storage) else None


def pickled(value: Any, protocol: int = 2) -> bytes:
    """`value` as torch.save pickles it."""
    written = io.BytesIO()
    _Pickler(written, protocol).dump(value)
    return written.getvalue()


def zipped(entries: Iterable[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of these entries in this order."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", compression) as archive:
        for name, data in entries:
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                archive.writestr(zipfile.ZipInfo(name), data, compression)
    return written.getvalue()


def entries_of(archive: bytes) -> Entries:
    """The entries of an archive in their order."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return [(info.filename, opened.read(info)) for info in opened.infolist()]


def archive(value: Any, storages: Mapping[str, bytes] | None = None, order: bytes = b"little", protocol: int = 2) -> bytes:
    """torch's zip format around a pickle of `value`, or around `value` itself where that is bytes."""
    written = value if isinstance(value, bytes) else pickled(value, protocol)
    data = {"0": bytes(16)} if storages is None else storages
    kept = [(f"a/data/{key}", raw) for key, raw in data.items()]
    return zipped([("a/data.pkl", written), ("a/byteorder", order), *kept, ("a/version", b"3\n")])


def stream(value: Any, storages: Mapping[str, tuple[int, bytes]] | None = None, protocol: int = 2) -> bytes:
    """torch's older format around a pickle of `value`. `storages` holds the count that is claimed and the bytes."""
    data = {"0": (4, bytes(16))} if storages is None else storages
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}, value, list(data)]
    raw = b"".join(struct.pack("<q", count) + kept for count, kept in data.values())
    return b"".join(part if isinstance(part, bytes) else pickled(part, protocol) for part in head) + raw


def headed(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file with any header and any length claimed for it."""
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def saved(value: Any, *, legacy: bool = False) -> bytes:
    """What torch.save writes."""
    written = io.BytesIO()
    torch.save(value, written, _use_new_zipfile_serialization=not legacy)
    return written.getvalue()


def with_flags(archive: bytes, flags: int) -> bytes:
    """Sets bits of the flags of every entry in the directory."""
    data = bytearray(archive)
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= flags
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(data)


def without_checksums(archive: bytes) -> bytes:
    """Sets every checksum to 0, as torch.save does when it is told not to compute them."""
    data = archive
    for _, raw in entries_of(archive):
        data = data.replace(struct.pack("<I", zlib.crc32(raw)), bytes(4)) if raw else data
    return data
