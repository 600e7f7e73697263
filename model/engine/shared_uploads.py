"""Files that people sent to one of several processes that serve them all: whichever is asked about one finds it here."""

from typing import Protocol

from model.engine.lru_cache import LruCache

MOST_BYTES = 512 * 2**20
MOST_FILES = 64


class Elsewhere(Protocol):
    """Where the files are that other processes were sent."""

    def put(self, known_as: str, data: bytes, name: str) -> None:
        """Tells the others of a file: the name that it has from now on, its bytes, and what its sender called it."""

    def get(self, known_as: str) -> tuple[bytes, str] | None:
        """The bytes of a file and what its sender called it; None: no other process has it."""


class Alone:
    """There are no other processes."""

    def put(self, known_as: str, data: bytes, name: str) -> None:
        """Nobody else needs it."""

    def get(self, known_as: str) -> tuple[bytes, str] | None:
        """Nobody else has it."""
        return None


ALONE = Alone()


class Files:
    """The files themselves; where they become too many or too large, those unused for longest go. Thread-safe.

    Args:
        most_bytes: of all files together; the last one stays, whatever its size.
        most_files: how many.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._files: LruCache[str, tuple[bytes, str]] = LruCache(most_bytes, lambda file: len(file[0]), most_files)

    def put(self, known_as: str, data: bytes, name: str) -> None:
        """Keeps a file."""
        self._files.keep(known_as, (data, name))

    def get(self, known_as: str) -> tuple[bytes, str] | None:
        """A file that was kept; None: it went, or was never here."""
        return self._files.get(known_as)
