"""What an engine can run: the checkpoints of its folder by name, read again on every call, and the facts about each of them."""

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from pathlib import Path, PurePath
from typing import TypeAlias

from model import known_models
from model.checkpoints import native
from model.checkpoints.hub import cache, names
from model.checkpoints.layouts.given_answers import ANSWERS, WEIGHT_FILES
from model.checkpoints.loader import Runner
from model.engine.api import ModelInfo, Reads
from model.engine.sent_files import opened_name
from model.errors import HeadlightError, StillOpening, UnknownModel, rewritten
from model.inference import pictures, sounds
from model.requests.network import to_json
from model.requests.snapshots import at_step, without_step
from model.tokenizers.chat import ReadsChats
from model.tokenizers.vocabulary import IdTokenizer
from model.trace.trace_files import ENDING

Stamp: TypeAlias = tuple[tuple[str, int, int, int, int], ...]
"""The version of a checkpoint's files: name, inode, mtime, ctime and size of each."""

FILES_AT_ONCE = 2
"""Weight files of the folder that are opened at the same time, each in its own process."""

PATIENCE_S = 5.0
"""Seconds that a list waits for a file. Later lists do not wait for it again: it is opened in a thread of its own meanwhile."""

FOLDERS_AT_ONCE = 4
"""Checkpoint folders that are loaded at the same time for the list: no weight file keeps one waiting."""


FIRST_IDS = 5
"""Number of ids, without start and end, in the example for a model without a vocabulary."""

FIRST_FEATURES = "6 0"
"""Example for a model without an embedding: positions and seed of random features."""


class CheckpointStore:
    """Checkpoints by name: folders and weight files of one folder, and the known models that are on this machine.

    Args:
        folder: the folder of checkpoints; it may be missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Files opened by path stand in no list: their names are known only to whoever opened them.
        self._opened: dict[str, Path] = {}

    def names(self) -> list[str]:
        """Names of the checkpoints now, sorted."""
        return sorted(known_models.fetched().keys() | self._inside())

    def _inside(self) -> dict[str, Path]:
        """The checkpoints in the folder. They hide known models of the same name, which are looked for only where needed."""
        if not self._folder.is_dir():
            return {}
        with os.scandir(self._folder) as entries:  # which knows, without another question, what is a folder: each run asks
            names = [entry.name for entry in entries if entry.is_dir() or _is_weight_file(entry.name)]
        # Nothing is kept between two calls: a folder that was copied here while the app runs is found the next
        # time.
        return {name: self._folder / name for name in names}

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
        hub_name = names.parsed(name) if name.startswith(names.PREFIX) else None
        if hub_name is not None:
            return hub_name.repo
        return self._opened[name].name if name in self._opened else name

    def pinned(self, name: str) -> str:
        """The name of a model; of a Hub's model with the commit that the cache holds now.

        Raises:
            UnknownModel: there is none of that name.
        """
        return cache.pinned(name, self.path(name)) if name.startswith(names.PREFIX) else name

    def path(self, name: str) -> Path:
        """The path of a checkpoint or of a snapshot.

        Raises:
            UnknownModel: there is none of that name.
        """
        if name.startswith(names.PREFIX) and (hub_name := names.parsed(name)) is not None:
            return cache.locate(hub_name)
        # The cheap look first. Known models are looked for only where the folder has no such name, and lose against
        # it.
        places = self._inside() | self._opened
        if name in places:
            return places[name]
        places = known_models.fetched() | places
        if name in places:
            return places[name]
        # Not a checkpoint, so perhaps a snapshot of one, such as `reverse-digits@000151`. Where only the step is
        # wrong, the error lists the steps that there are; else the models.
        offered = self.names()
        model, step = without_step(name)
        if model in places and step is not None:
            kept = native.snapshot_steps(places[model])
            if name in (offered := [at_step(model, number) for number in kept]):
                return native.snapshot_path(places[model], step)
        raise UnknownModel(asked=name, there=", ".join(offered) or "none")

    def holds(self, name: str) -> bool:
        """Whether there is a checkpoint of that name that nobody opened by its path. Snapshots do not count."""
        return name in self._inside() or name in known_models.fetched()

    def with_training(self, info: ModelInfo) -> ModelInfo:
        """`info` with the snapshots and losses of a checkpoint, or with the step of a snapshot."""
        folder = self.path(info.name)
        if native.folder_of_snapshot(folder) is not None:
            return replace(info, title=f"{info.title} @ {int(folder.stem):,}")
        return replace(info, snapshots=native.snapshot_steps(folder), losses=native.losses(folder))

    def stamp(self, name: str) -> Stamp | None:
        """The version of a checkpoint's files now; None: they are changing or cannot be read.

        Raises:
            UnknownModel: there is none of that name.
        """
        path = self.path(name)
        try:
            # Facts about the files and not their contents: a run asks for the version each time, and reading
            # gigabytes takes long. Inode and ctime also tell a file apart that was replaced by one of equal size
            # and time.
            stats = [(file.name, _stat_of_file(file)) for file in _files(path)]
        except OSError:
            return None
        return tuple((file, of.st_ino, of.st_mtime_ns, of.st_ctime_ns, of.st_size) for file, of in stats if of is not None)

    def without_path(self, error: HeadlightError) -> HeadlightError:
        """The error without the folder's path, which visitors must not see."""
        # An error quotes the path that it is about. The names below the folder are enough to find the file.
        folders = [f"{folder}{os.sep}" for folder in (self._folder, cache.root())]

        def shortened(text: str) -> str:
            for folder in folders:
                text = text.replace(folder, "")
            return text

        plain = {name: rewritten(value, shortened) for name, value in error.fields.items()}
        return type(error)(**plain)


