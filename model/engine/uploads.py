"""Uploads: files sent by visitors. Each is opened once, kept in memory and named by a hash of its content.

Weights become a model; a vocabulary becomes a value of the settings `source_vocab` and `target_vocab`; an image or a sound, a
source. If several processes serve the same visitors, each finds the files sent to the others through `peers`; a hash of the content
never gets out of date.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

import torch

from model.checkpoints import loader
from model.checkpoints.layouts.given_answers import FILES, STEERING, GivenAnswers, TextsOf, texts_of_a_path
from model.checkpoints.layouts.layout_files import SETTING
from model.checkpoints.layouts.loading import Diagnosis, checkpoint_of, examine, inspection_of
from model.checkpoints.loader import Runner
from model.engine.sent_files import VOCABULARY_ENDINGS, VOCABULARY_PREFIX, sent_names, unreadable, vocabulary_name
from model.engine.shared_uploads import NO_PEERS, OpeningSlots, PeerUploads
from model.errors import BadSetting, DoesNotFit, NotACheckpoint, NoWeights, WholeObject, phrase
from model.inference import pictures, sounds
from model.inspection.report import Inspection
from model.requests.inputs import IMAGE_PREFIX, SOUND_PREFIX
from model.safe_loading.gguf import MAGIC
from model.safe_loading.gguf_tensors import GgufFile, read_gguf_upload
from model.safe_loading.images import is_image
from model.safe_loading.reader import OpenedFile, read_upload
from model.safe_loading.sounds import is_sound
from model.sharing.caches import LruCache, SingleFlight
from model.tokenizers.vocabulary_files import MERGES, holds_pickled_vocabulary, vocabulary_in

UPLOAD_PREFIX = "upload-"
"""Prefix of the names of uploaded weights."""

MOST_BYTES = 256 * 2**20
MOST_FILES = 16

OPENED_AT_ONCE = 2
"""Uploads that are opened at the same time, each in its own process; slow ones delay only each other."""

MOST_WORDS = 8 * 2**20
"""Most bytes of an uploaded vocabulary."""


@dataclass(frozen=True)
class SentVocabulary:
    """An uploaded vocabulary: its file name and its bytes."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Upload:
    """An uploaded weight file.

    Attributes:
        name: its file name.
        size: bytes.
        digest: SHA-256 of its bytes.
        opened: its tensors, or a GGUF file's settings and where its tensors are.
        texts_of: reads the vocabulary that a setting names.
    """

    name: str
    size: int
    digest: str
    opened: OpenedFile | GgufFile
    texts_of: TextsOf

    def inspect(self, settings: Mapping[str, str]) -> Inspection:
        """The inspection report; open questions are listed, not raised.

        Raises:
            CheckpointError: its layout is unknown or ambiguous.
            BadSetting: an answer is not allowed.
        """
        if isinstance(self.opened, GgufFile):
            return loader.inspect_gguf(self.opened, settings)
        return inspection_of(self._diagnosis(self.opened, settings))

    def load(self, settings: Mapping[str, str], device: torch.device) -> Runner:
        """The network, ready to run.

        Raises:
            CheckpointError, BadSetting: as for `inspect`; or weights are missing or have wrong shapes.
            OpenQuestions: `settings` leave a question open.
        """
        if isinstance(self.opened, GgufFile):
            return loader.load_gguf(self.opened, settings, device)
        return checkpoint_of(self._diagnosis(self.opened, settings), self.digest, device)

    def _diagnosis(self, opened: OpenedFile, settings: Mapping[str, str]) -> Diagnosis:
        steering = {name: value for name, value in settings.items() if name in STEERING}
        others = {name: value for name, value in settings.items() if name not in STEERING}
        texts = {name: self.texts_of(name, settings[name]) for name in FILES if name in settings}
        return examine(opened, PurePath(self.name), GivenAnswers(steering, others, texts))


