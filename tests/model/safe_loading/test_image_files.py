"""Images from elsewhere: what is read equals what the library's own opener reads, and each bad file is refused in one sentence."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from model.errors import BadImage
from model.safe_loading import images, limits
from model.safe_loading.images import Pixels, is_image, read_image
from tests.pictures import colors, file_of, png


def array(found: Pixels) -> np.ndarray:
    return np.frombuffer(found.colors, np.uint8).reshape(found.height, found.width, 3)


def of_the_library(data: bytes) -> np.ndarray:
    from transformers.image_utils import load_image

    return np.asarray(load_image(Image.open(io.BytesIO(data))))


def _oriented() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    return file_of(Image.fromarray(colors(20, 30)), "PNG", exif=exif)


def _animated() -> bytes:
    frames = [Image.fromarray(colors(10, 12, seed)) for seed in range(3)]
    return file_of(frames[0], "GIF", save_all=True, append_images=frames[1:])


FILES = {
    "png": png(20, 30),
    "one pixel": png(1, 1),
    "jpeg": file_of(Image.fromarray(colors(20, 30)), "JPEG"),
    "webp": file_of(Image.fromarray(colors(20, 30)), "WEBP", lossless=True),
    "bmp": file_of(Image.fromarray(colors(20, 30)), "BMP"),
    "cmyk": file_of(Image.fromarray(colors(20, 30)).convert("CMYK"), "JPEG"),
    "gray": file_of(Image.fromarray(colors(20, 30)[..., 0]), "PNG"),
    "transparent": file_of(Image.fromarray(np.dstack([colors(20, 30), colors(20, 30)[..., :1]])), "PNG"),
    "palette": file_of(Image.fromarray(colors(20, 30)).quantize(16), "PNG"),
    "turned": _oriented(),
    "animated": _animated(),
}


@pytest.mark.parametrize("name", FILES)
def test_an_image_is_read_as_the_library_reads_it(name: str) -> None:
    found = read_image(FILES[name], name)
    np.testing.assert_array_equal(array(found), of_the_library(FILES[name]))
    assert found.frames == (3 if name == "animated" else 1)


def test_an_image_that_a_camera_turned_stands_upright() -> None:
    assert (found := read_image(FILES["turned"], "a.png")).width == 20
    assert found.height == 30


def _png_that_says(width: int, height: int) -> bytes:
    """A small file whose header promises a large image."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (_png_that_says(30_000, 30_000), r"30,000 × 30,000 pixels; at most 25,000,000"),
        (_png_that_says(3_000, 2), r"3,000 × 2 pixels; the longer side may be at most 32 times"),
        (_png_that_says(200, 200), r"it ends before its data are complete|broken|truncated"),
        (FILES["jpeg"][:700], "it ends before its data are complete"),
        (FILES["png"][:900], "it ends before its data are complete"),
        (FILES["png"][:20], "it ends before its data are complete"),
        (b"", "not an image of one of these kinds: PNG, JPEG, WEBP, GIF, BMP"),
        (b"GIF89a" + bytes(40), "not an image of one of these kinds|Error"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not an image of one of these kinds"),
        (file_of(Image.fromarray(colors(20, 30)), "TIFF"), "not an image of one of these kinds"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_sentence(data: bytes, said: str) -> None:
    with pytest.raises(BadImage, match=said) as error:
        read_image(data, "cat.png")
    assert str(error.value).startswith("The image cat.png cannot be read: ")
    assert "Choose another one" in str(error.value)


def test_too_large_a_file_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "MOST_BYTES", 100)
    with pytest.raises(BadImage, match="bytes; at most 100 are read"):
        read_image(FILES["png"], "cat.png")


def test_a_slow_file_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SECONDS", 0.001)
    with pytest.raises(BadImage, match="took more than"):
        read_image(FILES["png"], "cat.png")


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "CHILD", "import os; os._exit(7)")
    with pytest.raises(BadImage, match="ended with status 7"):
        read_image(FILES["png"], "cat.png")


def test_the_process_can_write_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    into = tmp_path / "written"
    writes = f"i.decoded = lambda *_: open({str(into)!r}, 'wb', buffering=0).write(b'x'); main(path)"
    monkeypatch.setattr(images, "CHILD", images.CHILD.replace("main(path)", f"import model.safe_loading.images as i; {writes}"))
    with pytest.raises(BadImage, match="ended with status"):
        read_image(FILES["png"], "cat.png")
    assert into.read_bytes() == b""


def test_the_process_has_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        images,
        "CHILD",
        images.CHILD.replace("main(path)", "import model.safe_loading.limits as i; i.MAX_MEMORY = 1 << 27; main(path)"),
    )
    with pytest.raises(BadImage, match=r"more than 134,217,728 bytes of memory|ended with status"):
        read_image(file_of(Image.new("RGB", (5000, 5000))), "cat.png")


def test_an_image_is_known_by_its_name_or_its_first_bytes() -> None:
    assert is_image("a.PNG", b"")
    assert is_image("a", FILES["jpeg"])
    assert is_image("a", FILES["webp"])
    assert is_image("a", FILES["animated"])
    assert not is_image("a.safetensors", b"\x08\0\0\0\0\0\0\0{}")
