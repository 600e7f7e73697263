"""Model cache: loaded networks and inspections, keyed by the version of their files.

No lock is held while a file is loaded or inspected: a slow file delays only requests for the same model.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import torch

from model.checkpoints import loader
from model.checkpoints.loader import Runner, lowered, own_precision
from model.engine.api import ModelInfo
from model.engine.model_list import FILES_AT_ONCE, CheckpointStore, Stamp, describe
from model.engine.sent_files import uses_sent_vocabulary
from model.engine.shared_uploads import OpeningSlots
from model.engine.uploads import UPLOAD_PREFIX, Uploads
from model.errors import DamagedFile, HeadlightError, NoRoom, UnknownModel, phrase
from model.inference.batching import is_out_of_memory, release
from model.inspection.report import Inspection
from model.requests.request import Precision, Settings
from model.sharing.caches import Budget, ComputedOnce, LruCache

Value = TypeVar("Value")

MOST_VARIANTS = 64
"""Most networks of uploads, files with settings and snapshots kept in memory: visitors can ask for any number of them."""

MOST_INFOS = 4096
"""Most models whose facts are kept; these take little memory."""

CUDA_VARIANT_BYTES = 512 * 2**20
"""Memory of a CUDA device for networks of uploads, files with settings and snapshots; the newest always stays."""

KIND = "networks"
"""What networks are called among the kinds of values that share the budget."""

TENSOR_BYTES = 2048
"""Approximate size of one tensor's statistics in an inspection."""

TRIES = 3
"""How often files are read again if they change meanwhile."""

CHANGING = phrase("its files cannot be read, or change while they are read")

UPLOADED: Stamp = (("upload", 0, 0, 0, 0),)
"""The version of every upload: its name is a hash of its content, so it never changes."""


@dataclass(frozen=True)
class ModelKey:
    """A model at one version of its files.

    Attributes:
        name, settings: as in a RunRequest.
        version: of the files, taken before they were read.
        precision: as in a RunRequest; None: the one in which it is opened when none is asked for.
    """

    name: str
    settings: Settings
    version: Stamp
    precision: Precision | None = None


@dataclass(frozen=True)
class Loaded:
    """A network and the key it was loaded under."""

    key: ModelKey
    runner: Runner

    @cached_property
    def info(self) -> ModelInfo:
        """Facts about the model, computed once: a page asks for them on every script run."""
        return describe(self.key.name, self.runner)


Outcome = Loaded | HeadlightError