class Uploads:
    """Uploads of this process, bounded in number and bytes; the least recently used are dropped. Thread-safe: no lock is held
    while a file is opened.

    Args:
        most_bytes: of all files together.
        most_files: how many.
        peers: uploads of other processes that serve the same visitors.
    """

    SENT = (IMAGE_PREFIX, SOUND_PREFIX)

    def __init__(self, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES, peers: PeerUploads = NO_PEERS) -> None:
        # Under no shared budget: an upload that was dropped cannot be read again from any file of this machine.
        self._weights: LruCache[str, Upload] = LruCache(most_bytes, lambda upload: upload.size, most_files)
        self._words: LruCache[str, SentVocabulary] = LruCache(MOST_WORDS * most_files, lambda words: len(words.content), most_files)
        self._peers = peers
        self._opening: SingleFlight[str, Upload] = SingleFlight()
        self._slots = OpeningSlots(OPENED_AT_ONCE)

    def keep(self, data: bytes, name: str) -> str:
        """Opens a file and keeps it. Nothing in it is executed.

        Returns:
            Its name, a hash of its content, so that equal files share one.

        Raises:
            CheckpointError: it is not a checkpoint, or unsafe or damaged.
            BadSetting: it is too long a vocabulary.
            BadImage, BadSound: it is an image or a sound that is not read.
        """
        key = self._keep(data, name)
        # Shared only after it was opened without an error, so that no other process is sent a damaged file.
        self._peers.put(key, data, name)
        return key

    def look_for(self, text: str) -> None:
        """Fetches the image or sound that a source names from the other processes, where this one does not have it."""
        name = text.strip()
        if (pictures.names_picture(name) and not pictures.is_kept(name)) or (sounds.names_sound(name) and not sounds.is_kept(name)):
            self._fetch(name)

    def open(self, path: Path) -> str:
        """Keeps a vocabulary file of this machine as if it had been uploaded, with the merges.txt beside it.

        Raises:
            NotACheckpoint: it cannot be read.
            BadSetting: it is too long.
        """
        beside = path.with_name(MERGES)
        names = []
        for file_ in (path, *([beside] if path.suffix == ".json" and beside.is_file() else [])):
            try:
                with file_.open("rb") as file:
                    # One byte more than is allowed: enough to see that a file is too long, however long it is.
                    names.append(self.keep(file.read(MOST_WORDS + 1), file_.name))
            except OSError as error:
                raise unreadable(file_, error) from error
        return ",".join(names)

    def get(self, name: str) -> Upload | None:
        """The upload of that name; None: unknown or dropped."""
        # It may have been sent to another process that serves the same visitors, or have been dropped here.
        if (upload := self._weights.get(name)) is None and name.startswith(UPLOAD_PREFIX):
            self._fetch(name)
            upload = self._weights.get(name)
        return upload

    def words(self, key: str) -> SentVocabulary | None:
        """The vocabulary of that name; None: unknown or dropped."""
        if (words := self._words.get(key)) is None and key.startswith(VOCABULARY_PREFIX):
            self._fetch(key)
            words = self._words.get(key)
        return words

    def texts_of_sent(self, setting: str, key: str) -> tuple[str, ...]:
        """The vocabulary that a setting of an upload names: an uploaded one, never a file of this machine; or a layout file's text.

        Args:
            key: name of the vocabulary; after a comma that of its merges.

        Raises:
            BadSetting: there is no upload of that name, or it is not a vocabulary.
        """
        words, *merges = [self._sent(setting, name, key) for name in sent_names(key)]
        if len(merges) > 1:
            raise BadSetting(name=setting, found=key, allowed=phrase("one vocabulary, or two files with a comma between them"))
        if setting == SETTING:
            return (words.content.decode("utf-8", errors="replace"),)
        return vocabulary_in(words.content, words.name, setting, merges[0].content if merges else None)

    def _sent(self, setting: str, name: str, key: str) -> SentVocabulary:
        if (words := self.words(name)) is None:
            allowed = "a vocabulary that was sent to this server: send it once more, or leave it out"
            raise BadSetting(name=setting, found=key, allowed=allowed)
        return words

    def texts_of(self, setting: str, value: str) -> tuple[str, ...]:
        """The vocabulary that a setting of a local file names: an uploaded one, or a path.

        Raises:
            BadSetting: there is none, or it is not a vocabulary.
        """
        return (self.texts_of_sent if value.startswith(VOCABULARY_PREFIX) else texts_of_a_path)(setting, value)

    def _fetch(self, key: str) -> None:
        if sent := self._peers.get(key):
            self._keep(*sent)

    def _keep(self, data: bytes, name: str) -> str:
        digest = hashlib.sha256(data).hexdigest()
        # A file's first bytes or its ending say what it is. Weights come last: whatever is nothing else is tried as
        # such.
        if is_sound(name, data):
            with self._slots:
                return sounds.keep(data, PurePath(name).name[:200])
        if is_image(name, data):
            with self._slots:
                return pictures.keep(data, PurePath(name).name[:200])
        if PurePath(name).suffix.lower() in VOCABULARY_ENDINGS:
            return self._keep_words(data, PurePath(name).name[:200], vocabulary_name(data))
        key = f"{UPLOAD_PREFIX}{digest[:16]}"
        if self._weights.get(key) is None:
            # Only the last part of a name, and at most 200 characters of it: it comes from a stranger.
            title = PurePath(name).name[:200] or key
            try:
                upload = self._opening.do(
                    key, lambda: Upload(title, len(data), digest, self._opened(data, title), self.texts_of_sent)
                )
            # A pickled vocabulary looks like weights from outside. Only where it holds none is it opened once more
            # as words.
            except (NoWeights, NotACheckpoint, WholeObject):
                if len(data) > MOST_WORDS or not self._is_vocabulary(data, title):
                    raise
                return self._keep_words(data, title, vocabulary_name(data))
            self._weights.keep(key, upload)
        return key

    def _is_vocabulary(self, data: bytes, title: str) -> bool:
        with self._slots:
            return holds_pickled_vocabulary(data, title)

    def _opened(self, data: bytes, title: str) -> OpenedFile | GgufFile:
        with self._slots:
            return read_gguf_upload(data, title) if data.startswith(MAGIC) else read_upload(data, title)

    def _keep_words(self, data: bytes, name: str, key: str) -> str:
        if len(data) > MOST_WORDS:
            raise DoesNotFit(
                name=name,
                reason=phrase("it has {found:,} bytes; at most {most:,} are read", found=len(data), most=MOST_WORDS),
            )
        self._words.keep(key, SentVocabulary(name, data))
        return key
