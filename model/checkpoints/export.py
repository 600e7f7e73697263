"""Export: writes a loaded network as a native checkpoint folder, so that its questions need no more answers.

The folder gives the identical run: numbers that float16 cannot hold stay float32, and position tables that no formula here gives
are stored.
"""

import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from model.checkpoints import native
from model.checkpoints.loader import Runner
from model.checkpoints.native import Checkpoint
from model.errors import CannotExport, phrase
from model.requests.network import ModelSpec
from model.tokenizers import vocabulary
from model.tokenizers.subwords.tokenizer import SubwordTokenizer
from model.transformer.build import build

TABLE = re.compile(r"((?:encoder|decoder)\.|)embedding\.positions\.table")


def files(checkpoint: Runner) -> dict[str, bytes]:
    """The files of the folder by name.

    Raises:
        CannotExport: a number is not finite, or another program runs the network.
    """
    if not isinstance(checkpoint, Checkpoint):
        raise CannotExport(path=checkpoint.info.name, reason=phrase("the program that it came from runs it"))
    spec, stored = _with_tables(checkpoint.info.spec, checkpoint.network)
    weights = {name: _smallest(tensor) for name, tensor in (dict(checkpoint.network.state_dict()) | stored).items()}
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            raise CannotExport(path=checkpoint.info.name, reason=phrase("{name} holds numbers that are not finite", name=name))
    # a native tokenizer.json holds words and pieces, not the rules of other libraries
    if any(isinstance(tokenizer, SubwordTokenizer) for tokenizer in checkpoint.tokenizers.values()):
        reason = "its texts are cut by the rules of another program; left without its vocabulary, it can become one that reads ids"
        raise CannotExport(path=checkpoint.info.name, reason=reason)
    info = replace(checkpoint.info, name=folder_name(checkpoint), spec=spec, notes=checkpoint.notes)
    by_strip = {strip: vocabulary.to_json(tokenizer) for strip, tokenizer in checkpoint.tokenizers.items()}
    return {
        native.SPEC: native.described(info).encode(),
        native.TOKENIZER: json.dumps(by_strip, ensure_ascii=False, separators=(",", ":")).encode() + b"\n",
        native.WEIGHTS: save(weights),
    }


def folder_name(checkpoint: Runner) -> str:
    """A folder name valid on every system: the file's name without its ending."""
    return re.sub(r"[^\w.-]+", "_", PurePath(checkpoint.info.name).stem).strip("._") or "checkpoint"


def zipped(checkpoint: Runner) -> bytes:
    """The folder as a zip archive.

    Raises:
        CannotExport: as for `files`.
    """
    packed, folder = io.BytesIO(), folder_name(checkpoint)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files(checkpoint).items():
            archive.writestr(f"{folder}/{name}", data)
    return packed.getvalue()


def _smallest(tensor: Tensor) -> Tensor:
    """The tensor in float16 if that is lossless, else in float32; contiguous, as safetensors needs it."""
    whole = tensor.detach().cpu().float()
    half = whole.half()
    return (half if torch.equal(half.float(), whole) else whole).clone(memory_format=torch.contiguous_format)


def _with_tables(spec: ModelSpec, network: nn.Module) -> tuple[ModelSpec, dict[str, Tensor]]:
    """The spec with stored position tables, and these tables.

    Native files do not store tables that a formula gives. A table from a foreign file may differ from the formula.
    """
    # what the formula gives for this spec
    drawn = dict(build(spec).named_buffers())
    stored = {
        name: table
        for name, table in network.named_buffers()
        if TABLE.fullmatch(name) and not torch.equal(table.cpu(), drawn[name])
    }
    for name in stored:
        prefix = name.removesuffix("embedding.positions.table").rstrip(".") or "decoder"
        changed: dict[str, Any] = {prefix: replace(spec.stacks[prefix], positions="stored")}
        spec = replace(spec, **changed)
    return spec, stored