def _is_weight_file(name: str) -> bool:
    return PurePath(name).suffix in WEIGHT_FILES and not name.endswith(ENDING)


def _files(path: Path) -> list[Path]:
    """The files of a folder, a snapshot's with the others of its checkpoint, or a weight file with its answers file."""
    # The version has to cover every file that changes what is loaded: answers to questions about a weight file are
    # in a file beside it.
    if path.is_dir():
        return sorted(path.iterdir(), key=attrgetter("name"))
    if (whole := native.folder_of_snapshot(path)) is not None:
        return native.snapshot_files(whole, path)
    return [path, path.with_name(ANSWERS), path.with_name(f"{path.stem}.{ANSWERS}")]


def _stat_of_file(file: Path) -> os.stat_result | None:
    """The facts about a file; None: it is not there, or is no file."""
    try:
        stat_ = file.stat()
    except OSError as error:
        # A link to nowhere or in a circle, or a file that was just deleted, is as good as none. After any other
        # error the version is not known, which is something else.
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise
    return stat_ if stat.S_ISREG(stat_.st_mode) else None


def unusable(name: str, title: str, error: HeadlightError) -> ModelInfo:
    """Why a model cannot be used, and its title."""
    return ModelInfo(name, title, "", {}, (), 0, {}, 0, 0, problem=error.to_json())


def describe(name: str, loaded: Runner) -> ModelInfo:
    """Facts about a loaded checkpoint; `name` is that of a RunRequest."""
    info, spec_, reads = loaded.info, loaded.info.spec, _reads(loaded)
    example = {"image": (pictures.EXAMPLE, pictures.EXAMPLE_LABEL), "sound": (sounds.EXAMPLE, sounds.EXAMPLE_LABEL)}.get(reads)
    return ModelInfo(
        name=name,
        title=info.title,
        summary=info.summary,
        languages=info.languages,
        examples=example[:1] if example else info.examples or _example(loaded),
        parameters=loaded.parameters,
        spec=to_json(spec_),
        max_source=(spec_.encoder or spec_.writer).max_positions,
        max_target=spec_.writer.max_positions,
        reads=reads,
        example_labels=example[1:] if example else info.example_labels,
        chats=isinstance(reader := loaded.tokenizers.get("source"), ReadsChats) and reader.template is not None,
        sampling=info.sampling,
    )


def _reads(checkpoint: Runner) -> Reads:
    if pictures.reads_images(checkpoint):
        return "image"
    if sounds.reads_sounds(checkpoint):
        return "sound"
    tokenizer = checkpoint.tokenizers.get("source")
    if tokenizer is None:
        return "features"
    return "ids" if isinstance(tokenizer, IdTokenizer) else "words"


