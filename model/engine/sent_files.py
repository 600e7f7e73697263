"""Names of files that an engine is given: uploads, and files opened by path."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from model.errors import NotACheckpoint, NotReadable, PathNotFound

OPENED_PREFIX = "file-"
"""Prefix of the names that `opened_name` gives."""

FILE_SETTINGS = ("source_vocab", "target_vocab", "vocab", "layout_file")
"""Settings whose values are file names."""

VOCABULARY_PREFIX = "words-"
"""Prefix of the names that an engine gives to received vocabularies."""

OPEN_VARIABLE = "HEADLIGHT_OPEN"
"""Environment variable: files and folders to open at the start, separated as in PATH."""

LAYOUT_ENDING = ".layout.json"
"""Ending of layout files; they are sent and kept like vocabularies."""

VOCABULARY_ENDINGS = (".txt", ".json", ".vocab", ".model", ".spm")
"""Endings of vocabulary files."""


def paths_to_open(environment: Mapping[str, str]) -> list[Path]:
    """Files and folders that HEADLIGHT_OPEN names."""
    return [Path(path) for path in environment.get(OPEN_VARIABLE, "").split(os.pathsep) if path]


def opened_name(path: Path) -> str:
    """Name of a file or folder opened by path: a hash of its path, modification time and size.

    Raises:
        NotACheckpoint: the path does not exist or cannot be read.
    """
    try:
        resolved = path.resolve()
        stat = resolved.stat()
    except (OSError, ValueError, RuntimeError) as error:  # invalid characters and symlink loops are no OSError
        raise unreadable(path, error) from error
    stamp = f"{resolved}\n{stat.st_mtime_ns}\n{stat.st_size}"
    return f"{OPENED_PREFIX}{hashlib.sha256(stamp.encode(errors='surrogatepass')).hexdigest()[:16]}"


def unreadable(path: Path, error: Exception) -> NotACheckpoint:
    """The error for a path that cannot be read."""
    return NotReadable(path=path, reason=error.strerror) if isinstance(error, PermissionError) else PathNotFound(path=path)


def vocabulary_name(content: bytes) -> str:
    """Name of an uploaded vocabulary: a hash of its content."""
    return f"{VOCABULARY_PREFIX}{hashlib.sha256(content).hexdigest()[:16]}"


def sent_names(value: str) -> tuple[str, ...]:
    """The uploaded files that a setting names: one, or a vocabulary and its merges with a comma between them."""
    return tuple(value.split(","))


def uses_sent_vocabulary(settings: Iterable[tuple[str, str]]) -> bool:
    """Whether settings name an uploaded vocabulary, which may arrive or be dropped at any time."""
    return any(setting in FILE_SETTINGS and value.startswith(VOCABULARY_PREFIX) for setting, value in settings)


def names_server_file(setting: str, value: str) -> bool:
    """Whether a setting names a file of the engine's machine. Uploaded vocabularies do not count."""
    return setting in FILE_SETTINGS and not all(map(_is_sent, sent_names(value)))


def _is_sent(name: str) -> bool:
    # The form that `vocabulary_name` makes: a path such as `words-/../secret.txt` has another one.
    digest = name.removeprefix(VOCABULARY_PREFIX)
    return digest != name and len(digest) == 16 and digest.isascii() and digest.isalnum()
