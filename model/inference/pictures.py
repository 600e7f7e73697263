"""Pictures: images that were sent, kept in memory under a hash of their content, by which runs and links name them."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from model.checkpoints.loader import Runner
from model.errors import UnknownImage
from model.requests.inputs import IMAGE_PREFIX
from model.safe_loading.images import read_image
from model.sharing.caches import LruCache
from model.trace.types import Array, ImageFacts

EXAMPLE = f"{IMAGE_PREFIX}{0:016x}"
"""The name of an image that is drawn here: a house and a tree under the sun. Networks of images open on it."""

EXAMPLE_LABEL = "A drawn scene"
"""What the example is called; `viz.labels.images` has its translations."""

_NAME = re.compile(rf"{IMAGE_PREFIX}[0-9a-f]{{16}}")


@dataclass(frozen=True, eq=False)
class Picture:
    """An image that was sent.

    Attributes:
        colors: [row, column, color] of uint8: red, green, blue.
        frames: images in its file, of which this is the first.
        name: of its file.
    """

    colors: Array
    frames: int
    name: str = ""

    @property
    def facts(self) -> ImageFacts:
        """Its file's name and its size, as a trace holds them."""
        height, width = self.colors.shape[:2]
        return ImageFacts(self.name, width, height)


_KEPT: LruCache[str, Picture] = LruCache(256 * 2**20, lambda picture: int(picture.colors.nbytes), 64)
"""The images of this process, for all who use it. A name is a hash of the content, so what it means never changes; one that was
dropped is asked for again."""


def reads_images(runner: Runner) -> bool:
    """Whether images can be given to a network, and its folder says how they are prepared."""
    return runner.images is not None and runner.images.processor is not None


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
        # Decoders of image formats are large and written in C: a hostile file can only harm the process that opens it.
        pixels = read_image(data, name)
        colors = np.frombuffer(pixels.colors, np.uint8).reshape(pixels.height, pixels.width, 3)
        _KEPT.keep(key, Picture(colors, pixels.frames, name))
    return key


def is_kept(name: str) -> bool:
    """Whether the image of that name is in memory."""
    return name == EXAMPLE or _KEPT.get(name) is not None


def picture(name: str) -> Picture:
    """The image of that name.

    Raises:
        UnknownImage: it is not here, or was dropped.
    """
    # The example is drawn when it is asked for: it has a name like the others and needs no room among them.
    if name == EXAMPLE:
        return Picture(drawn_scene(), 1)
    if (kept := _KEPT.get(name)) is None:
        raise UnknownImage(asked=name)
    return kept


@cache
def drawn_scene() -> Array:
    """[row, column, color] of uint8, 240 × 320: a house and a tree under the sun, of whole numbers alone: the same everywhere."""
    # Arrays of coordinates: a shape is where a condition on them holds.
    y, x = np.mgrid[0:240, 0:320]

    def within(across: int, down: int, radius: int) -> Array:
        """[row, column] of bool: a disk."""
        inside: Array = (x - across) ** 2 + (y - down) ** 2 <= radius**2
        return inside

    hill = y > 170 - (x - 60) * (300 - x) // 700
    wall = (abs(x - 100) <= 48) & (y >= 118) & (y < 196)
    roof = (y >= 72) & (y < 118) & (abs(x - 100) <= (y - 72) * 4 // 3)
    door = (abs(x - 84) <= 11) & (y >= 154) & (y < 196)
    window = (abs(x - 122) <= 13) & (abs(y - 146) <= 13)
    cross = window & ((abs(x - 122) <= 1) | (abs(y - 146) <= 1))
    trunk = (abs(x - 236) <= 8) & (y >= 140) & (y < 204)
    crown = within(236, 112, 36) | within(212, 132, 24) | within(260, 132, 24)
    cloud = within(150, 40, 14) | within(170, 34, 18) | within(192, 42, 13)
    painted = (
        (within(276, 42, 25), (250, 204, 66)),
        (cloud, (250, 250, 252)),
        (hill, (106, 158, 78)),
        (wall, (226, 208, 178)),
        (roof, (172, 66, 48)),
        (door, (96, 62, 44)),
        (window, (92, 140, 186)),
        (cross, (240, 236, 228)),
        (trunk, (104, 74, 48)),
        (crown, (46, 110, 62)),
    )
    # The sky, lighter towards the horizon; the shapes are painted over it from back to front.
    colors = np.stack([120 + y // 3, 176 + y // 5, 232 + 0 * y], axis=-1).astype(np.uint8)
    for area, color in painted:  # what comes later lies over what came before
        colors[area] = color
    colors.setflags(write=False)
    return colors
