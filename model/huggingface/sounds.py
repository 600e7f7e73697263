"""Sounds for networks of the transformers library: cut into frames, and prepared by the library's own feature extractor.

`preprocessor_config.json` says how: its rate, its window, its frequencies. A folder without the file, or with another extractor
than Whisper's, opens, and refuses sounds with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from model.errors import DoesNotFit, HeadlightError, Phrase, Words, phrase
from model.huggingface.folder import PREPARATION, Folder
from model.requests.external import ForeignSound
from model.trace.types import Array

FILE, PART = PREPARATION[0], "feature_extractor"
"""The file that says how it is prepared, and the name of these settings in the file of newer versions of the library."""

EXTRACTOR = "WhisperFeatureExtractor"
"""The library's class that is used."""

_READ: Mapping[str, int] = {
    "feature_size": 512,
    "sampling_rate": 192_000,
    "hop_length": 16_384,
    "chunk_length": 120,
    "n_fft": 16_384,
}
"""Settings of the file that are used: whole numbers above 0, each with its largest value."""


def arranged(rows: Tensor, sound: ForeignSound) -> Tensor:
    """[batch, position, number] -> [batch, band, frame]: a row holds all numbers of its first frame, then of its second."""
    frames = rows.reshape(len(rows), sound.positions * sound.joined, sound.bands)
    return frames.transpose(1, 2)


def cut(spectrogram: Tensor, sound: ForeignSound) -> Tensor:
    """[band, frame] -> [position, number], the reverse of `arranged`."""
    return spectrogram.T.reshape(sound.positions, sound.width)


@dataclass(frozen=True)
class SoundReader:
    """Makes of a sound what a network reads.

    Attributes:
        extractor: the library's; None: there is none.
        why: why there is none.
    """

    extractor: Any = None
    why: Words = ""

    @property
    def rate(self) -> int:
        """Samples a second that it reads.

        Raises:
            DoesNotFit: the folder does not say how to prepare a sound.
        """
        if self.extractor is None:
            raise DoesNotFit(name="source", reason=self.why)
        return int(self.extractor.sampling_rate)

    @property
    def most(self) -> int:
        """Most samples that it reads of a sound."""
        return int(self.extractor.n_samples)

    def read(self, samples: Array) -> Tensor:
        """[band, frame]: the logarithms of a sound's energy in bands of frequency, by the library.

        Args:
            samples: [sample] of float32, `rate` a second; at most `most` of them are read, and fewer are filled up with silence.
        """
        made = self.extractor(samples, sampling_rate=self.rate, return_tensors="pt")["input_features"][0]
        return torch.as_tensor(np.asarray(made, np.float32))

    def rows(self, spectrogram: Tensor, sound: ForeignSound) -> Tensor:
        """[position, number]: the frames of a spectrogram that become one position."""
        return cut(spectrogram, sound)


def sound_reader(folder: Folder, sound: ForeignSound) -> SoundReader:
    """The reader of a folder's sounds; one without an extractor where its files do not say how to prepare them.

    Args:
        sound: what the network reads.
    """
    try:
        settings = folder.preparation(PART)
    except HeadlightError as error:
        return SoundReader(why=phrase("{file} cannot be read: {detail}", file=FILE, detail=error.fields["detail"]))
    if settings is None:
        return SoundReader(why=phrase("the folder has no {file}, which says how a sound is prepared", file=FILE))
    if (named := str(settings.get("feature_extractor_type") or "")) != EXTRACTOR:
        return SoundReader(
            why=phrase("{file} names the processor {named}, which is not known here", file=FILE, named=repr(named[:80]))
        )
    if (wrong := _why_unusable(settings)) is not None:
        return SoundReader(why=wrong)
    from transformers.models.whisper import WhisperFeatureExtractor

    # only known settings, so that no argument of the class is chosen by the file
    extractor = WhisperFeatureExtractor(**{name: settings[name] for name in _READ if name in settings})
    frames = sound.positions * sound.joined
    # a preparation for another network fits neither its bands nor its length
    if (extractor.feature_size, extractor.nb_max_frames) != (sound.bands, frames):
        return SoundReader(
            why=phrase(
                "prepared as {file} says, it has the shape {found}, but the network reads {wanted}",
                file=FILE,
                found=f"{extractor.feature_size} × {extractor.nb_max_frames}",
                wanted=f"{sound.bands} × {frames}",
            )
        )
    return SoundReader(extractor)


def _why_unusable(settings: Mapping[str, Any]) -> Phrase | None:
    """Why the settings of a file cannot be used; None: they can."""
    for name, most in _READ.items():
        value = settings.get(name, 1)
        if type(value) is not int or not 1 <= value <= most:
            return phrase(
                "{name} in {file} is {found}; allowed are whole numbers from 1 to {most:,}",
                name=name,
                file=FILE,
                found=repr(value)[:80],
                most=most,
            )
    return None
