"""Uploads: files that visitors sent, opened once, kept in memory for this process and called by their content.

Weights become a model; a vocabulary becomes something that `source_vocab` and `target_vocab` of an upload can name. Where several
processes serve the same people, each finds `elsewhere` what another was sent: names are of contents, so nothing gets out of date.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

import torch

from model.checkpoints.layouts.given_answers import STEERING, VOCABULARIES, TextsOf, Told, texts_of_a_path
from model.checkpoints.layouts.loading import Diagnosis, checkpoint_of, examine, inspection_of
from model.checkpoints.native import Checkpoint
from model.engine.lru_cache import LruCache, SingleFlight, Turns
from model.engine.sent_files import SENT_WORDS, WORDS, closed, words_as
from model.engine.shared_uploads import ALONE, Elsewhere
from model.errors import BadSetting
from model.inspection.report import Inspection
from model.safe_loading.reader import OpenedFile, read_upload
from model.tokenizers.vocabulary_files import vocabulary_in

SENT_WEIGHTS = "upload-"
"""What the names of uploads begin with."""

MOST_BYTES = 256 * 2**20
MOST_FILES = 16

OPENED_AT_ONCE = 2
"""Uploads that are opened at the same time, each by a process of its own: slow ones delay each other and nobody else."""

MOST_WORDS = 8 * 2**20
"""Bytes of a vocabulary that was sent."""


@dataclass(frozen=True)
class Words:
    """A vocabulary that was sent: what its sender called it, and its bytes."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Upload:
    """A file that was sent.

    Attributes:
        name: what its sender called it.
        size: bytes.
        digest: SHA-256 of its bytes.
        opened: its weights.
        texts_of: reads the vocabulary that a setting names.
    """

    name: str
    size: int
    digest: str
    opened: OpenedFile
    texts_of: TextsOf

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
        steering = {name: value for name, value in settings.items() if name in STEERING}
        others = {name: value for name, value in settings.items() if name not in STEERING}
        texts = {name: self.texts_of(name, others[name]) for name in VOCABULARIES if name in others}
        return examine(self.opened, PurePath(self.name), Told(steering, others, texts))


class Uploads:
    """The uploads of this process; where they become too many or too large, those unused for longest go. Thread-safe: no lock is
    held while a file is opened.

    Args:
        most_bytes: of all files together.
        most_files: how many.
        elsewhere: where other processes that serve the same people keep theirs.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES, elsewhere: Elsewhere = ALONE) -> None:
        self._weights: LruCache[str, Upload] = LruCache(most_bytes, lambda upload: upload.size, most_files)
        self._words: LruCache[str, Words] = LruCache(MOST_WORDS * most_files, lambda words: len(words.content), most_files)
        self._elsewhere = elsewhere
        self._opening: SingleFlight[str, Upload] = SingleFlight()
        self._turns = Turns(OPENED_AT_ONCE)

    def keep(self, data: bytes, name: str) -> str:
        """Opens a file and keeps it. Nothing in it is executed.

        Returns:
            The name that it has from now on: of its content, so that equal files have one.

        Raises:
            CheckpointError: it is no checkpoint, or not a sound one.
            BadSetting: it is a vocabulary that is too long.
        """
        known_as = self._keep(data, name)
        self._elsewhere.put(known_as, data, name)
        return known_as

    def open(self, path: Path) -> str:
        """Keeps a vocabulary of this machine as if it was sent.

        Raises:
            NotACheckpoint: it cannot be read.
            BadSetting: it is too long.
        """
        try:
            with path.open("rb") as file:
                return self.keep(file.read(MOST_WORDS + 1), path.name)
        except OSError as error:
            raise closed(path, error) from error

    def get(self, name: str) -> Upload | None:
        """The upload of that name; None: there is none, or it went."""
        if (found := self._weights.get(name)) is None and name.startswith(SENT_WEIGHTS):
            self._fetch(name)
            found = self._weights.get(name)
        return found

    def words(self, known_as: str) -> Words | None:
        """The vocabulary of that name; None: there is none, or it went."""
        if (found := self._words.get(known_as)) is None and known_as.startswith(SENT_WORDS):
            self._fetch(known_as)
            found = self._words.get(known_as)
        return found

    def texts_of_sent(self, setting: str, known_as: str) -> tuple[str, ...]:
        """The vocabulary that a setting of an upload names: one that was sent, never a file of this machine.

        Raises:
            BadSetting: none of that name is kept, or it is no vocabulary.
        """
        if (words := self.words(known_as)) is None:
            allowed = "a vocabulary that was sent to this server: send it once more, or leave it out"
            raise BadSetting(name=setting, found=known_as, allowed=allowed)
        return vocabulary_in(words.content, words.name, setting)

    def texts_of(self, setting: str, value: str) -> tuple[str, ...]:
        """The vocabulary that a setting of a file of this machine names: one that was sent, or a path.

        Raises:
            BadSetting: there is none, or it is no vocabulary.
        """
        return (self.texts_of_sent if value.startswith(SENT_WORDS) else texts_of_a_path)(setting, value)

    def _fetch(self, known_as: str) -> None:
        if found := self._elsewhere.get(known_as):
            self._keep(*found)

    def _keep(self, data: bytes, name: str) -> str:
        digest = hashlib.sha256(data).hexdigest()
        if PurePath(name).suffix.lower() in WORDS:
            return self._keep_words(data, PurePath(name).name[:200], words_as(data))
        known_as = f"{SENT_WEIGHTS}{digest[:16]}"
        if self._weights.get(known_as) is None:
            shown = PurePath(name).name[:200] or known_as
            upload = self._opening.do(
                known_as, lambda: Upload(shown, len(data), digest, self._opened(data, shown), self.texts_of_sent)
            )
            self._weights.keep(known_as, upload)
        return known_as

    def _opened(self, data: bytes, shown: str) -> OpenedFile:
        with self._turns:
            return read_upload(data, shown)

    def _keep_words(self, data: bytes, name: str, known_as: str) -> str:
        if len(data) > MOST_WORDS:
            allowed = f"at most {MOST_WORDS:,} bytes long"
            raise BadSetting(name=f"the vocabulary {name}", found=f"{len(data):,} bytes long", allowed=allowed)
        self._words.keep(known_as, Words(name, data))
        return known_as
