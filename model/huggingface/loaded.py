"""A network of the transformers library, loaded and ready to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from model.errors import Words
from model.huggingface.images import ImageReader
from model.huggingface.network import AnyForeign
from model.huggingface.recorded.network import RecordedNetwork
from model.huggingface.sounds import SoundReader
from model.spec.external import ForeignSpec
from model.spec.request import Decoding
from model.tokenizers.words import Tokenizer


@dataclass(frozen=True)
class ForeignInfo:
    """Facts about an external network.

    Attributes:
        name, title, summary, languages, examples, example_labels: as in checkpoints.Info.
        spec: the network.
        sampling: how its authors have it sample; None: they do not say.
    """

    name: str
    title: str
    summary: Words
    languages: Mapping[str, str]
    examples: tuple[str, ...]
    spec: ForeignSpec
    example_labels: tuple[str, ...] = ()
    sampling: Decoding | None = None


@dataclass(frozen=True)
class Foreign:
    """An external network, ready to run.

    Attributes:
        info: facts about it.
        network: on its device, in the precision of its file unless float32 was asked for.
        tokenizers: by strip.
        fingerprint: SHA-256 of its files.
        notes: remarks on its arithmetic for viewers, a sentence each.
        folder: where its survey may lie; None: it was not read from a folder.
        images: makes of an image what it reads; None: it reads something else.
        sounds: the same of a sound.
    """

    info: ForeignInfo
    network: AnyForeign | RecordedNetwork
    tokenizers: Mapping[str, Tokenizer]
    fingerprint: str
    notes: tuple[Words, ...] = ()
    folder: Path | None = None
    images: ImageReader | None = None
    sounds: SoundReader | None = None
