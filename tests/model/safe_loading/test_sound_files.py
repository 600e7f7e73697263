"""Sounds from elsewhere: what is read equals what libsndfile reads here, and each bad file is refused in one sentence."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from model.errors import BadSound
from model.inference import sounds as kept
from model.safe_loading import limits, sounds
from model.safe_loading.sounds import Samples, is_sound, read_sound
from model.trace.types import Array
from tests.pictures import file_of
from tests.sounds import RATE, sound_file, tones, wav

FILES = {
    "wav": wav(),
    "wav of 8 bits": sound_file(tones(), subtype="PCM_U8"),
    "wav of 24 bits": sound_file(tones(), subtype="PCM_24"),
    "wav of floats": sound_file(tones(), subtype="FLOAT"),
    "flac": sound_file(tones(), kind="FLAC"),
    "ogg": sound_file(tones(), kind="OGG"),
    "opus": sound_file(tones(rate=48_000), 48_000, "OGG", "OPUS"),
    "two channels": sound_file(tones(channels=2)),
    "eight channels": sound_file(tones(channels=8), kind="WAVEX"),
    "8,000 a second": sound_file(tones(rate=8_000), 8_000),
    "44,100 a second": sound_file(tones(rate=44_100), 44_100),
    "one sample": sound_file(tones(1 / RATE)),
}


def array(found: Samples) -> Array:
    return np.frombuffer(found.numbers, np.float32)


@pytest.mark.parametrize("name", FILES)
def test_a_sound_is_read_as_libsndfile_reads_it(name: str) -> None:
    wanted, rate = soundfile.read(io.BytesIO(FILES[name]), dtype="float32", always_2d=True)
    found = read_sound(FILES[name], name)
    np.testing.assert_allclose(array(found), wanted.astype(np.float64).mean(axis=1), rtol=0, atol=1e-6)
    assert (found.rate, found.channels) == (rate, wanted.shape[1])


def _with_nan() -> bytes:
    samples = tones()
    samples[100] = np.nan
    return sound_file(samples, subtype="FLOAT")


def _ten_hours() -> bytes:
    """A small file whose header promises ten hours, and holds them where nothing is read: of FLAC, which compresses silence."""
    return sound_file(np.zeros((36_000 * 100, 1), np.float32), 4_000, "FLAC")


def _of_rate(rate: int) -> bytes:
    data = bytearray(wav())
    data[24:28] = struct.pack("<I", rate)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (sound_file(np.zeros((0, 1), np.float32)), "it contains no samples"),
        (_ten_hours(), r"it lasts 900 seconds; at most 300 are read"),
        (_with_nan(), "some of its samples are NaN or infinite"),
        (FILES["wav"][:2_000], "it ends before its data are complete"),
        (FILES["flac"][: len(FILES["flac"]) // 2], "it ends before its data are complete|flac|lost sync"),
        (FILES["wav"][:20], r"Error|no sound|bad|not"),
        (_of_rate(1_000_000), "1,000,000 samples a second; 4,000 to 192,000 are read"),
        (_of_rate(100), "100 samples a second"),
        (b"", "not an audio file of one of these kinds: WAV, FLAC, OGG"),
        (b"not a sound at all", "not an audio file of one of these kinds"),
        (sound_file(tones(), kind="AIFF"), "not an audio file of one of these kinds"),
        (file_of(Image.new("RGB", (9, 9))), "not an audio file of one of these kinds"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(data: bytes, said: str) -> None:
    with pytest.raises(BadSound, match=said) as error:
        read_sound(data, "hello.wav")
    assert str(error.value).startswith("The sound hello.wav cannot be read: ")
    assert "Choose another one" in str(error.value)


def test_a_header_of_ten_hours_is_refused_before_anything_is_read() -> None:
    data = bytearray(FILES["flac"])
    total = 36_000 * RATE  # 36 bits from byte 21 of the first block: the number of samples
    data[21] = (data[21] & 0xF0) | (total >> 32)
    data[22:26] = struct.pack(">I", total & 0xFFFFFFFF)
    with pytest.raises(BadSound, match=r"it lasts 36,000 seconds; at most 300 are read"):
        read_sound(bytes(data), "long.flac")


def test_a_recorder_that_did_not_know_the_length_is_read() -> None:
    data = bytearray(FILES["wav"])
    data[4:8] = data[40:44] = b"\xff\xff\xff\xff"
    assert len(array(read_sound(bytes(data), "a.wav"))) == len(tones())


def test_too_large_a_file_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sounds, "MOST_BYTES", 100)
    with pytest.raises(BadSound, match="bytes; at most 100 are read"):
        read_sound(FILES["wav"], "hello.wav")


def test_a_slow_file_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.001)
    with pytest.raises(BadSound, match="took more than"):
        read_sound(FILES["wav"], "hello.wav")


def test_the_process_can_write_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    into = tmp_path / "written"
    writes = f"i.decoded = lambda *_: open({str(into)!r}, 'wb', buffering=0).write(b'x'); main(path)"
    monkeypatch.setattr(sounds, "CHILD", sounds.CHILD.replace("main(path)", f"import model.safe_loading.sounds as i; {writes}"))
    with pytest.raises(BadSound, match="ended with status"):
        read_sound(FILES["wav"], "hello.wav")
    assert into.read_bytes() == b""


def test_a_long_file_of_many_channels_fits_into_the_bounds() -> None:
    found = read_sound(sound_file(np.zeros((48_000 * 290, 8), np.float32), 48_000, "FLAC"), "long.flac")
    assert len(array(found)) == 48_000 * 290


def test_a_sound_is_known_by_its_first_bytes_or_its_name() -> None:
    assert is_sound("a.png", FILES["wav"])
    assert is_sound("a", FILES["flac"])
    assert is_sound("a", FILES["ogg"])
    assert is_sound("a.MP3", b"\xff\xfb")
    assert not is_sound("a.wav", file_of(Image.new("RGB", (9, 9))))
    assert not is_sound("a.safetensors", b"\x08\0\0\0\0\0\0\0{}")


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
def test_another_rate_keeps_a_tone(rate: int) -> None:
    tone = 0.5 * np.sin(2 * np.pi * 440 * np.arange(rate) / rate)
    found = kept.Sound(tone.astype(np.float32), rate, 1).at(RATE)
    wanted = 0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE) / RATE)
    assert len(found) == RATE
    np.testing.assert_allclose(found[400:-400], wanted[400:-400], rtol=0, atol=2e-3)


def test_what_lies_above_half_of_the_lower_rate_is_not_heard() -> None:
    tone = np.sin(2 * np.pi * 12_000 * np.arange(48_000) / 48_000).astype(np.float32)
    assert np.abs(kept.Sound(tone, 48_000, 1).at(RATE)[400:-400]).max() < 0.01
