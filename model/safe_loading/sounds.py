"""Sounds that somebody sends are decoded by libsndfile in a process of its own (`decoding`); only its readers of
`FORMATS` are used.

Channels are averaged there, block after block, so that a file of many channels takes no more memory than one of a single channel.
"""

import os
from dataclasses import dataclass
from typing import Any, BinaryIO

from model.errors import BadSound, Phrase, phrase
from model.safe_loading.decoding import answer, child_of, decoded_apart
from model.safe_loading.images import is_image

FORMATS = ("WAV", "FLAC", "OGG")
"""Formats that are read, by libsndfile's names."""

ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".m4a", ".aac", ".wma", ".aif", ".aiff", ".weba", ".amr")
"""Endings of files of sound; those of other formats are refused as sounds, and not taken for weights."""

MOST_BYTES = 64 << 20
"""Most bytes of a sound's file: five minutes of two channels at 48,000 samples a second, 16 bits each, take 58 MB."""

MOST_SECONDS = 300
"""Longest sound, in seconds: ten times what Whisper reads."""

RATES = (4_000, 192_000)
"""Fewest and most samples a second."""

CHILD = child_of("model.safe_loading.sounds")

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Samples:
    """A decoded sound.

    Attributes:
        rate: samples a second.
        channels: of the file, whose mean was read.
        numbers: float32 of each sample, from -1 to 1.
    """

    rate: int
    channels: int
    numbers: bytes


def is_sound(name: str, data: bytes) -> bool:
    """Whether a file says that it is a sound: by its first bytes or, where these say nothing else, by its ending."""
    if data.startswith((b"fLaC", b"OggS", b"ID3")) or (data[:4] in (b"RIFF", b"RIFX", b"RF64") and data[8:12] == b"WAVE"):
        return True
    return name.lower().endswith(ENDINGS) and not is_image("", data)


def read_sound(data: bytes, name: str) -> Samples:
    """The mean of a file's channels.

    Args:
        data: the bytes of the file.
        name: its name in errors.

    Raises:
        BadSound: it is no sound, is empty or too long, holds NaN, its data end early, or it takes too much time or memory.
    """
    reply, numbers = decoded_apart(CHILD, data, name, BadSound, MOST_BYTES)
    return Samples(reply["rate"], reply["channels"], numbers)


def decoded(file: BinaryIO, path: str) -> Samples:
    """The sound in an open file. Only the process of this module calls it.

    Raises:
        BadSound: as for `read_sound`.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each thread would take address space, which is bounded
    import numpy as np
    import soundfile

    try:
        with soundfile.SoundFile(file) as sound:
            if reason := _not_read(sound):
                raise BadSound(path=path, reason=reason)
            parts = [block.mean(axis=1) for block in sound.blocks(_BLOCK, dtype="float32", always_2d=True)]
            mono = np.concatenate(parts) if parts else np.zeros(0, np.float32)
            if len(mono) < sound.frames or _shortened(sound.extra_info):
                raise BadSound(path=path, reason=phrase("it ends before its data are complete"))
            if not np.isfinite(mono).all():
                raise BadSound(path=path, reason=phrase("some of its samples are NaN or infinite"))
            return Samples(sound.samplerate, sound.channels, mono.astype("<f4").tobytes())
    except soundfile.LibsndfileError as error:
        message = " ".join(error.error_string.split()[:30])
        file.seek(0)
        damaged = is_sound("", file.read(12))
        raise BadSound(path=path, reason=message if damaged else _OTHER) from error


_OTHER = phrase("it is not an audio file of one of these kinds: {kinds}", kinds=", ".join(FORMATS))


def _not_read(sound: Any) -> Phrase | None:
    """Why an open file is refused; None: it is read."""
    if sound.format not in (*FORMATS, "WAVEX", "RF64"):
        return _OTHER
    least, most = RATES
    if not least <= sound.samplerate <= most:
        return phrase(
            "it has {rate:,} samples a second; {least:,} to {most:,} are read", rate=sound.samplerate, least=least, most=most
        )
    if not sound.frames:
        return phrase("it contains no samples")
    if (seconds := sound.frames / sound.samplerate) > MOST_SECONDS:
        return phrase("it lasts {seconds:,.0f} seconds; at most {most:,} are read", seconds=seconds, most=MOST_SECONDS)
    return None


def _shortened(log: str) -> bool:
    """Whether libsndfile says that a WAV file's data are shorter than its header; a header without a length says nothing."""
    complaints = [line for line in log.splitlines() if line.strip().startswith("data :") and "should be" in line]
    return any("4294967295" not in line for line in complaints)


def main(path: str) -> None:
    """Writes the sound on standard input, a file called `path`, to standard output, or an error's class and fields."""

    def decode(file: BinaryIO, path: str) -> tuple[dict[str, Any], bytes]:
        sound = decoded(file, path)
        return {"rate": sound.rate, "channels": sound.channels}, sound.numbers

    answer(decode, path, BadSound)
