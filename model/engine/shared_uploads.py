"""Uploads shared by several processes that serve the same visitors, and the slots in which uploads are opened. No torch."""

import threading
from typing import Protocol

from model.errors import TookTooLong
from model.sharing.caches import LruCache

MOST_BYTES = 512 * 2**20
MOST_FILES = 64

SLOT_SECONDS = 120.0
"""How long a caller waits for a slot to open a file."""


class PeerUploads(Protocol):
    """Uploads of other processes."""

    def put(self, key: str, data: bytes, name: str) -> None:
        """Shares a file: its name as an upload, its bytes, and its file name."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """The bytes and file name of an upload; None: no other process has it."""


class NoPeers:
    """For a single process: shares nothing."""

    def put(self, key: str, data: bytes, name: str) -> None:
        """Does nothing."""

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Finds nothing."""
        return None


NO_PEERS = NoPeers()


class UploadedFiles:
    """Store of uploaded files, bounded in number and bytes; the least recently used are dropped. Thread-safe.

    Args:
        most_bytes: of all files together; the newest always stays.
        most_files: how many.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._files: LruCache[str, tuple[bytes, str]] = LruCache(most_bytes, lambda file: len(file[0]), most_files)

    def put(self, key: str, data: bytes, name: str) -> None:
        """Keeps a file."""
        self._files.keep(key, (data, name))

    def get(self, key: str) -> tuple[bytes, str] | None:
        """Bytes and file name; None: unknown or dropped."""
        return self._files.get(key)


class OpeningSlots:
    """Semaphore for opening files: lets `at_once` threads into a `with` block; others wait, with a timeout.

    Args:
        at_once: number of slots.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)

    def __enter__(self) -> None:
        """Waits for a slot.

        Raises:
            TookTooLong: none became free in time.
        """
        # A file that was made to be slow may take long to open. Whoever waits behind such files is told so after a
        # while, and does not hold a thread of the server forever.
        if not self._free.acquire(timeout=SLOT_SECONDS):
            raise TookTooLong(seconds=round(SLOT_SECONDS))

    def __exit__(self, *_: object) -> None:
        """Frees the slot, also after an error."""
        self._free.release()
