"""torch's zip format: locates the entries and interprets the pickle. Nothing is unpacked."""

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from itertools import pairwise
from pathlib import PureWindowsPath
from typing import Any, BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from model.errors import DamagedFile, NotACheckpoint, OverLimit, Phrase, UnreadableNumbers, UnsoundFile, phrase
from model.safe_loading import limits
from model.safe_loading.pickle_machine import Machine
from model.safe_loading.plan import Stored, printable

END, LOCATOR, RECORD = 22, 20, 56
"""Bytes of the three records at the end of an archive: end record, zip64 locator, zip64 record."""

LOCAL = 30
"""Bytes of the fixed part of each entry's local header."""

UNPACKED = (".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".gguf")
"""Endings of weight files, which are opened outside of an archive alone."""


def read_archive(file: BinaryIO, size: int, path: str) -> tuple[Any, dict[str, Stored]]:
    """The value that the archive's pickle describes, and where the bytes of each storage are.

    Raises:
        NotACheckpoint: a zip archive that torch.save did not write.
        UnsoundFile: entries that are compressed, encrypted, duplicate, overlapping, larger than the file, or outside the archive.
        UnreadableNumbers: its numbers are not little-endian.
        OverLimit: its directory or its pickle is too large.
        DamagedFile: the archive is cut off or its parts do not fit together.
        UnsafeFile: its pickle calls something that weights do not need.
    """
    entries = _entries(file, size, path)
    folder = _folder(entries, path)
    _check_order(_short_entry(file, entries.get(f"{folder}/byteorder")), path)
    pickle = entries[f"{folder}/data.pkl"]
    if pickle.size > limits.MAX_HEADER:
        raise OverLimit(
            path=path,
            reason=phrase("its pickle has {found:,} bytes; at most {most:,} are read", found=pickle.size, most=limits.MAX_HEADER),
        )
    written = _read(file, pickle)
    if pickle.checksum and zlib.crc32(written) != pickle.checksum:
        raise DamagedFile(path=path, detail=phrase("the checksum of its data.pkl is wrong"))
    root = Machine(path).follow(BytesIO(written))
    # torch numbers its storages; the pickle names them by these numbers
    prefix = f"{folder}/data/"
    return root, {name.removeprefix(prefix): where for name, where in entries.items() if name.startswith(prefix)}


def _entries(file: BinaryIO, size: int, path: str) -> dict[str, Stored]:
    """Where each entry's bytes are, after all entries are validated."""
    _check_end(file, size, path)
    try:
        archive = ZipFile(file)
    except (BadZipFile, NotImplementedError, ValueError, IndexError, OverflowError, OSError, struct.error) as error:
        raise DamagedFile(path=path, detail=phrase("its directory is invalid: {reason}", reason=printable(error))) from error
    infos = sorted(archive.infolist(), key=lambda info: info.header_offset)
    if other := _other_program([info.orig_filename for info in infos]):
        raise NotACheckpoint(path=path, found=other)
    # the largest first: the error then names what matters
    for info in sorted(infos, key=lambda info: -info.file_size):
        if flaw := _flaw(info):
            raise UnsoundFile(path=path, detail=flaw)
    # two entries of one name: what is checked and what is read could differ
    if len({info.orig_filename for info in infos}) < len(infos):
        raise UnsoundFile(path=path, detail=phrase("its entry {name} occurs twice", name=printable(_repeated_name(infos))))
    if (total := sum(info.file_size for info in infos)) > size:
        raise UnsoundFile(
            path=path, detail=phrase("its entries claim {total:,} bytes, and the file has {size:,}", total=total, size=size)
        )
    return _places(file, infos, archive.start_dir, path)


def _check_end(file: BinaryIO, size: int, path: str) -> None:
    """Checks that the directory is where zipfile looks for it, and not too large."""
    file.seek(max(0, size - END - LOCATOR - RECORD))
    tail = file.read().rjust(END + LOCATOR + RECORD, b"\0")
    record, locator, end = tail[:RECORD], tail[RECORD:-END], tail[-END:]
    if end[:4] != b"PK\x05\x06":
        raise DamagedFile(
            path=path, detail=phrase("the end of its zip archive is missing: it is cut off, or something was added to it")
        )
    # the size of the directory, read before zipfile reads all of it into memory
    (directory,) = struct.unpack_from("<I", end, 12)
    if locator[:4] == b"PK\x06\x07":
        (at,) = struct.unpack_from("<Q", locator, 8)
        (directory,) = struct.unpack_from("<Q", record, 40)
        if record[:4] != b"PK\x06\x06" or at != size - END - LOCATOR - RECORD:
            raise DamagedFile(path=path, detail=phrase("the end of its zip archive is invalid"))
    if directory > limits.MAX_HEADER:
        raise OverLimit(
            path=path,
            reason=phrase("its directory has {found:,} bytes; at most {most:,} are read", found=directory, most=limits.MAX_HEADER),
        )


def _other_program(names: Sequence[str]) -> Phrase | None:
    """What an archive is whose entries another program than torch.save names; None: torch.save may have written it.

    Others compress their entries, so this comes before what an entry of torch.save must be.
    """
    files = {PureWindowsPath(name).name for name in names}  # which also splits at a backslash, as no honest archive has it
    if "data.pkl" in files:
        return phrase("a TorchScript program, not weights") if "constants.pkl" in files else None
    if "archive_format" in files:
        return phrase("a program of torch.export, not weights")
    if "model.weights.h5" in files:
        return phrase("a model of Keras")
    if files and all(name.endswith(".npy") for name in files):
        return phrase("arrays of NumPy (.npz)")
    if any(name.endswith(UNPACKED) for name in files):
        return phrase("a zip archive with weights inside (unpack it first)")
    return phrase("a zip archive without the data.pkl that torch.save writes")


def _flaw(info: ZipInfo) -> Phrase | None:
    """A property of the entry that torch.save never writes; None: it has none."""
    name = info.orig_filename
    if info.flag_bits & 0x1:
        return phrase("its entry {name} is encrypted", name=printable(name))
    if info.compress_type != ZIP_STORED or info.file_size != info.compress_size:
        return phrase(
            "its entry {name} is compressed: {packed:,} bytes would become {unpacked:,}",
            name=printable(name),
            packed=info.compress_size,
            unpacked=info.file_size,
        )
    if name.startswith("/") or ".." in name.split("/") or any(letter in name for letter in "\\:\0"):
        return phrase("its entry {name} leads out of the archive", name=printable(name))
    return None


def _repeated_name(infos: Iterable[ZipInfo]) -> str:
    names = sorted(info.orig_filename for info in infos)
    return next(name for name, other in pairwise(names) if name == other)


def _places(file: BinaryIO, infos: Iterable[ZipInfo], directory: int, path: str) -> dict[str, Stored]:
    """Positions of the entries. Each must begin after the one before, and all must end before the directory."""
    places, behind = dict[str, Stored](), 0
    for info in infos:
        name = info.orig_filename
        if info.header_offset < behind:
            raise UnsoundFile(path=path, detail=phrase("its entry {name} shares bytes with another", name=printable(name)))
        file.seek(min(info.header_offset, directory))
        header = file.read(LOCAL)
        if header[:4] != b"PK\x03\x04" or len(header) < LOCAL:
            raise DamagedFile(path=path, detail=phrase("its entry {name} is not where its directory says", name=printable(name)))
        # the local header may be longer than the one in the directory
        start = info.header_offset + LOCAL + sum(struct.unpack_from("<HH", header, 26))
        behind = start + info.file_size
        places[name] = Stored(start, info.file_size, info.CRC)
    if behind > directory:
        raise UnsoundFile(path=path, detail=phrase("its last entry shares bytes with its directory"))
    return places


def _folder(entries: Mapping[str, Stored], path: str) -> str:
    """The single top-level folder of torch.save."""
    folders = [name.removesuffix("/data.pkl") for name in entries if name.endswith("/data.pkl") and name.count("/") == 1]
    if not folders:
        raise NotACheckpoint(path=path, found=phrase("a zip archive without the data.pkl that torch.save writes"))
    if len(folders) > 1:
        raise UnsoundFile(path=path, detail=phrase("it holds more than one data.pkl"))
    return folders[0]


def _check_order(order: bytes, path: str) -> None:
    if order not in (b"", b"little"):
        raise UnreadableNumbers(
            path=path,
            reason=phrase("their byte order is “{order}”; only little-endian is read", order=printable(order.decode("latin-1"))),
        )


def _short_entry(file: BinaryIO, where: Stored | None) -> bytes:
    """The beginning of an entry that should be short; empty if there is none, as before torch 2.1."""
    return b"" if where is None else _read(file, Stored(where.start, min(where.size, 16)))


def _read(file: BinaryIO, where: Stored) -> bytes:
    file.seek(where.start)
    return file.read(where.size)
