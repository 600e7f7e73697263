"""Images that somebody sends are decoded by Pillow in a process of its own (`decoding`); only its readers of `FORMATS` are used."""

from dataclasses import dataclass
from typing import Any, BinaryIO

from model.errors import BadImage, Phrase, phrase
from model.safe_loading.decoding import answer, child_of, decoded_apart

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
"""Formats that are read, by Pillow's names."""

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp")
"""Endings of their files."""

MOST_BYTES = 32 << 20
"""Most bytes of an image's file."""

MOST_PIXELS = 25_000_000
"""Most pixels: a camera's 24 megapixels. They take 75 MB."""

LONGEST = 32
"""How many times longer than the other side a side may be: a network's image has nearly equal sides."""

CHILD = child_of("model.safe_loading.images")


@dataclass(frozen=True)
class Pixels:
    """A decoded image.

    Attributes:
        width, height: in pixels, as it is seen upright.
        frames: images in the file, of which the first was read.
        colors: red, green and blue of each pixel, a byte each, from left to right and top to bottom.
    """

    width: int
    height: int
    frames: int
    colors: bytes


def is_image(name: str, data: bytes) -> bool:
    """Whether a file says that it is an image, by its ending or its first bytes."""
    starts = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"GIF8")
    return name.lower().endswith(ENDINGS) or data.startswith(starts) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def read_image(data: bytes, name: str) -> Pixels:
    """The first image in a file, upright, in red, green and blue, as the transformers library reads it.

    Args:
        data: the bytes of the file.
        name: its name in errors.

    Raises:
        BadImage: it is no image, its data end early, it is too large, too long and thin, or takes too much time or memory.
    """
    reply, colors = decoded_apart(CHILD, data, name, BadImage, MOST_BYTES)
    return Pixels(reply["width"], reply["height"], reply["frames"], colors)


def decoded(file: BinaryIO, path: str) -> Pixels:
    """The first image in an open file. Only the process of this module calls it.

    Raises:
        BadImage: as for `read_image`.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    Image.MAX_IMAGE_PIXELS = None  # its size is checked here, before any pixel is read
    try:
        image = Image.open(file, formats=FORMATS)
    except UnidentifiedImageError as error:
        raise BadImage(path=path, reason=_OTHER) from error
    except (OSError, ValueError, SyntaxError) as error:
        raise BadImage(path=path, reason=_reason(error)) from error
    if reason := _too_large(*image.size):
        raise BadImage(path=path, reason=reason)
    try:
        upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise BadImage(path=path, reason=_reason(error)) from error
    return Pixels(*upright.size, int(getattr(image, "n_frames", 1)), upright.tobytes())


_OTHER = phrase("it is not an image of one of these kinds: {kinds}", kinds=", ".join(FORMATS))


def _too_large(width: int, height: int) -> Phrase | None:
    """Why an image of this size is refused; None: it is read."""
    size = {"width": width, "height": height}
    if width * height > MOST_PIXELS:
        return phrase("it has {width:,} × {height:,} pixels; at most {most:,} in all are read", **size, most=MOST_PIXELS)
    if max(width, height) > LONGEST * min(width, height):
        return phrase(
            "it has {width:,} × {height:,} pixels; the longer side may be at most {times} times the shorter one",
            **size,
            times=LONGEST,
        )
    return None


def _reason(error: Exception) -> Phrase | str:
    """What Pillow says of a damaged file."""
    words = " ".join(str(error).split()[:30])
    return phrase("it ends before its data are complete") if "truncated" in words.lower() else f"{type(error).__name__}: {words}"


def main(path: str) -> None:
    """Writes the image on standard input, a file called `path`, to standard output, or an error's class and fields."""

    def decode(file: BinaryIO, path: str) -> tuple[dict[str, Any], bytes]:
        image = decoded(file, path)
        return {"width": image.width, "height": image.height, "frames": image.frames}, image.colors

    answer(decode, path, BadImage)
