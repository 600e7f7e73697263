"""Reader: opens a file by having the sandbox describe it, then copies the described bytes into tensors."""

import os
import stat
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedRandom, BufferedReader
from pathlib import Path
from tempfile import TemporaryFile
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from model.errors import DamagedFile, NotACheckpoint, NotReadable, PathNotFound, Phrase, filling, message, phrase
from model.safe_loading import plan
from model.safe_loading.plan import Described, Format, OtherEntry, Plan, Stored
from model.safe_loading.sandbox_process import look_into

OpenFile = BufferedReader | BufferedRandom
USUAL = frozenset({"float32", "int64", "bool"})
"""Number types that are not reported as unusual."""

PIECE = 2**15
"""Numbers that are summed at once: torch does not split so few among its threads, which wait for each other on a busy machine."""


@dataclass(frozen=True)
class Problem:
    """A warning about the weights. `str(problem)` is one sentence."""

    template: ClassVar[str]
    fields: Mapping[str, object]

    @property
    def sentence(self) -> Phrase:
        """The sentence, for every language."""
        return Phrase(self.template, {name: filling(value) for name, value in self.fields.items()})

    def __str__(self) -> str:
        """The sentence in English."""
        return str(self.sentence)


class NotFinite(Problem):
    """Fields: candidate, tensor, nan, infinite, count."""

    template = message(
        "The tensor {tensor} has {count:,} numbers, of which {nan:,} are NaN and {infinite:,} infinite: whatever uses them is not "
        "finite either."
    )


class UnusualNumbers(Problem):
    """Fields: candidate, count, total, dtype."""

    template = message("{count:,} of {total:,} tensors are stored as {dtype}, not as float32.")


@dataclass(frozen=True)
class OpenedFile:
    """The weights of a file. Tensors that share bytes in the file share memory.

    Attributes:
        format: one of the three formats.
        size: bytes of the file.
        candidates: tables of named tensors by the keys that lead to them, joined by dots: "" is the file's own table, others are
            "model", "state_dict", "ema" and so on.
        others: the other entries of the file, by name and type.
        problems: warnings about the weights.
    """

    format: Format
    size: int
    candidates: Mapping[str, Mapping[str, Tensor]]
    others: tuple[OtherEntry, ...] = ()
    problems: tuple[Problem, ...] = field(default=())


def read_tensors(path: Path) -> OpenedFile:
    """Opens any file that claims to be a checkpoint, by its content. Nothing in it is executed.

    Raises:
        CheckpointError: it is not a checkpoint, or unsafe or damaged; the error says why and what to do.
    """
    with opened(path) as file:
        return _read(file, str(path))


class StoredTensors(Mapping[str, Tensor]):
    """The tensors of a file that claims to be a checkpoint, by name. Each is read when it is asked for, so that memory holds no
    more than the caller does. Nothing in the file is executed.

    Args:
        path: of the file.

    Raises:
        CheckpointError: it is not a checkpoint, or unsafe or damaged; the error says why and what to do.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with opened(path) as file:
            described = _describe(file, str(path))
        self._described = described.candidates.get("") or next(iter(described.candidates.values()))
        self._storages = described.storages
        self._last: tuple[str, Tensor] = ("", torch.empty(0, dtype=torch.uint8))

    def __getitem__(self, name: str) -> Tensor:
        """A tensor, read now. Tensors that share bytes share memory while they are read one after another."""
        described = self._described[name]
        # old files have one storage for all tensors: it is read once for those that follow each other
        if self._last[0] != described.storage:
            with opened(self._path) as file:
                self._last = described.storage, _storage(file, self._storages[described.storage], str(self._path))
        return _tensor(self._last[1], described)

    def __iter__(self) -> Iterator[str]:
        """The names, in the order of the file."""
        return iter(self._described)

    def __len__(self) -> int:
        """The number of tensors."""
        return len(self._described)

    def stand_ins(self) -> dict[str, Tensor]:
        """A tensor of the same shape and dtype for each, made of a single zero: nothing is read."""
        return {
            name: torch.zeros((), dtype=getattr(torch, described.dtype)).expand(described.shape)
            for name, described in self._described.items()
        }


def read_upload(data: bytes, name: str) -> OpenedFile:
    """Opens the bytes of a file called `name`, through an unnamed temporary file that disappears when it is closed."""
    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        return _read(file, name)


@contextmanager
def opened(path: Path) -> Iterator[OpenFile]:
    """A file, open for reading.

    Raises:
        NotACheckpoint: there is none, or it is a folder or a device, or it may not be read.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise NotACheckpoint(
                path=path, found=phrase("a folder") if stat.S_ISDIR(mode) else phrase("a device or a pipe, not a file")
            )
        file = path.open("rb")
    except FileNotFoundError as error:
        raise PathNotFound(path=path) from error
    except OSError as error:
        raise NotReadable(path=path, reason=str(error.strerror)) from error
    with file:
        yield file


