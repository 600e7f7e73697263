"""Images for networks of the transformers library: cut into patches, and prepared by the library's own image processor.

`preprocessor_config.json` says how: its size, its crop, the scale of its numbers. Only the processors of `PROCESSORS` are used; a
folder without the file, or with another processor, opens, and refuses images with the reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from model.errors import DoesNotFit, HeadlightError, Phrase, Words, phrase
from model.huggingface.families import TOWERS
from model.huggingface.folder import PREPARATION, Folder
from model.requests.external import ForeignImage
from model.trace.types import Array

FILE, PART = PREPARATION[0], "image_processor"
"""The file that says how it is prepared, and the name of these settings in the file of newer versions of the library."""

PROCESSORS: Mapping[str, tuple[str, str]] = {
    "ViT": ("vit", "ViTImageProcessorPil"),
    "DeiT": ("deit", "DeiTImageProcessorPil"),
    "Bit": ("bit", "BitImageProcessorPil"),
    "CLIP": ("clip", "CLIPImageProcessorPil"),
    "Siglip": ("siglip", "SiglipImageProcessorPil"),
    "Blip": ("blip", "BlipImageProcessorPil"),
}
"""The library's processors that are used, by the beginning of the name in the file: its module and its class on Pillow."""

MOST_SIDE = 1024
"""Most pixels of a side that the file may ask for."""

_READ = (
    *("do_resize", "size", "resample", "do_center_crop", "crop_size"),
    *("do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std"),
)
"""Settings of the file that are used."""


_WHOLE = ("[CLS]",)
_ADDED: Mapping[str, Callable[[Any], tuple[str, ...]]] = {
    "vit": lambda config: _WHOLE,
    "deit": lambda config: (*_WHOLE, "[DIST]"),
    "dinov2": lambda config: _WHOLE,
    "dinov2_with_registers": lambda config: _with_registers(config),
    "dinov3_vit": lambda config: _with_registers(config),
    "clip_vision_model": lambda config: _WHOLE,
    "siglip_vision_model": lambda config: (),
    "blip_vision_model": lambda config: _WHOLE,
}
"""What a network puts before its patches, by its architecture: what it was trained to read, then places that it only writes to."""

RESIZED = ("dinov2", "dinov2_with_registers", "dinov3_vit")
"""Architectures that fit their positions to the size of the image that they are given."""


def _with_registers(config: Any) -> tuple[str, ...]:
    return (*_WHOLE, *(f"[REG{number}]" for number in range(1, int(config.num_register_tokens) + 1)))


class ScaledFirst:
    """DINOv3's preparation: colors are scaled, then resized as real numbers, then normalized; called as a processor of the library.

    The library's own class needs torchvision, which must be built for the torch beside it. What it calls there is this function of
    torch, so the numbers are the same.

    Raises:
        ValueError: settings that DINOv3 does not have.
    """

    do_center_crop = False

    def __init__(self, size: Any = None, **settings: Any) -> None:
        from transformers.image_utils import IMAGENET_DEFAULT_MEAN, IMAGENET_DEFAULT_STD, SizeDict

        self.size = SizeDict(**(size or {"height": 224, "width": 224}))
        self.do_resize, self.do_rescale, self.do_normalize = (
            bool(settings.get(name, True)) for name in ("do_resize", "do_rescale", "do_normalize")
        )
        self.rescale_factor = settings.get("rescale_factor", 1 / 255)
        self.image_mean = settings.get("image_mean", IMAGENET_DEFAULT_MEAN)
        self.image_std = settings.get("image_std", IMAGENET_DEFAULT_STD)
        self.mode = {2: "bilinear", 3: "bicubic"}.get(settings.get("resample", 2), "")  # Pillow's numbers
        if settings.get("do_center_crop") or not self.mode or not (self.size.height and self.size.width):
            raise ValueError("DINOv3 is resized to a height and a width, by resample 2 or 3, without a crop")

    def __call__(self, colors: Array, **_form: str) -> dict[str, Tensor]:
        """`pixel_values`, [image, channel, row, column], of the colors of one image, [row, column, color] of uint8."""
        pixels = torch.tensor(colors).permute(2, 0, 1)[None]
        # in this order: resized after scaling, as its authors trained it
        pixels = pixels * self.rescale_factor if self.do_rescale else pixels.float()
        if self.do_resize:
            wanted = self.size.height, self.size.width
            pixels = nn.functional.interpolate(pixels, wanted, mode=self.mode, align_corners=False, antialias=True)
        if self.do_normalize:
            mean, std = (torch.tensor(numbers).reshape(-1, 1, 1) for numbers in (self.image_mean, self.image_std))
            pixels = (pixels - mean) / std
        return {"pixel_values": pixels}


