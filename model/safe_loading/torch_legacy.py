"""torch's format before 1.6: five consecutive pickles, then each storage's count and bytes."""

from io import BytesIO
from typing import Any, BinaryIO

from model.errors import DamagedFile, phrase
from model.safe_loading import allowed_names, limits
from model.safe_loading.file_type import LEGACY_MAGIC
from model.safe_loading.pickle_machine import Machine
from model.safe_loading.plan import Stored, printable

PROTOCOL = 1001
"""The version of torch's older format, the only one there is."""

COUNT = 8
"""Bytes of the count before each storage."""


def read_stream(file: BinaryIO, size: int, path: str) -> tuple[Any, dict[str, Stored]]:
    """The value that the pickles describe, and where the bytes of each storage are. Numbers are always little-endian.

    Raises:
        DamagedFile: the stream is cut off or its parts do not fit together.
        UnsafeFile: a pickle calls something that weights do not need.
        UnsoundFile: a pickle uses instructions that no checkpoint needs.
        OverLimit: its pickles have too many instructions.
    """
    file.seek(0)
    pickles, machine = BytesIO(file.read(limits.MAX_HEADER)), Machine(path)
    # torch wrote a number that tells the format, a version, facts about the machine, the weights, and the order of storages
    magic, protocol, _system, root, keys = (machine.follow(pickles) for _ in range(5))
    if (magic, protocol) != (LEGACY_MAGIC, PROTOCOL) or not isinstance(keys, list):
        raise DamagedFile(path=path, detail=phrase("its five pickles are not those of torch.save"))
    stored, position = dict[str, Stored](), pickles.tell()
    for key in keys:
        storage = machine.storages.get(key) if isinstance(key, str) and key not in stored else None
        if storage is None:
            raise DamagedFile(
                path=path, detail=phrase("its list of storages names {name}, which no tensor uses", name=printable(key))
            )
        file.seek(position)
        count = int.from_bytes(file.read(COUNT), "little")
        where = Stored(position + COUNT, count * allowed_names.item_size(storage.dtype))
        position = where.start + where.size
        if count != storage.count or position > size:
            raise DamagedFile(
                path=path,
                detail=phrase("the bytes of its storage {name} are truncated or have the wrong length", name=printable(key)),
            )
        stored[key] = where
    return root, stored
