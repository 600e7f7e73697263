"""Model cache: loaded networks and inspections, each under the version of the files that it was made from.

No lock is held while a file is opened, inspected or loaded: a slow one delays only those who ask for the same model.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import torch

from model.checkpoints import loader
from model.checkpoints.loaded import Runner
from model.engine.checkpoint_store import CheckpointStore, Stamp
from model.engine.lru_cache import ComputedOnce, LruCache, Turns
from model.engine.sent_files import names_words
from model.engine.uploads import SENT_WEIGHTS, Uploads
from model.errors import DamagedFile, HeadlightError, NoRoom
from model.inference.batching import is_out_of_memory, release
from model.inference.precision import lowered
from model.inspection.report import Inspection
from model.spec.request import Precision, Settings

Value = TypeVar("Value")

MOST_VARIANTS = 64
"""Networks of uploads, of files with settings and of snapshots that are kept loaded: visitors can ask for any number of them."""

INSPECTION_BYTES = 64 * 2**20
TENSOR_BYTES = 2048
"""About what the statistics of one tensor take in an inspection."""

FILES_AT_ONCE = 2
"""Files of weights in the folder that are opened at the same time, each by a process of its own."""

TRIES = 3
"""How often files that change while they are read are read."""

UPLOADED: Stamp = (("upload", 0, 0, 0, 0),)
"""The version of every upload: its name is made of its content."""


@dataclass(frozen=True)
class ModelKey:
    """A model at one version of its files.

    Attributes:
        name, settings, precision: as in a RunRequest.
        version: of the files, before they were read.
    """

    name: str
    settings: Settings
    version: Stamp
    precision: Precision = "float32"


@dataclass(frozen=True)
class Loaded:
    """A network and what it was loaded from."""

    key: ModelKey
    runner: Runner


Outcome = Loaded | HeadlightError


class ModelCache:
    """Networks of one engine. Safe to be used from many threads.

    Args:
        shelf: the folder of checkpoints.
        uploads: the files that were sent.
        device: where networks compute.
        device_name: the same for people.
        variant_bytes: bytes of the networks that are kept of uploads, of files with settings and of snapshots; the newest one stays
            anyway. Networks of the folder, as they are, stay.
    """

    def __init__(
        self, shelf: CheckpointStore, uploads: Uploads, device: torch.device, device_name: Callable[[], str], variant_bytes: int
    ) -> None:
        self._shelf, self._uploads, self._device, self._device_name = shelf, uploads, device, device_name
        self._plain: ComputedOnce[ModelKey, Outcome | None] = ComputedOnce(LruCache(math.inf, _nbytes), _stays)
        self._variants: ComputedOnce[ModelKey, Outcome | None] = ComputedOnce(
            LruCache(max(1, variant_bytes), _nbytes, MOST_VARIANTS), _stays
        )
        self._inspections: ComputedOnce[ModelKey, Inspection | None] = ComputedOnce(
            LruCache(INSPECTION_BYTES, _inspection_bytes, MOST_VARIANTS), lambda key, found: found is not None
        )
        self._turns = Turns(FILES_AT_ONCE)

    def version(self, name: str) -> Stamp | None:
        """The version of a model's files now; None: they cannot be looked at.

        Raises:
            UnknownModel: there is no such model.
        """
        return UPLOADED if self._uploads.get(name) is not None else self._shelf.stamp(name)

    def network(self, name: str, settings: Settings = ()) -> Outcome:
        """The network of a model as it is now, or why there is none.

        Raises:
            UnknownModel: there is no such model.
        """
        plain = self._shelf.holds(name) and not settings
        return self._current(self._plain if plain else self._variants, name, settings, self._load)

    def in_precision(self, loaded: Loaded, precision: Precision) -> Outcome:
        """A loaded network with its numbers in `precision`, or why there is none."""
        if precision == "float32":
            return loaded
        key = ModelKey(loaded.key.name, loaded.key.settings, loaded.key.version, precision)
        found = self._variants.get(key, lambda: self._attempt(key, lambda: lowered(loaded.runner, precision)))
        assert found is not None
        return found

    def inspection(self, name: str, settings: Settings = ()) -> Inspection:
        """The diagnosis of a model's file or folder as it is now.

        Raises:
            HeadlightError: in words, why it cannot be read, or which setting is not allowed.
        """
        return self._current(self._inspections, name, settings, self._inspect)

    def _current(
        self,
        cache: ComputedOnce[ModelKey, Value | None],
        name: str,
        settings: Settings,
        make: Callable[[ModelKey], Value],
    ) -> Value:
        """What `make` makes of files that were the same before and after.

        Raises:
            DamagedFile: they change all the time.
        """
        for _ in range(TRIES):
            if (version := self.version(name)) is None:
                continue
            key = ModelKey(name, tuple(sorted(settings)), version)
            if (found := cache.get(key, lambda key=key: self._unchanged(key, make))) is not None:  # type: ignore[misc]
                return found
        raise DamagedFile(path=name, detail="its files cannot be looked at, or change while they are read")

    def _unchanged(self, key: ModelKey, make: Callable[[ModelKey], Value]) -> Value | None:
        """What `make` makes; None: the files have changed meanwhile. Whatever was made of older files is forgotten first."""
        for cache in (self._plain, self._variants, self._inspections):
            cache.forget(lambda other: other.name == key.name and other.version != key.version)
        made = make(key)
        return made if self.version(key.name) == key.version else None

    def _load(self, key: ModelKey) -> Outcome:
        told, upload = dict(key.settings), self._uploads.get(key.name)
        if upload is not None:
            return self._attempt(key, lambda: upload.load(told, self._device))
        path = self._shelf.path(key.name)
        with self._turn(path):
            return self._attempt(key, lambda: loader.load(path, told, self._device, self._uploads.texts_of))

    def _inspect(self, key: ModelKey) -> Inspection:
        told, upload = dict(key.settings), self._uploads.get(key.name)
        if upload is not None:
            return upload.inspect(told)
        path = self._shelf.path(key.name)
        try:
            with self._turn(path):
                return loader.inspect(path, told, self._uploads.texts_of)
        except HeadlightError as error:
            raise self._shelf.without_path(error) from error

    def _turn(self, path: Path) -> AbstractContextManager[None]:
        """A file of weights is opened by a process of its own, of which there are only so many; all else waits for none."""
        return nullcontext() if loader.raw_weights(path) is None else self._turns

    def _attempt(self, key: ModelKey, load: Callable[[], Runner]) -> Outcome:
        try:
            return Loaded(key, load())
        except HeadlightError as error:
            return self._shelf.without_path(error)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        release()
        return NoRoom(device=self._device_name(), model=key.name)


def _stays(key: ModelKey, found: Outcome | None) -> bool:
    """Whether a later caller gets the same: there may be room the next time, and the vocabulary that was missing."""
    for_good = not (key.name.startswith(SENT_WEIGHTS) or names_words(key.settings))
    return isinstance(found, Loaded) or (found is not None and not isinstance(found, NoRoom) and for_good)


def _nbytes(found: Outcome | None) -> int:
    """What a network takes in memory."""
    if not isinstance(found, Loaded):
        return 0
    return sum(tensor.nbytes for tensor in (*found.runner.network.parameters(), *found.runner.network.buffers()))


def _inspection_bytes(found: Inspection | None) -> int:
    return TENSOR_BYTES * len(found.tensors) if found else 0
