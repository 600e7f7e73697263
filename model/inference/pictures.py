"""Pictures: images that were sent, kept in memory under a hash of their content, by which runs and links name them."""

import hashlib
import re
from dataclasses import dataclass

import numpy as np

from model.errors import UnknownImage
from model.safe_loading.images import read_image
from model.sharing.caches import LruCache
from model.spec.inputs import IMAGE_PREFIX
from model.trace.types import Array

_NAME = re.compile(rf"{IMAGE_PREFIX}[0-9a-f]{{16}}")


@dataclass(frozen=True, eq=False)
class Picture:
    """An image that was sent.

    Attributes:
        colors: [row, column, color] of uint8: red, green, blue.
        frames: images in its file, of which this is the first.
    """

    colors: Array
    frames: int


_KEPT: LruCache[str, Picture] = LruCache(256 * 2**20, lambda picture: int(picture.colors.nbytes), 64)
"""Of this process. A name is a hash of the content, so what it means never changes; one that was dropped is asked for again."""


def names_picture(text: object) -> bool:
    """Whether a text is the name of an image."""
    return isinstance(text, str) and _NAME.fullmatch(text.strip()) is not None


def keep(data: bytes, name: str) -> str:
    """Opens the file of an image in a process of its own and keeps it.

    Args:
        data: the bytes of the file.
        name: its name in errors.

    Returns:
        Its name, such as image-1a2b3c4d5e6f7081.

    Raises:
        CheckpointError: it cannot be opened; the error says why.
    """
    key = f"{IMAGE_PREFIX}{hashlib.sha256(data).hexdigest()[:16]}"
    if _KEPT.get(key) is None:
        pixels = read_image(data, name)
        colors = np.frombuffer(pixels.colors, np.uint8).reshape(pixels.height, pixels.width, 3)
        _KEPT.keep(key, Picture(colors, pixels.frames))
    return key


def is_kept(name: str) -> bool:
    """Whether the image of that name is in memory."""
    return _KEPT.get(name) is not None


def picture(name: str) -> Picture:
    """The image of that name.

    Raises:
        UnknownImage: it is not here, or was dropped.
    """
    if (found := _KEPT.get(name)) is None:
        raise UnknownImage(asked=name)
    return found
