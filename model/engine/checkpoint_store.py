"""Checkpoint store: the engine's folder of checkpoints, read anew on every call, and the files opened by path."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from model.checkpoints import snapshots
from model.checkpoints.layouts.raw_folder import ANSWERS, WEIGHT_FILES
from model.engine.api import ModelInfo
from model.engine.sent_files import opened_name
from model.errors import HeadlightError, UnknownModel
from model.spec.snapshots import at_step, without_step
from model.trace.trace_files import ENDING

Stamp: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""The version of a checkpoint's files: name, inode, mtime, ctime and size of each."""


class CheckpointStore:
    """Checkpoints by name: folders and weight files.

    Args:
        folder: the folder of checkpoints; it may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[str, Path] = {}

    def names(self) -> list[str]:
        """Names of the checkpoints in the folder now, sorted."""
        there = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(
            path.name for path in there if path.is_dir() or (path.suffix in WEIGHT_FILES and not path.name.endswith(ENDING))
        )

    def open(self, path: Path) -> str:
        """Adds a file or folder from outside the folder and returns its name, under which it can be run.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
        """
        name = opened_name(path)
        self._opened[name] = path.resolve()
        return name

    def title(self, name: str) -> str:
        """The title of a checkpoint whose files give none."""
        return self._opened[name].name if name in self._opened else name

    def path(self, name: str) -> Path:
        """The path of a checkpoint or of a snapshot.

        Raises:
            UnknownModel: there is none of that name.
        """
        there = self.names()
        places = {each: self._folder / each for each in there} | self._opened
        if name in places:
            return places[name]
        model, step = without_step(name)
        if model in places and step is not None:
            kept = snapshots.steps(places[model])
            if name in (there := [at_step(model, each) for each in kept]):
                return snapshots.path(places[model], step)
        raise UnknownModel(asked=name, there=", ".join(there) or "none")

    def holds(self, name: str) -> bool:
        """Whether the folder contains a checkpoint of that name. Snapshots do not count."""
        return name in self.names()

    def with_training(self, info: ModelInfo) -> ModelInfo:
        """`info` with the snapshots and losses of a checkpoint, or with the step of a snapshot."""
        folder = self.path(info.name)
        if snapshots.folder_of(folder) is not None:
            return replace(info, title=f"{info.title} @ {int(folder.stem):,}")
        return replace(info, snapshots=snapshots.steps(folder), losses=snapshots.losses(folder))

    def stamp(self, name: str) -> Stamp | None:
        """The version of a checkpoint's files now; None: they are changing or cannot be read.

        Raises:
            UnknownModel: there is none of that name.
        """
        return _stamp(self.path(name))

    def without_path(self, error: HeadlightError) -> HeadlightError:
        """The error without the folder's path, which visitors must not see."""
        where = f"{self._folder}{os.sep}"
        plain = {
            name: str(value).replace(where, "") if isinstance(value, str | Path) else value for name, value in error.fields.items()
        }
        return type(error)(**plain)


def _is_trace(path: Path) -> bool:
    return path.name.endswith(ENDING)


def _stamp(path: Path) -> Stamp | None:
    """Version of a folder, of a snapshot with the other files of its checkpoint, or of a file with its answers file."""
    try:
        found = [(file, file.stat()) for file in _files(path) if file.is_file()]
    except OSError:
        return None
    return tuple((file.name, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size) for file, stat in found)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.iterdir())
    if (whole := snapshots.folder_of(path)) is not None:
        return snapshots.files(whole, path)
    return [path, path.with_name(ANSWERS), path.with_name(f"{path.stem}.{ANSWERS}")]
