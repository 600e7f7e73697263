"""Uploads: files that visitors sent, opened once, kept in memory for this process and called by their content."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import torch

from model.checkpoints import Checkpoint
from model.errors import BadSetting
from model.inspection import Inspection
from model.layouts.loading import Diagnosis, checkpoint_of, examine, inspection_of
from model.layouts.telling import STEERING, VOCABULARIES, Told
from model.opening.reading import OpenedFile, read_upload

MOST_BYTES = 256 * 2**20
MOST_FILES = 16


@dataclass(frozen=True)
class Upload:
    """A file that was sent.

    Attributes:
        name: what its sender called it.
        size: bytes.
        digest: SHA-256 of its bytes.
        opened: its weights.
    """

    name: str
    size: int
    digest: str
    opened: OpenedFile

    def inspect(self, settings: Mapping[str, str]) -> Inspection:
        """Says what it is; open questions are listed, not raised.

        Raises:
            CheckpointError: its layout is unknown or not certain.
            BadSetting: an answer is not allowed.
        """
        return inspection_of(self._diagnosis(settings))

    def load(self, settings: Mapping[str, str], device: torch.device) -> Checkpoint:
        """The network, ready to run.

        Raises:
            CheckpointError, BadSetting: as for `inspect`; or weights are missing or of other shapes.
            OpenQuestions: it leaves something open that was not told.
        """
        return checkpoint_of(self._diagnosis(settings), self.digest, device)

    def _diagnosis(self, settings: Mapping[str, str]) -> Diagnosis:
        _refuse_files(settings)
        steering = {name: value for name, value in settings.items() if name in STEERING}
        others = {name: value for name, value in settings.items() if name not in STEERING}
        return examine(self.opened, PurePath(self.name), Told(steering, others, {}))


class Uploads:
    """The uploads of this process; where they become too many or too large, those unused for longest go.

    Args:
        most_bytes: of all files together.
        most_files: how many.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES) -> None:
        self._kept: OrderedDict[str, Upload] = OrderedDict()
        self._most_bytes, self._most_files = most_bytes, most_files

    def keep(self, data: bytes, name: str) -> str:
        """Opens a file and keeps it. Nothing in it is executed.

        Returns:
            The name that it has from now on: of its content, so that equal files have one.

        Raises:
            CheckpointError: it is no checkpoint, or not a sound one.
        """
        digest = hashlib.sha256(data).hexdigest()
        known_as = f"upload-{digest[:16]}"
        if self.get(known_as) is None:
            shown = PurePath(name).name[:200] or known_as
            self._kept[known_as] = Upload(shown, len(data), digest, read_upload(data, shown))
            self._make_room()
        return known_as

    def get(self, name: str) -> Upload | None:
        """The upload of that name; None: there is none, or it went."""
        if name in self._kept:
            self._kept.move_to_end(name)
        return self._kept.get(name)

    def _make_room(self) -> None:
        """The last one stays, whatever its size."""
        while len(self._kept) > 1 and (
            len(self._kept) > self._most_files or sum(upload.size for upload in self._kept.values()) > self._most_bytes
        ):
            self._kept.popitem(last=False)


def _refuse_files(settings: Mapping[str, str]) -> None:
    """Whoever sends a file does not name files of this machine.

    Raises:
        BadSetting: a setting names one.
    """
    for name in VOCABULARIES:
        if name in settings:
            raise BadSetting(name=name, found=settings[name], allowed="left out: an upload reads no file of this machine")
