"""Uploads shared by several processes that serve the same visitors."""

from typing import Protocol

from model.sharing.lru_cache import LruCache

MOST_BYTES = 512 * 2**20
MOST_FILES = 64


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