def tower(config: Any) -> Any:
    """The settings of the network of images, where a folder holds one of texts, too; of other folders all settings."""
    if config.model_type not in TOWERS:
        return config
    config.vision_config.architectures = [TOWERS[config.model_type]]
    return config.vision_config


def of_vision(config: Any) -> Any:
    """The settings of the part that reads an image: of a captioner its encoder, else all of them."""
    return next((part for name in ("vision_config", "encoder") if (part := getattr(config, name, None)) is not None), config)


def added(config: Any) -> tuple[str, ...] | None:
    """Names of the positions that a network puts before the patches; None: its architecture is not known here.

    Args:
        config: of the part that reads the image.
    """
    return _ADDED[config.model_type](config) if config.model_type in _ADDED else None


def without_pooling(config: Any) -> Any:
    """The config without the layer that pools all patches into one vector by attention (SigLIP): it reads the last states alone."""
    if hasattr(vision := of_vision(config), "vision_use_head"):
        vision.vision_use_head = False
    return config


def arranged(rows: Tensor, image: ForeignImage) -> Tensor:
    """[batch, position, number] -> [batch, channel, row, column]. What comes before the patches is not read.

    A row holds all numbers of its patch's first channel, then of its second …
    """
    side = image.side
    # the first rows stand for positions that the network adds itself
    patches = rows[:, -image.patches :].reshape(-1, image.rows, image.columns, image.channels, side, side)
    return patches.permute(0, 3, 1, 4, 2, 5).reshape(-1, image.channels, image.rows * side, image.columns * side)


def cut(pixels: Tensor, image: ForeignImage) -> Tensor:
    """[channel, row, column] -> [patch, number], the reverse of `arranged`."""
    side = image.side
    parts = pixels.reshape(image.channels, image.rows, side, image.columns, side)
    return parts.permute(1, 3, 0, 2, 4).reshape(image.patches, image.width)


@dataclass(frozen=True)
class ImageReader:
    """Makes of an image what a network reads.

    Attributes:
        processor: the library's; None: there is none.
        why: why there is none.
        size: rows and columns of pixels that it makes of every image; None: they depend on the image.
    """

    processor: Any = None
    why: Words = ""
    size: tuple[int, int] | None = None

    def read(self, colors: Array, image: ForeignImage) -> tuple[Tensor, Array]:
        """What a network reads of an image.

        Args:
            colors: [row, column, color] of uint8.
            image: what the network reads.

        Returns:
            [patch, number], and [row, column, color] of uint8: what was left of the image when it was resized and cropped.

        Raises:
            DoesNotFit: the folder does not say how to prepare an image, or says it for another network.
        """
        if self.processor is None:
            raise DoesNotFit(name="source", reason=self.why)
        pixels = self._prepared(colors)
        wanted = image.channels, image.rows * image.side, image.columns * image.side
        if tuple(pixels.shape) != wanted:
            raise DoesNotFit(
                name="source",
                reason=phrase(
                    "prepared as {file} says, it has the shape {found}, but the network reads {wanted}",
                    file=FILE,
                    found=" × ".join(map(str, pixels.shape)),
                    wanted=" × ".join(map(str, wanted)),
                ),
            )
        return cut(pixels, image), self._colors(pixels)

    def _prepared(self, colors: Array) -> Tensor:
        """[channel, row, column], by the library."""
        made: Tensor = self.processor(colors, input_data_format="channels_last", return_tensors="pt")["pixel_values"][0]
        return made.float()

    def _colors(self, pixels: Tensor) -> Array:
        """[row, column, color] of uint8: the colors that were scaled to `pixels`, [channel, row, column]."""
        made, by_channel = self.processor, (-1, 1, 1)
        # backwards through the preparation, so that a page can show what was read
        if made.do_normalize:
            pixels = pixels * torch.tensor(made.image_std).reshape(by_channel) + torch.tensor(made.image_mean).reshape(by_channel)
        if made.do_rescale:
            pixels = pixels / made.rescale_factor
        colors: Array = pixels.permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8).numpy()
        return colors


