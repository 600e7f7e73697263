"""GGUF files as tensors: the sandbox reads the header, the gguf package turns the blocks into float32, one tensor at a time."""

import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from math import prod
from pathlib import Path, PurePath
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from model.errors import BadGguf, phrase
from model.safe_loading import gguf
from model.safe_loading.gguf import MAGIC, TYPES, GgufHeader
from model.safe_loading.reader import opened
from model.safe_loading.sandbox_process import look_into

_BLOCKS = {kind: (numbers, size) for kind, numbers, size in TYPES.values()}

PIECE = 1 << 18
"""Numbers that are dequantized at once: the package takes several times their memory meanwhile, which is to fit into a cache."""


@dataclass(frozen=True)
class GgufFile:
    """A GGUF file with a header that was checked.

    Attributes:
        path: its name.
        header: settings, and where each tensor is.
        opened: opens its bytes.
    """

    path: PurePath
    header: GgufHeader
    opened: Callable[[], AbstractContextManager[BinaryIO]]

    def tensor(self, name: str) -> Tensor:
        """A tensor in float32, read and dequantized now.

        Raises:
            BadGguf: the file became shorter.
        """
        from gguf import GGMLQuantizationType, dequantize

        stored = self.header.tensors[name]
        kind, (numbers, size) = GGMLQuantizationType[stored.kind], _BLOCKS[stored.kind]
        values, piece = torch.empty(prod(stored.shape)), PIECE // numbers * numbers
        with self.opened() as file:
            file.seek(stored.start)
            # in pieces: the bytes of a tensor and its float32 numbers need not be in memory at once
            for first in range(0, len(values), piece):
                part = values[first : first + piece]
                raw = file.read(len(part) // numbers * size)
                if len(raw) < len(part) // numbers * size:
                    raise BadGguf(path=self.path, detail=phrase("it became shorter while it was read"))
                # One row: the package calls itself for every 16 rows, which for rows of a block takes eight times as long.
                with np.errstate(all="ignore"):  # a scale may be infinite or NaN: such numbers are counted and told
                    part.numpy()[:] = dequantize(np.frombuffer(raw, np.uint8)[None], kind)[0]
        return values.reshape(stored.shape)

    def fingerprint(self) -> str:
        """SHA-256 of the file, in hexadecimal."""
        with self.opened() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # any readable file does


def is_gguf(path: Path) -> bool:
    """Whether a file begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_gguf(path: Path) -> GgufFile:
    """Opens a GGUF file. Nothing of its tensors is read yet.

    Raises:
        CheckpointError: it cannot be read, or contradicts itself or a limit.
    """
    with opened(path) as file:
        header = gguf.from_json(look_into(file, str(path), "gguf")["gguf"])
    return GgufFile(path, header, lambda: opened(path))


def read_gguf_upload(data: bytes, name: str) -> GgufFile:
    """Opens the bytes of a GGUF file called `name`; they stay in memory.

    Raises:
        CheckpointError: as for `read_gguf`.
    """
    with TemporaryFile() as file:
        file.write(data)
        file.flush()
        header = gguf.from_json(look_into(file, name, "gguf")["gguf"])
    return GgufFile(PurePath(name), header, lambda: BytesIO(data))
