"""Small networks of images with random weights, beside the library's own image processor, and images to give them."""

import io
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from torch import nn

from model.trace.types import Array
from tests.recorded_folders import saved

PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("vit.ViTImageProcessorPil", {"size": {"height": 32, "width": 32}}),
    "deit": ("deit.DeiTImageProcessorPil", {"size": {"height": 40, "width": 40}, "crop_size": {"height": 32, "width": 32}}),
    "dinov2": ("bit.BitImageProcessorPil", {"size": {"shortest_edge": 30}, "crop_size": {"height": 24, "width": 24}}),
    "dinov2_with_registers": (
        "bit.BitImageProcessorPil",
        {"size": {"shortest_edge": 36}, "crop_size": {"height": 32, "width": 32}},
    ),
    "siglip_vision_model": ("siglip.SiglipImageProcessorPil", {"size": {"height": 32, "width": 32}}),
    "clip_vision_model": ("clip.CLIPImageProcessorPil", {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}),
}
"""The library's processor of each architecture, and its settings."""


def processor(name: str) -> Any:
    """The library's own image processor of an architecture."""
    path, settings = PROCESSORS[name]
    module, _, class_name = path.partition(".")
    library: Any = import_module(f"transformers.models.{module}.image_processing_pil_{module}")
    return getattr(library, class_name)(**settings)


def saved_with_processor(folder: Path, name: str) -> nn.Module:
    """A folder as the library saves a network and its processor; the network that was saved."""
    made, _kind = saved(folder, name)
    processor(name).save_pretrained(folder)
    return made


def colors(height: int = 50, width: int = 70, seed: int = 0) -> Array:
    """[row, column, color] of uint8: random pixels."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def file_of(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of an image's file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def png(height: int = 50, width: int = 70, seed: int = 0) -> bytes:
    """A PNG file of random pixels."""
    return file_of(Image.fromarray(colors(height, width, seed)))