def _read(file: OpenFile, path: str) -> OpenedFile:
    described = _describe(file, path)
    size = file.seek(0, os.SEEK_END)
    storages = {key: _storage(file, where, path) for key, where in described.storages.items()}
    candidates = {
        name: {key: _tensor(storages[tensor.storage], tensor) for key, tensor in table.items()}
        for name, table in described.candidates.items()
    }
    return OpenedFile(described.format, size, candidates, described.others, tuple(_problems(candidates)))


def _describe(file: OpenFile, path: str) -> Plan:
    """The sandbox's description of the file."""
    return plan.from_json(look_into(file, path, "plan")["plan"])


def _storage(file: OpenFile, where: Stored, path: str) -> Tensor:
    """A storage's bytes, verified against their checksum. 0 means none: torch can save without."""
    raw = torch.empty(where.size, dtype=torch.uint8)
    file.seek(where.start)
    # somebody may cut the file off after it was described
    if file.readinto(raw.numpy().data) < where.size:
        raise DamagedFile(path=path, detail=phrase("it became shorter while it was read"))
    if where.checksum and zlib.crc32(raw.numpy().data) != where.checksum:
        raise DamagedFile(
            path=path, detail=phrase("the checksum of the {size:,} bytes at {start:,} is wrong", size=where.size, start=where.start)
        )
    return raw


def _tensor(raw: Tensor, described: Described) -> Tensor:
    """A view of a storage's bytes. Booleans are normalized to 0 and 1: torch relies on it."""
    dtype = getattr(torch, described.dtype)
    if 0 in described.shape:
        return torch.empty(described.shape, dtype=dtype)
    if dtype == torch.bool:
        raw.ne_(0)
    return raw.view(dtype).as_strided(described.shape, described.stride, described.offset)


def _problems(candidates: Mapping[str, Mapping[str, Tensor]]) -> Iterator[Problem]:
    for name, table in candidates.items():
        kinds = [str(tensor.dtype).removeprefix("torch.") for tensor in table.values()]
        for kind in dict.fromkeys(kinds):
            if kind not in USUAL:
                yield UnusualNumbers({"candidate": name, "count": kinds.count(kind), "total": len(kinds), "dtype": kind})
        for key, tensor in table.items():
            if problem := _not_finite(name, key, tensor):
                yield problem


def is_finite(tensor: Tensor) -> bool:
    """Whether no number is NaN or infinite. One that is makes the sum of its piece so, too; finite ones seldom do."""
    if tensor.dtype == torch.float32:  # numpy adds them up in half of the time, without threads
        with np.errstate(all="ignore"):
            return bool(np.isfinite(tensor.numpy().sum()))
    return all(bool(piece.sum().isfinite()) for piece in tensor.reshape(-1).split(PIECE))


def _not_finite(candidate: str, name: str, tensor: Tensor) -> NotFinite | None:
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return None
    values = tensor.float() if tensor.is_floating_point() and tensor.element_size() == 1 else tensor
    if is_finite(values):
        return None
    nan, infinite = int(values.isnan().sum()), int(values.isinf().sum())
    if not nan + infinite:
        return None
    return NotFinite({"candidate": candidate, "tensor": name, "nan": nan, "infinite": infinite, "count": tensor.numel()})
