"""Stores: what an engine opens by name. Checkpoints and traces of its folder, read again on every call, files opened by path, and
uploaded traces; the uploaded checkpoints are in uploads.py.
"""

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TypeAlias

from model import known_models
from model.checkpoints import snapshots
from model.checkpoints.layouts.raw_folder import ANSWERS, WEIGHT_FILES
from model.engine.api import ModelInfo
from model.engine.opening_slots import OpeningSlots
from model.engine.sent_files import opened_name
from model.engine.shared_uploads import NO_PEERS, PeerUploads
from model.errors import BadTrace, HeadlightError, UnknownModel, rewritten
from model.sharing.budget import BUDGET
from model.sharing.lru_cache import ComputedOnce, LruCache
from model.spec.snapshots import at_step, without_step
from model.trace.trace_files import ENDING, read_bytes, read_path
from model.trace.types import Trace

Stamp: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""The version of a checkpoint's files: name, inode, mtime, ctime and size of each."""

TRACE_PREFIX = "trace-"
"""Prefix of the names of uploaded traces."""

MOST_BYTES = 512 * 2**20
MOST_TRACES = 32
MOST_INFOS = 4096

OPENED_AT_ONCE = 1
"""Uploaded traces that are read at the same time: an archive may unpack to a gigabyte."""


class CheckpointStore:
    """Checkpoints by name: folders and weight files of one folder, and the known models that are on this machine.

    Args:
        folder: the folder of checkpoints; it may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[str, Path] = {}

    def names(self) -> list[str]:
        """Names of the checkpoints now, sorted."""
        return sorted(self._places())

    def _places(self) -> dict[str, Path]:
        there = self._folder.iterdir() if self._folder.is_dir() else ()
        found = [path for path in there if path.is_dir() or (path.suffix in WEIGHT_FILES and not path.name.endswith(ENDING))]
        return known_models.fetched() | {path.name: path for path in found}

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
        places = self._places() | self._opened
        if name in places:
            return places[name]
        model, step = without_step(name)
        if model in places and step is not None:
            kept = snapshots.steps(places[model])
            if name in (there := [at_step(model, each) for each in kept]):
                return snapshots.path(places[model], step)
        raise UnknownModel(asked=name, there=", ".join(there) or "none")

    def holds(self, name: str) -> bool:
        """Whether there is a checkpoint of that name that nobody opened by its path. Snapshots do not count."""
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
        plain = {name: rewritten(value, lambda text: text.replace(where, "")) for name, value in error.fields.items()}
        return type(error)(**plain)


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


@dataclass(frozen=True, eq=False)
class OpenedTrace:
    """A trace under the name that it is asked for by.

    Attributes:
        name: its name, as that of a model.
        title: its file name, without the ending.
        trace: the trace.
    """

    name: str
    title: str
    trace: Trace

    @property
    def info(self) -> ModelInfo:
        """Its entry in a list of models."""
        spec = {"encoder": None, "decoder": None, **(self.trace.model.get("spec") or {})}
        return ModelInfo(
            name=self.name,
            title=self.title,
            summary="",
            languages=self.trace.model.get("languages", {}),
            examples=(),
            parameters=0,
            spec=spec,
            max_source=len(self.trace.tokens["source"]),
            max_target=len(self.trace.tokens.get("target", ())),
            recorded=True,
        )


class TraceStore:
    """Traces by name, bounded in number and bytes: the least recently used are read again, uploads are dropped. Thread-safe.

    Args:
        folder: the folder of checkpoints; it may be missing.
        peers: uploads of other processes that serve the same visitors.
    """

    def __init__(self, folder: Path, peers: PeerUploads = NO_PEERS) -> None:
        self._folder, self._peers = folder, peers
        self._paths: dict[str, Path] = {}
        self._sent: LruCache[str, OpenedTrace] = LruCache(MOST_BYTES, _nbytes, MOST_TRACES)
        self._read: ComputedOnce[tuple[str, str], OpenedTrace] = ComputedOnce(
            LruCache(MOST_BYTES, _nbytes, MOST_TRACES, BUDGET, "opened traces")
        )
        self._infos: ComputedOnce[tuple[str, str], ModelInfo] = ComputedOnce(LruCache(MOST_INFOS, lambda info: 1))
        self._slots = OpeningSlots(OPENED_AT_ONCE)

    def names(self) -> list[str]:
        """Names of the traces in the folder now, sorted, and of those opened by path that are still there."""
        there = self._folder.iterdir() if self._folder.is_dir() else ()
        return [*sorted(path.name for path in there if _is_trace(path)), *(n for n, path in self._paths.items() if path.is_file())]

    def receive(self, data: bytes, name: str) -> str:
        """Keeps an uploaded trace, or the trace of an uploaded archive, and returns its name: a hash of the content.

        Raises:
            BadTrace: it is none, or its parts contradict each other.
        """
        key = f"{TRACE_PREFIX}{hashlib.sha256(data).hexdigest()[:16]}"
        if self._sent.get(key) is None:
            self._keep(key, data, PurePath(name).name[:200] or key)
            self._peers.put(key, data, name)
        return key

    def open(self, path: Path) -> str:
        """Adds a trace file of this machine and returns its name.

        Raises:
            NotACheckpoint: the path does not exist or cannot be read.
            BadTrace: it is no trace that can be drawn.
        """
        name = opened_name(path)
        self._paths[name] = path.resolve()
        self.get(name)
        return name

    def get(self, name: str) -> OpenedTrace | None:
        """The trace of that name; None: this store has none.

        Raises:
            BadTrace: its file is damaged.
            NotACheckpoint: its file cannot be read any more.
        """
        path = self._path(name)
        return self._uploaded(name) if path is None else self._opened(name, path)

    def info(self, name: str) -> ModelInfo | None:
        """The entry of a trace in a list of models, with a `problem` if its file is damaged; None: this store has none.

        It stays known when the trace itself was dropped, so that a list of models reads no file again.
        """
        path = self._path(name)
        if path is None:
            found = self._uploaded(name)
            return None if found is None else found.info
        return self._infos.get((name, opened_name(path)), lambda: self._described(name, path))

    def _described(self, name: str, path: Path) -> ModelInfo:
        try:
            return self._opened(name, path).info
        except BadTrace as error:
            return ModelInfo(name, title_of(path.name), "", {}, (), 0, {}, 0, 0, problem=error.to_json(), recorded=True)

    def _opened(self, name: str, path: Path) -> OpenedTrace:
        key = name, opened_name(path)
        return self._read.get(key, lambda: OpenedTrace(name, title_of(path.name), read_path(path)))

    def _path(self, name: str) -> Path | None:
        if name in self._paths:
            return self._paths[name]
        inside = PurePath(name).name == name and _is_trace(self._folder / name)
        return self._folder / name if inside else None

    def _uploaded(self, name: str) -> OpenedTrace | None:
        if not name.startswith(TRACE_PREFIX):
            return None
        if (found := self._sent.get(name)) is None and (there := self._peers.get(name)) is not None:
            found = self._keep(name, *there)
        return found

    def _keep(self, key: str, data: bytes, name: str) -> OpenedTrace:
        with self._slots:
            found = OpenedTrace(key, title_of(name), read_bytes(data, name))
        self._sent.keep(key, found)
        return found


def _is_trace(path: Path) -> bool:
    return path.name.endswith(ENDING) and path.is_file()


def title_of(name: str) -> str:
    """The title of a trace: its file name without the ending."""
    return name.removesuffix(ENDING) if name.endswith(ENDING) else PurePath(name).stem


def _nbytes(opened: OpenedTrace) -> int:
    return opened.trace.nbytes