def image_reader(folder: Folder) -> ImageReader:
    """The reader of a folder's images; one without a processor where its files do not say how to prepare them."""
    try:
        settings = folder.preparation(PART)
    except HeadlightError as error:
        return ImageReader(why=phrase("{file} cannot be read: {detail}", file=FILE, detail=error.fields["detail"]))
    if settings is None:
        return ImageReader(why=phrase("the folder has no {file}, which says how an image is prepared", file=FILE))
    named = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "")
    kind = named.removesuffix("Fast").removesuffix("Pil").removesuffix("ImageProcessor").removesuffix("FeatureExtractor")
    if kind not in PROCESSORS and kind != "DINOv3ViT":
        return ImageReader(
            why=phrase("{file} names the processor {named}, which is not known here", file=FILE, named=repr(named[:80]))
        )
    # a forged file may ask for a side of a million pixels: numbers are checked before the library takes them
    if (wrong := _why_unusable(settings)) is not None:
        return ImageReader(why=wrong)
    try:
        processor = _class_of(kind)(**{name: settings[name] for name in _READ if name in settings})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        detail = f"{type(error).__name__}: {' '.join(str(error).split()[:20])}"
        return ImageReader(why=phrase("{file} cannot be read: {detail}", file=FILE, detail=detail))
    return ImageReader(processor, size=_fixed_size(processor))


def _class_of(kind: str) -> Any:
    """What prepares images, by the beginning of its name in the file."""
    if kind not in PROCESSORS:
        return ScaledFirst
    module, name = PROCESSORS[kind]
    return getattr(import_module(f"transformers.models.{module}.image_processing_pil_{module}"), name)


def _fixed_size(processor: Any) -> tuple[int, int] | None:
    """Rows and columns that a processor makes of every image; None: they depend on the image."""
    last = processor.crop_size if processor.do_center_crop else processor.size if processor.do_resize else None
    if last is None or not last.height or not last.width:
        return None
    return int(last.height), int(last.width)


def _why_unusable(settings: Mapping[str, Any]) -> Phrase | None:
    """Why the settings of a file cannot be used; None: they can."""
    sizes = [value for name in ("size", "crop_size") if (value := settings.get(name)) is not None]
    numbers = [number for value in sizes for number in (value.values() if isinstance(value, Mapping) else [value])]
    if bad := [number for number in numbers if number is not None and (type(number) is not int or not 1 <= number <= MOST_SIDE)]:
        return phrase(
            "{file} asks for a side of {found} pixels; allowed are whole numbers from 1 to {most:,}",
            file=FILE,
            found=repr(bad[0])[:80],
            most=MOST_SIDE,
        )
    for name in ("rescale_factor", "image_mean", "image_std", "resample"):
        value = settings.get(name)
        listed = value if isinstance(value, list) else [value]
        if len(listed) > 4 or not all(
            number is None or (isinstance(number, int | float) and np.isfinite(number)) for number in listed
        ):
            return phrase("{name} in {file} is {found}, which is not a number", name=name, file=FILE, found=repr(value)[:80])
    return None
