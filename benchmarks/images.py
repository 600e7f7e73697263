"""Vision transformers beside the transformers library in the same process: an image prepared and read, all maps recorded."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.timing import Row, in_turns
from model.checkpoints import loader
from model.checkpoints.loader import Runner
from model.inference.pictures import EXAMPLE, drawn_scene
from model.inference.run import run
from model.spec.request import RunRequest
from model.trace.types import Trace

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported: it must not use the network

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Size:
    """A vision transformer of random weights, which cost as much as trained ones.

    Attributes:
        case: its name in the tables.
        layers, heads, width: of the encoder.
        side: of the image and of a patch, in pixels.
    """

    case: str
    layers: int
    heads: int
    width: int
    side: tuple[int, int]


SIZES = (
    Size("an image of 14 × 14 patches, ViT-S (12 × 6 heads)", 12, 6, 384, (224, 16)),
    Size("an image of 14 × 14 patches, ViT-B (12 × 12 heads)", 12, 12, 768, (224, 16)),
    Size("an image of 24 × 24 patches, ViT-S (12 × 6 heads)", 12, 6, 384, (384, 16)),
)


def measure(repeats: int, sizes: tuple[Size, ...] = SIZES) -> Iterator[Row]:
    """Each size with half of the cores, as the app uses; the baseline is the library's processor and forward pass with its maps."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    for size in sizes:
        with tempfile.TemporaryDirectory() as room:
            save(Path(room), size)
            library, processor, ours = opened(Path(room)), prepares(size), loader.load(Path(room), {}, CPU)
        other = f"{size.case}, the library, with its maps"
        cases = {other: lambda: seen(library, processor), size.case: lambda: recorded(ours)}  # noqa: B023  # both run in this turn
        rows = in_turns(cases, repeats)
        yield from (replace(row, note="of the library" if row.ratio else "") for row in rows)


def save(folder: Path, size: Size, sharp: float = 1.0) -> None:
    """Writes a folder as the library saves a network and its processor.

    Args:
        sharp: times the random queries and keys: above 1, the weights of a row differ more from each other.
    """
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    wide, (side, patch) = size.width, size.side
    config = ViTConfig(
        hidden_size=wide,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * wide,
        image_size=side,
        patch_size=patch,
    )
    network = ViTModel(config)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight")):
                weight.mul_(sharp)
            if name.endswith("patch_embeddings.projection.weight"):
                weight.mul_(sharp**0.5)
    network.save_pretrained(folder)
    prepares(size).save_pretrained(folder)


def prepares(size: Size) -> Any:
    """The library's processor of a size."""
    from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

    return ViTImageProcessorPil(size={"height": size.side[0], "width": size.side[0]})


def opened(folder: Path) -> Any:
    """The library's network, with eager attention."""
    from transformers import ViTModel

    return ViTModel.from_pretrained(folder, attn_implementation="eager").eval()


def seen(library: Any, processor: Any) -> Any:
    """The library prepares the image and reads it, with its maps."""
    pixels = processor(drawn_scene(), return_tensors="pt", input_data_format="channels_last")["pixel_values"]
    with torch.inference_mode():
        return library(pixel_values=pixels, output_attentions=True)


def recorded(ours: Runner) -> Trace:
    """Our run of the same image."""
    return run(ours, RunRequest("images", EXAMPLE), CPU, "cpu")
