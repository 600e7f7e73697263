"""Model list: facts about the checkpoints of a folder, which slow files do not hold up."""

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from model.engine.api import ModelInfo
from model.engine.model_cache import FILES_AT_ONCE
from model.engine.model_info import unusable
from model.engine.stores import Stamp
from model.errors import HeadlightError, StillOpening

PATIENCE_S = 5.0
"""Seconds that a list waits for a file. Later lists do not wait for it again: it is opened in a thread of its own meanwhile."""

FOLDERS_AT_ONCE = 4
"""Checkpoint folders that are loaded at the same time for the list: no weight file keeps one waiting."""


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
        versions = {name: self._version(name) for name in names}
        if versions != self._versions:
            self._versions = versions
            self._changed()
        opening = {
            name: self._begun(name, version) for name, version in versions.items() if version and not self._known(name, version)
        }
        until = max((began + PATIENCE_S for _, began in opening.values()), default=0.0)
        wait([future for future, _ in opening.values()], max(0.0, until - time.monotonic()))
        return tuple(self._info(name, opening[name][0] if name in opening else None) for name in names)

    def _info(self, name: str, opening: Future[ModelInfo] | None) -> ModelInfo:
        if opening is not None and not opening.done():
            return unusable(name, name, StillOpening(model=name))
        try:
            return opening.result() if opening is not None else self._describe(name)
        except HeadlightError as error:
            return unusable(name, name, error)

    def _known(self, name: str, version: Stamp) -> bool:
        """Whether this version was opened before, so that describing it takes no time."""
        with self._lock:
            return self._opened.get(name) == version

    def _begun(self, name: str, version: Stamp) -> tuple[Future[ModelInfo], float]:
        """The opening of a version and when it began; it begins now where it has not."""
        pool = self._files if self._is_weight_file(name) else self._folders
        with self._lock:
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
                del self._opening[name, version]
