"""Files of classes, so that a class goes on at its step when the server was restarted.

A file holds the code, the hash of the key, the name of the lecture, the step, and the answers with hashes of devices: nothing
about a person. Only its owner can read it. Beside it lies a lock, which the process that holds the class keeps until it ends: the
system frees it, so another process goes on with the class as soon as the first one is gone, and never before.
"""

import json
import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

from filelock import FileLock, Timeout

from model.engine import log
from viz.features.lectures.classroom.classroom import Classroom
from viz.features.lectures.classroom.deck import Deck
from viz.features.lectures.classroom.join_codes import read_code
from viz.features.lectures.classroom.poll import Phase, Poll

VARIABLE = "HEADLIGHT_CLASSES"
LIFE_SECONDS = 24 * 3600
"""Age at which the file of a class is deleted."""

FILE, PART, LOCK = ".json", ".part", ".lock"
"""Endings of the file of a class, of one that is being written, and of the lock of the process that holds the class."""

MOST_BYTES = 2**24
_log = logging.getLogger(log.NAME)


def folder() -> Path:
    """Folder of the files: HEADLIGHT_CLASSES, else `.headlight/classes` in the home folder."""
    chosen = os.environ.get(VARIABLE)
    return Path(chosen) if chosen else Path.home() / ".headlight" / "classes"


class Store:
    """Files of classes in one folder. A folder that cannot be used is reported once; classes then end with the process.

    Args:
        folder: created when the first class is saved.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reported = False
        self._claims: dict[str, FileLock] = {}
        self._lock = threading.Lock()
        """Held while a file takes its place or is deleted: a class that was closed meanwhile must not come back."""

    def claim(self, code: str) -> bool:
        """Makes this process the owner of a class; False if another process owns it. Without a folder nobody else can."""
        lock = FileLock(self._path(code).with_suffix(LOCK), timeout=0, thread_local=False)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock.acquire()
        except Timeout:
            return False
        except OSError as error:
            self._report(error)
            return True
        self._claims[code] = lock
        return True

    def release(self, code: str) -> None:
        """Lets another process own a class."""
        if (lock := self._claims.pop(code, None)) is not None:
            lock.release()

    def save(self, code: str, content: dict[str, Any], wanted: Callable[[], bool] = lambda: True) -> bool:
        """Writes the file of a class in place of an earlier one. May be called in any thread.

        Args:
            wanted: whether the class is still to be kept; asked when everything is written.

        Returns:
            Whether the file could be written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(PART, f"{code}.", self._folder, text=True)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    json.dump(content, file)
                with self._lock:
                    if wanted():
                        Path(name).replace(self._path(code))
            finally:
                Path(name).unlink(missing_ok=True)  # the disk was full, or the class was closed
        except OSError as error:
            self._report(error)
            return False
        self._reported = False  # the next failure is another one
        return True

    def load(self, code: str, open_deck: Callable[[str], Deck]) -> Classroom | None:
        """The class in a file; None if there is none that is young enough and can be read.

        Args:
            open_deck: opens a lecture by its name.
        """
        path = self._path(code)
        try:
            about = path.stat()
            if time.time() - about.st_mtime > LIFE_SECONDS or about.st_size > MOST_BYTES:
                return None
            return read(json.loads(path.read_text(encoding="utf-8")), open_deck)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            self._report(error)
            return None

    def delete(self, code: str) -> None:
        """Deletes the file of a class, and its lock."""
        with self._lock, suppress(OSError):
            self._path(code).unlink()
        self.release(code)
        with suppress(OSError):
            self._path(code).with_suffix(LOCK).unlink()

    def clean(self) -> None:
        """Deletes the files of classes that are too old, also those that a process which was killed left half written."""
        for path in self._folder.glob("*"):
            code = path.name.partition(".")[0]
            with suppress(OSError):
                old = time.time() - path.stat().st_mtime > LIFE_SECONDS
                if old and code == read_code(code) != "" and path.suffix in (FILE, PART, LOCK):
                    path.unlink()

    def _path(self, code: str) -> Path:
        return self._folder / f"{code}{FILE}"

    def _report(self, error: Exception) -> None:
        if not self._reported:
            _log.warning("Classes cannot be kept in %s: %s. They end with this process.", self._folder, error)
        self._reported = True


def written(room: Classroom) -> dict[str, Any]:
    """The content of a class's file."""
    polls = {
        str(step): {"phase": poll.phase, "answers": dict(poll.answers), "ignored": dict(poll.ignored)}
        for step, poll in room.polls.items()
    }
    kept = {"code": room.code, "key": room.key_hash, "lecture": room.deck.name, "opened": room.opened, "step": room.step}
    return kept | {"devices": sorted(room.devices), "polls": polls}


def read(content: dict[str, Any], open_deck: Callable[[str], Deck]) -> Classroom:
    """A class from the content of its file. Polls of steps that ask nothing any more are dropped.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it is not the content of such a file.
    """
    deck = open_deck(str(content["lecture"]))
    polls: dict[int, Poll] = {}
    for name, kept in content["polls"].items():
        step = int(name)
        question = deck.slides[step].question if 0 <= step < len(deck.slides) else None
        if question is None or kept["phase"] not in get_args(Phase):
            continue
        poll = polls[step] = Poll(question)
        for device, value in kept["answers"].items():
            if question.layout == "number" or question.options:
                poll.put(str(device), value if question.layout == "number" else int(value))
            elif int(value) >= 0:  # the options come from the run, which the deck makes later
                poll.answers[str(device)] = float(int(value))
        poll.phase = kept["phase"]
        poll.ignored.update(kept["ignored"])
    devices = set(map(str, content["devices"]))
    opened, step = float(content["opened"]), int(content["step"])
    return Classroom(str(content["code"]), str(content["key"]), deck, opened, max(0, step), polls, devices)
