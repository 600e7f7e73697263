"""Sounds that were sent, kept in memory under a hash of their content, by which runs and links name them."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from math import gcd

import numpy as np

from model.checkpoints.loader import Runner
from model.errors import UnknownSound
from model.requests.inputs import SOUND_PREFIX
from model.safe_loading.sounds import read_sound
from model.sharing.caches import LruCache
from model.trace.types import Array

EXAMPLE = f"{SOUND_PREFIX}{0:016x}"
"""The name of a sound that is computed here: tones of different pitch. Networks of sounds open on it."""

EXAMPLE_LABEL = "Computed tones"
"""What the example is called; `viz.labels.sounds` has its translations."""

_NAME = re.compile(rf"{SOUND_PREFIX}[0-9a-f]{{16}}")


@dataclass(frozen=True, eq=False)
class Sound:
    """A sound that was sent.

    Attributes:
        samples: [sample] of float32, from -1 to 1, the mean of its channels.
        rate: samples a second.
        channels: of its file.
    """

    samples: Array
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.rate

    def at(self, rate: int) -> Array:
        """[sample] of float32: the sound with `rate` samples a second, by a polyphase filter that lets nothing above half of the
        lower rate through."""
        if rate == self.rate:
            return self.samples
        # Here, since scipy takes long to import and most networks hear nothing.
        from scipy.signal import resample_poly

        # 44,100 to 16,000 a second is 441 to 160: up by the one, filtered, down by the other.
        common = gcd(rate, self.rate)
        resampled: Array = resample_poly(self.samples.astype(np.float64), rate // common, self.rate // common)
        return resampled.astype(np.float32)


_KEPT: LruCache[str, Sound] = LruCache(256 * 2**20, lambda sound: int(sound.samples.nbytes), 64)
"""The sounds of this process, for all who use it. A name is a hash of the content, so what it means never changes; one that was
dropped is asked for again."""


def reads_sounds(runner: Runner) -> bool:
    """Whether sounds can be given to a network, and its folder says how they are prepared."""
    return runner.sounds is not None and runner.sounds.extractor is not None


def names_sound(text: object) -> bool:
    """Whether a text is the name of a sound."""
    return isinstance(text, str) and _NAME.fullmatch(text.strip()) is not None


def keep(data: bytes, name: str) -> str:
    """Opens the file of a sound in a process of its own and keeps it.

    Args:
        data: the bytes of the file.
        name: its name in errors.

    Returns:
        Its name, such as sound-1a2b3c4d5e6f7081.

    Raises:
        CheckpointError: it cannot be opened; the error says why.
    """
    key = f"{SOUND_PREFIX}{hashlib.sha256(data).hexdigest()[:16]}"
    if _KEPT.get(key) is None:
        read = read_sound(data, name)
        _KEPT.keep(key, Sound(np.frombuffer(read.numbers, "<f4").astype(np.float32), read.rate, read.channels))
    return key


def is_kept(name: str) -> bool:
    """Whether the sound of that name is in memory."""
    return name == EXAMPLE or _KEPT.get(name) is not None


def sound(name: str) -> Sound:
    """The sound of that name.

    Raises:
        UnknownSound: it is not here, or was dropped.
    """
    # Computed when it is asked for, like the drawn scene among the pictures.
    if name == EXAMPLE:
        return Sound(drawn_tones(), 16_000, 1)
    if (kept := _KEPT.get(name)) is None:
        raise UnknownSound(asked=name)
    return kept


@cache
def drawn_tones() -> Array:
    """[sample] of float32, 4.8 s at 16,000 a second: eight tones of a scale, each with its octave, that swell and fade."""
    # Semitones above the first tone, and samples of each tone: 0.6 s.
    steps, length = (0, 4, 7, 12, 9, 5, 2, 0), 9_600
    times = np.arange(length) / 16_000
    # Each tone begins and ends at 0: a sudden edge would be heard as a click, and seen in all bands of the spectrogram.
    swell = np.sin(np.pi * np.arange(length) / length) ** 2
    samples = np.zeros(len(steps) * length)
    for number, step in enumerate(steps):
        pitch = 2 * np.pi * 262 * 2 ** (step / 12) * times
        samples[number * length : (number + 1) * length] = swell * (0.4 * np.sin(pitch) + 0.15 * np.sin(2 * pitch))
    tones: Array = samples.astype(np.float32)
    tones.setflags(write=False)
    return tones
