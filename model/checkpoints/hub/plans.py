"""What a download would take and bring, before its first byte: which files, how large, under which license, and whether it fits."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model.errors import HeadlightError, NoDisk, NoMemoryFor

GB = 1e9

BYTES_OF = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "F64": 8, "F32": 4, "BF16": 2, "F16": 2}
"""Bytes of a number, by the names of config.json and of safetensors."""

RUNS_IN = 4
"""Most bytes of a number where a network runs: it runs in the type of its weights, or in float32."""

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers")
_ABOVE = ("decoder_layers", "num_decoder_layers")
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads", "encoder_attention_heads")


@dataclass(frozen=True)
class Shape:
    """What config.json says about a network's size; 0 and empty: it does not say.

    Attributes:
        architecture: its name in the transformers library.
        layers: of all stacks together.
        heads: in each layer, of the last stack.
        dtype: number type of its weights.
        in_float32: whether it runs in float32 whatever that is, as a network does that can only be recorded.
    """

    architecture: str = ""
    layers: int = 0
    heads: int = 0
    dtype: str = ""
    in_float32: bool = False


@dataclass(frozen=True)
class HubFile:
    """A file of a model on the Hub.

    Attributes:
        name: in its folder.
        bytes: its size as announced.
        sha256: of its content, where the Hub says it; else empty.
        blob: name of the content in git: SHA-1 over `blob SIZE`, a null byte and the content.
    """

    name: str
    bytes: int
    sha256: str = ""
    blob: str = ""


@dataclass(frozen=True)
class Plan:
    """What would be downloaded.

    Attributes:
        name: the model with its commit, as it is named from now on: hub:ORG/NAME@COMMIT.
        title: ORG/NAME.
        revision: what was asked for, a branch or tag; empty: the main branch.
        commit: the commit, 40 hexadecimal digits.
        files: the needed files.
        missing: bytes that are not in the cache.
        license: as its page says; empty: it does not.
        shape: layers, heads, number type.
        parameters: their number; 0: unknown.
        folder: the cache.
        memory_there, disk_there: bytes of this machine's memory, and what is left of the disk.
    """

    name: str
    title: str
    revision: str
    commit: str
    files: tuple[HubFile, ...]
    missing: int
    license: str
    shape: Shape
    parameters: int
    folder: str
    memory_there: float
    disk_there: float

    @property
    def bytes(self) -> int:
        """Size of all needed files."""
        return sum(file.bytes for file in self.files)

    @property
    def memory(self) -> int:
        """Bytes of memory that its weights need when they run."""
        return needed_memory(sum(file.bytes for file in self.files if is_weight(file.name)), self.shape, self.parameters)

    @property
    def refused(self) -> HeadlightError | None:
        """Why it cannot be downloaded or run here; None: it fits."""
        if self.missing > self.disk_there:
            return NoDisk(model=self.title, needed=self.missing / GB, there=self.disk_there / GB, folder=self.folder)
        if self.memory > self.memory_there:
            return NoMemoryFor(model=self.title, needed=self.memory / GB, there=self.memory_there / GB)
        return None


def needed_memory(weight_bytes: int, shape: Shape, parameters: int = 0) -> int:
    """Bytes of a network in memory, from the size of its weight files."""
    stored = BYTES_OF.get(shape.dtype, RUNS_IN)
    return (RUNS_IN if shape.in_float32 else min(stored, RUNS_IN)) * (parameters or weight_bytes // stored)


def is_weight(name: str) -> bool:
    """Whether a file holds weights."""
    return name.endswith((".safetensors", ".bin"))


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Layers, heads and number type by a config.json; of a network of several, those of its text."""
    # a network of several parts has its sizes in the part that reads text
    text_configs = [config[name] for name in ("text_config", "llm_config") if isinstance(config.get(name), Mapping)]
    values = {**config, **{name: value for text in text_configs[:1] for name, value in text.items() if value is not None}}

    def first(names: Sequence[str]) -> int:
        return next((values[name] for name in names if type(values.get(name)) is int), 0)

    kind, dtype = config.get("model_type"), values.get("dtype") or values.get("torch_dtype")
    above = first(_ABOVE) or (first(_LAYERS) if config.get("is_encoder_decoder") else 0)
    return Shape(str(kind or ""), first(_LAYERS) + above, first(_HEADS), str(dtype or "").removeprefix("torch."))


def disk_left(folder: Path) -> int:
    """Bytes left on the disk of a folder that may not be there yet."""
    return shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
