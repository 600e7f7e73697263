"""Files that an engine is given, and what they are called from then on."""

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from model.errors import NotACheckpoint

OPENED = "file-"
"""What the names begin with that `opened_as` gives."""

FILES = ("source_vocab", "target_vocab", "vocab")
"""Settings whose values are files."""

SENT_WORDS = "words-"
"""What the names begin with that `Engine.receive` gives to vocabularies."""


OPEN = "HEADLIGHT_OPEN"
"""The variable of the environment that names files and folders to be opened at the start, separated as in PATH."""

WORDS = (".txt", ".json", ".vocab", ".model", ".spm")
"""Endings of files that are taken as vocabularies."""


def paths_to_open(environment: Mapping[str, str]) -> list[Path]:
    """The files and folders that HEADLIGHT_OPEN names."""
    return [Path(path) for path in environment.get(OPEN, "").split(os.pathsep) if path]


def opened_as(path: Path) -> str:
    """What a file or folder of this machine is called when it is opened by its path: a name of its place, time and size.

    Raises:
        NotACheckpoint: it is not there, or closed to this program.
    """
    try:
        place = path.resolve()
        stat = place.stat()
    except (OSError, ValueError, RuntimeError) as error:  # a character that no path has, and links in a ring, are no OSError
        raise closed(path, error) from error
    stamp = f"{place}\n{stat.st_mtime_ns}\n{stat.st_size}"
    return f"{OPENED}{hashlib.sha256(stamp.encode(errors='surrogatepass')).hexdigest()[:16]}"


def closed(path: Path, error: Exception) -> NotACheckpoint:
    """The error for a path that cannot be read."""
    there = isinstance(error, PermissionError)
    return NotACheckpoint(path=path, found="closed to this program" if there else "not there")


def words_as(content: bytes) -> str:
    """What a vocabulary is called: a name of its content."""
    return f"{SENT_WORDS}{hashlib.sha256(content).hexdigest()[:16]}"


def names_words(settings: Iterable[tuple[str, str]]) -> bool:
    """Whether settings name a vocabulary that was sent: it may be sent, or be forgotten, at any time."""
    return any(setting in FILES and value.startswith(SENT_WORDS) for setting, value in settings)


def names_a_file(setting: str, value: str) -> bool:
    """Whether a setting names a file of the engine's machine; a vocabulary that was sent there is none."""
    sent = value.removeprefix(SENT_WORDS)
    return setting in FILES and not (sent != value and len(sent) == 16 and sent.isascii() and sent.isalnum())