class ModelCache:
    """Networks of one engine. Thread-safe.

    Args:
        store: the checkpoints.
        uploads: the uploaded files.
        device: where networks compute.
        budget: bounds these caches and others together.
    """

    def __init__(self, store: CheckpointStore, uploads: Uploads, device: torch.device, budget: Budget) -> None:
        self._store, self._uploads, self._device = store, uploads, device
        # On a CPU, networks share the budget with traces and results: what was used longest ago goes first,
        # whatever it is.
        elsewhere = device.type == "cuda"  # networks take none of the process's memory there
        shared, most = (None, CUDA_VARIANT_BYTES) if elsewhere else (budget, math.inf)
        # Two caches of networks: those of the folder as they are, which the owner of the machine chose, and
        # variants, of which visitors can ask for any number. Only the number of variants is limited.
        self._plain: ComputedOnce[ModelKey, Outcome | None] = ComputedOnce(
            LruCache(math.inf, _nbytes, budget=shared, kind=KIND), _stays
        )
        self._variants: ComputedOnce[ModelKey, Outcome | None] = ComputedOnce(
            LruCache(most, _nbytes, MOST_VARIANTS, shared, KIND), _stays
        )
        self._inspections: ComputedOnce[ModelKey, Inspection | HeadlightError | None] = ComputedOnce(
            LruCache(math.inf, _inspection_bytes, MOST_VARIANTS, budget, "inspections"), _stays
        )
        # Facts are counted, not weighed, and outlive their networks: a list of models must not load each of them
        # again.
        self._infos: ComputedOnce[ModelKey, ModelInfo | HeadlightError | None] = ComputedOnce(
            LruCache(math.inf, lambda info: 0, MOST_INFOS), _stays
        )
        self._slots = OpeningSlots(FILES_AT_ONCE)

    def version(self, name: str) -> Stamp | None:
        """The version of a model's files now; None: they cannot be read.

        Raises:
            UnknownModel: there is no such model.
        """
        # A name with the prefix that is no upload may still be a folder of that name, so the store is asked next.
        uploaded = name.startswith(UPLOAD_PREFIX) and self._uploads.get(name) is not None
        return UPLOADED if uploaded else self._store.stamp(name)

    def is_weight_file(self, name: str) -> bool:
        """Whether a model of the folder is a weight file, which is opened in its own process.

        Raises:
            UnknownModel: there is no such model.
        """
        return loader.raw_weights(self._store.path(name)) is not None

    def network(self, name: str, settings: Settings = ()) -> Outcome:
        """The network of a model's current files, or the error of loading it.

        Raises:
            UnknownModel: there is no such model.
        """
        # Snapshots and files opened by path are variants, too, although they have no settings.
        plain = self._store.holds(name) and not settings
        return self._current(self._plain if plain else self._variants, name, settings, self._load)

    def info(self, name: str, settings: Settings = ()) -> ModelInfo | HeadlightError:
        """Facts about a model, or the error of loading it. They stay known when its network was dropped: each page lists them.

        Raises:
            UnknownModel: there is no such model.
        """
        return self._current(self._infos, name, settings, self._describe)

    def forget_gone(self) -> None:
        """Drops what was made of files that were deleted or replaced since."""
        # Each key is looked at once, although up to four caches hold it: the look asks the file system.
        caches = (self._plain, self._variants, self._inspections, self._infos)
        gone = {key for key in {key for cache in caches for key in cache.kept()} if not self._is_current(key)}
        for cache in caches:
            cache.forget(gone.__contains__)

    def _is_current(self, key: ModelKey) -> bool:
        try:
            # Files that are being written at this moment say nothing yet. Their network stays until they are whole.
            return self.version(key.name) in (key.version, None)  # None: they are being written
        except UnknownModel:
            return False

    def _describe(self, key: ModelKey) -> ModelInfo | HeadlightError:
        outcome = self.network(key.name, key.settings)
        return outcome.info if isinstance(outcome, Loaded) else outcome

    def in_precision(self, loaded: Loaded, precision: Precision | None) -> Outcome:
        """A loaded network in `precision`, or the error of converting it, or of opening it again in float32.

        Args:
            precision: None: the one in which it was opened.
        """
        # The usual case: the network is already in the type that was asked for.
        if precision in (None, own_precision(loaded.runner)):
            return loaded
        key = ModelKey(loaded.key.name, loaded.key.settings, loaded.key.version, precision)
        # Of our own networks a copy in the other type is made. One of another program has no such copy: for float32
        # its files are opened once more.
        again = precision == "float32" and not loaded.runner.converts
        if again:
            outcome = self._variants.get(key, lambda: self._unchanged(key, self._load))
        else:
            outcome = self._variants.get(key, lambda: self._attempt(key, lambda: lowered(loaded.runner, precision)))
        return outcome or DamagedFile(path=key.name, detail=CHANGING)

    def inspection(self, name: str, settings: Settings = ()) -> Inspection:
        """The inspection report of a model's current file or folder.

        Raises:
            HeadlightError: it cannot be read, or a setting is not allowed.
        """
        outcome = self._current(self._inspections, name, settings, self._inspect)
        if isinstance(outcome, HeadlightError):
            raise outcome.with_traceback(None)  # the cached error must not collect the frames of its callers
        return outcome

    def _current(
        self,
        cache: ComputedOnce[ModelKey, Value | None],
        name: str,
        settings: Settings,
        make: Callable[[ModelKey], Value],
    ) -> Value:
        """The result of `make`, computed from files that did not change meanwhile.

        Raises:
            DamagedFile: the files keep changing.
        """
        # The version is part of the key, so a file that was replaced is never answered with the older network. It
        # is read before and after the work (`_unchanged`): a file that was replaced in between gives neither the
        # one nor the other.
        for _ in range(TRIES):
            if (version := self.version(name)) is None:
                continue
            key = ModelKey(name, tuple(sorted(settings)), version)
            if (cached := cache.get(key, lambda key=key: self._unchanged(key, make))) is not None:  # type: ignore[misc]
                return cached
        raise DamagedFile(path=name, detail=CHANGING)

    def _unchanged(self, key: ModelKey, make: Callable[[ModelKey], Value]) -> Value | None:
        """The result of `make`; None: the files changed meanwhile. Drops results of older files first."""
        # Before the new network is made, so that the memory of the replaced one is free for it.
        self.forget_gone()
        made = make(key)
        return made if self.version(key.name) == key.version else None

    def _load(self, key: ModelKey) -> Outcome:
        settings, upload = dict(key.settings), self._uploads.get(key.name)
        if upload is not None:
            return self._attempt(key, lambda: upload.load(settings, self._device))
        path = self._store.path(key.name)
        # A slot bounds how many processes unpack files at once; it is no lock on the model. Callers that ask for
        # the same model share one loading (`ComputedOnce`).
        with self._opening_slot(path):
            return self._attempt(key, lambda: loader.load(path, settings, self._device, self._uploads.texts_of, key.precision))

    def _inspect(self, key: ModelKey) -> Inspection | HeadlightError:
        settings, upload = dict(key.settings), self._uploads.get(key.name)
        if upload is not None:
            return upload.inspect(settings)
        path = self._store.path(key.name)
        try:
            with self._opening_slot(path):
                return loader.inspect(path, settings, self._uploads.texts_of)
        except HeadlightError as error:
            return self._store.without_path(error)

    def _opening_slot(self, path: Path) -> AbstractContextManager[None]:
        """A slot for opening a weight file, which takes a process; anything else needs no slot."""
        return nullcontext() if loader.raw_weights(path) is None else self._slots

    def _attempt(self, key: ModelKey, load: Callable[[], Runner]) -> Outcome:
        try:
            return Loaded(key, load())
        except HeadlightError as error:
            return self._store.without_path(error)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # After the `except` has ended: until then the error holds the frames, and with them the tensors that had no
        # room.
        release()
        return NoRoom(model=key.name)


def _stays(key: ModelKey, value: Outcome | Inspection | ModelInfo | None) -> bool:
    """Whether an outcome may be cached. Some errors may go away: there may be memory, or the missing vocabulary, next time."""
    # Uploads and vocabularies come and go without a new version, so an error about them may not be true next time.
    # Errors of files stay: the same version of a file gives the same error.
    for_good = not (key.name.startswith(UPLOAD_PREFIX) or uses_sent_vocabulary(key.settings))
    return value is not None and (not isinstance(value, HeadlightError) or (for_good and not isinstance(value, NoRoom)))


def _nbytes(outcome: Outcome | None) -> int:
    """Memory of a network."""
    if not isinstance(outcome, Loaded):
        return 0
    # Buffers count like weights: tables of positions can be as large.
    return sum(tensor.nbytes for tensor in (*outcome.runner.network.parameters(), *outcome.runner.network.buffers()))


def _inspection_bytes(outcome: Inspection | HeadlightError | None) -> int:
    return TENSOR_BYTES * len(outcome.tensors) if isinstance(outcome, Inspection) else 0
