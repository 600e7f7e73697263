"""Networks that read images beside the transformers library in the same process: an image prepared, read and written about, all
maps recorded. Time is that of the processor, which other programs of a machine change least."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch

from benchmarks.timing import Row, in_turns
from model.checkpoints import loader
from model.huggingface.loaded import Foreign
from model.inference.pictures import EXAMPLE, drawn_scene
from model.inference.run import run
from model.requests.request import Decoding, RunRequest
from model.trace.types import Trace

os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported: it must not use the network

CPU = torch.device("cpu")
TOKENS = 20
"""Of a caption that a captioner is fed, or writes."""


@dataclass(frozen=True)
class Size:
    """A network of random weights, which cost as much as trained ones.

    Attributes:
        case: its name in the tables.
        layers, heads, width: of the encoder, and of a captioner's decoder.
        side: of the image and of a patch, in pixels.
        kind: its architecture; `blip` is a captioner.
    """

    case: str
    layers: int
    heads: int
    width: int
    side: tuple[int, int]
    kind: Literal["vit", "clip", "siglip", "blip"] = "vit"

    @property
    def cases(self) -> dict[str, int]:
        """Names of what is measured, with the tokens that are written; 0: an image is read, and a caption fed."""
        if self.kind != "blip":
            return {self.case: 0}
        return {f"{self.case}, {TOKENS} tokens fed": 0, f"{self.case}, {TOKENS} tokens written": TOKENS}


SIZES = (
    Size("an image of 14 × 14 patches, ViT-S (12 × 6 heads)", 12, 6, 384, (224, 16)),
    Size("an image of 14 × 14 patches, ViT-B (12 × 12 heads)", 12, 12, 768, (224, 16)),
    Size("an image of 24 × 24 patches, ViT-S (12 × 6 heads)", 12, 6, 384, (384, 16)),
    Size("an image of 7 × 7 patches, CLIP ViT-B (12 × 12 heads)", 12, 12, 768, (224, 32), "clip"),
    Size("an image of 14 × 14 patches, SigLIP ViT-B (12 × 12 heads)", 12, 12, 768, (224, 16), "siglip"),
    Size("a caption of an image of 24 × 24 patches, BLIP (12 + 12 layers of 12 heads)", 12, 12, 768, (384, 16), "blip"),
)


def measure(repeats: int, sizes: tuple[Size, ...] = SIZES) -> Iterator[Row]:
    """Each size with half of the cores, as the app uses; the baseline is the library's processor and its own pass or decode."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))
    for size in sizes:
        with tempfile.TemporaryDirectory() as room:
            save(Path(room), size)
            library, processor, ours = opened(Path(room), size), prepares(size), loader.load(Path(room), {}, CPU)
        assert isinstance(ours, Foreign)
        for case, most in size.cases.items():
            cases: dict[str, Callable[[], object]] = {
                f"{case}, the library": partial(seen, library, processor, most),
                case: partial(recorded, ours, most),
            }
            rows = in_turns(cases, repeats, clock=time.process_time)
            yield from (replace(row, note="of the library, CPU time" if row.ratio else "CPU time") for row in rows)


def save(folder: Path, size: Size, sharp: float = 1.0) -> None:
    """Writes a folder as the library saves a network and its processor.

    Args:
        sharp: times the random queries and keys: above 1, the weights of a row differ more from each other.
    """
    torch.manual_seed(0)
    network = _class(size)(_config(size))
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name.endswith(("q_proj.weight", "k_proj.weight")):
                weight.mul_(sharp)
            if name.endswith("patch_embeddings.projection.weight"):
                weight.mul_(sharp**0.5)
    network.save_pretrained(folder)
    prepares(size).save_pretrained(folder)


def _class(size: Size) -> Any:
    import transformers as library

    names = {"vit": "ViTModel", "clip": "CLIPVisionModel", "siglip": "SiglipVisionModel", "blip": "BlipForConditionalGeneration"}
    return getattr(library, names[size.kind])


def _config(size: Size) -> Any:
    """The library's settings of a size."""
    wide, (side, patch) = size.width, size.side
    own = {
        "hidden_size": wide,
        "num_hidden_layers": size.layers,
        "num_attention_heads": size.heads,
        "intermediate_size": 4 * wide,
    }
    seeing = own | {"image_size": side, "patch_size": patch}
    if size.kind == "blip":
        return _class(size).config_class(vision_config=seeing, text_config=own | {"encoder_hidden_size": wide})
    return _class(size).config_class(**seeing)


def prepares(size: Size) -> Any:
    """The library's processor of a size."""
    title = {"vit": "ViT", "clip": "CLIP", "siglip": "Siglip", "blip": "Blip"}[size.kind]
    library: Any = import_module(f"transformers.models.{size.kind}.image_processing_pil_{size.kind}")
    square = {"height": size.side[0], "width": size.side[0]}
    more = {"crop_size": square} if size.kind == "clip" else {}
    return getattr(library, f"{title}ImageProcessorPil")(size=square, **more)


def opened(folder: Path, size: Size) -> Any:
    """The library's network, with eager attention."""
    return _class(size).from_pretrained(folder, attn_implementation="eager").eval()


def seen(library: Any, processor: Any, most: int = 0) -> Any:
    """The library prepares the image and reads it, with its maps; a captioner is fed a caption, or writes one of `most` tokens."""
    pixels = processor(drawn_scene(), return_tensors="pt", input_data_format="channels_last")["pixel_values"]
    with torch.inference_mode():
        if most:
            return library.generate(pixels, min_new_tokens=most, max_new_tokens=most, do_sample=False)
        fed = {"input_ids": torch.tensor([_caption(library.config)])} if hasattr(library, "text_decoder") else {}
        return library(pixel_values=pixels, output_attentions=True, **fed)


def _caption(config: Any) -> list[int]:
    return [config.text_config.bos_token_id, *range(10, 9 + TOKENS)]


def recorded(ours: Foreign, most: int = 0) -> Trace:
    """Our run of the same image and caption, or one that writes `most` tokens; no end token ends it."""
    spec = replace(ours.info.spec, end_id=None, more_ends=())
    endless = replace(ours, info=replace(ours.info, spec=spec))
    target = None if most or spec.decoder is None else (spec.start_id or 0, *range(10, 9 + TOKENS))
    return run(endless, RunRequest("images", EXAMPLE, target, Decoding(max_length=most)), CPU, "cpu")