def _example(checkpoint: Runner) -> tuple[str, ...]:
    """An example for models without a vocabulary: some ids, or the number of random features and a seed."""
    tokenizer, spec_ = checkpoint.tokenizers.get("source"), checkpoint.info.spec
    if tokenizer is None:
        return (FIRST_FEATURES,)
    if not isinstance(tokenizer, IdTokenizer):
        return ()
    # Lazy, since a vocabulary may have 100,000 ids and five are taken.
    plain = (id_ for id_ in range(tokenizer.size) if id_ not in tokenizer.specials and id_ != spec_.unk_id)
    last = spec_.end_id if spec_.encoder else None
    room = (spec_.encoder or spec_.writer).max_positions - 2
    ids = (spec_.start_id, *islice(plain, max(1, min(FIRST_IDS, room))), last)
    return (" ".join(str(id_) for id_ in ids if id_ is not None),)


class ModelList:
    """Describes checkpoints in threads of its own. Thread-safe.

    Args:
        describe: facts about the model of a name; its network is loaded if needed.
        version: the version of a model's files.
        is_weight_file: whether a name is that of a weight file, which may take a minute to open.
        changed: called when a list has other models or versions than the list before.
    """

    def __init__(
        self,
        describe: Callable[[str], ModelInfo],
        version: Callable[[str], Stamp | None],
        is_weight_file: Callable[[str], bool],
        changed: Callable[[], None],
    ) -> None:
        self._describe, self._version, self._is_weight_file, self._changed = describe, version, is_weight_file, changed
        # What the last list saw; which version of each model was described to the end; and what is being described
        # now. Two pools: a weight file may take a minute, and must not keep the folders waiting behind it.
        self._versions: dict[str, Stamp | None] = {}
        self._files = ThreadPoolExecutor(FILES_AT_ONCE, "headlight-opening-files")
        self._folders = ThreadPoolExecutor(FOLDERS_AT_ONCE, "headlight-opening-folders")
        self._opened: dict[str, Stamp] = {}
        self._opening: dict[tuple[str, Stamp], tuple[Future[ModelInfo], float]] = {}
        self._lock = threading.Lock()

    def infos(self, names: Sequence[str]) -> tuple[ModelInfo, ...]:
        """Facts about each model; one that is still being opened has this as its `problem`.

        Raises:
            UnknownModel: one of them is gone meanwhile.
        """
        # Most lists are equal to the one before: then nothing is dropped and nothing is opened.
        versions = {name: self._version(name) for name in names}
        if versions != self._versions:
            self._versions = versions
            self._changed()
        with self._lock:  # describing a version that was opened before takes no time
            anew = [(name, version) for name, version in versions.items() if version and self._opened.get(name) != version]
        # Everything begins before anything is waited for, so the wait is that of the slowest model and not the sum.
        opening = {name: self._begun(name, version) for name, version in anew}
        # Patience counts from the beginning of an opening and not from this list: a file that has been opened for a
        # minute delays no further page.
        until = max((began + PATIENCE_S for _, began in opening.values()), default=0.0)
        wait([future for future, _ in opening.values()], max(0.0, until - time.monotonic()))
        infos = []
        for name in names:
            future = opening[name][0] if name in opening else None
            if future is not None and not future.done():
                infos.append(unusable(name, name, StillOpening(model=name)))
                continue
            try:
                # Without a future it was described before, and the cache of facts answers at once; or its files
                # cannot be read now, and the answer is an error.
                infos.append(self._describe(name) if future is None else future.result())
            except HeadlightError as error:
                infos.append(unusable(name, name, error))
        return tuple(infos)

    def _begun(self, name: str, version: Stamp) -> tuple[Future[ModelInfo], float]:
        """The opening of a version and when it began; it begins now where it has not."""
        pool = self._files if self._is_weight_file(name) else self._folders
        with self._lock:
            # Several pages list the models at the same time: the first one begins, the others wait for the same
            # future.
            if (name, version) not in self._opening:
                self._opening[name, version] = pool.submit(self._open, name, version), time.monotonic()
            return self._opening[name, version]

    def _open(self, name: str, version: Stamp) -> ModelInfo:
        try:
            info = self._describe(name)
            with self._lock:
                self._opened[name] = version
            return info
        finally:
            with self._lock:
                # Whatever came out of it: here stands only what is being opened now.
                del self._opening[name, version]
