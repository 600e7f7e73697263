"""Shelf: the folder of checkpoints that an engine offers, seen afresh whenever it is asked, and what was opened by its path."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from model.checkpoints import snapshots
from model.checkpoints.layouts.beside import ANSWERS, WEIGHT_FILES
from model.engine.api import ModelInfo
from model.engine.sent_files import opened_as
from model.errors import HeadlightError, UnknownModel
from model.spec.snapshots import at_step, without_step

Stamp: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""The version of a checkpoint's files: of each its name, inode, times of the last write and of the last change, and size."""


class CheckpointStore:
    """Checkpoints by name: folders, and files of weights.

    Args:
        folder: holds them; need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[str, Path] = {}

    def names(self) -> list[str]:
        """What is there now, in alphabetical order."""
        there = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(path.name for path in there if path.is_dir() or path.suffix in WEIGHT_FILES)

    def open(self, path: Path) -> str:
        """Offers a file or folder that lies elsewhere, to whoever knows the name that it gets.

        Raises:
            NotACheckpoint: it is not there, or closed to this program.
        """
        name = opened_as(path)
        self._opened[name] = path.resolve()
        return name

    def title(self, name: str) -> str:
        """What people call a checkpoint whose own files do not say it."""
        return self._opened[name].name if name in self._opened else name

    def path(self, name: str) -> Path:
        """Where a checkpoint is, or a snapshot of one.

        Raises:
            UnknownModel: there is none of that name.
        """
        there, (model, step) = self.names(), without_step(name)
        places = {each: self._folder / each for each in there} | self._opened
        if name in places:
            return places[name]
        if model in places and step is not None:
            kept = snapshots.steps(places[model])
            if name in (there := [at_step(model, each) for each in kept]):
                return snapshots.path(places[model], step)
        raise UnknownModel(asked=name, there=", ".join(there) or "none")

    def holds(self, name: str) -> bool:
        """Whether a checkpoint of that name stands in the folder itself; a snapshot does not."""
        return name in self.names()

    def with_training(self, info: ModelInfo) -> ModelInfo:
        """What is known of a checkpoint's training: its snapshots and its losses; of a snapshot, its step."""
        folder = self.path(info.name)
        if snapshots.folder_of(folder) is not None:
            return replace(info, title=f"{info.title} @ {int(folder.stem):,}")
        return replace(info, snapshots=snapshots.steps(folder), losses=snapshots.losses(folder))

    def stamp(self, name: str) -> Stamp | None:
        """The version of a checkpoint's files now; None: they change while they are looked at, or nobody may look at them.

        Raises:
            UnknownModel: there is none of that name.
        """
        return _stamp(self.path(name))

    def without_path(self, error: HeadlightError) -> HeadlightError:
        """The error as visitors may read it: files are called as they are in the folder, not by where that is."""
        where = f"{self._folder}{os.sep}"
        plain = {
            name: str(value).replace(where, "") if isinstance(value, str | Path) else value for name, value in error.fields.items()
        }
        return type(error)(**plain)


def _stamp(path: Path) -> Stamp | None:
    """Of the files of a folder, of a snapshot with its parent's other files, or of a file with its answers beside it."""
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
