"""Loads or inspects a Hugging Face folder."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import torch

from model.errors import Phrase, Words, phrase
from model.huggingface import fidelity, library
from model.huggingface.chat_templates import sampling_of
from model.huggingface.checks import (
    check_report,
    check_room,
    check_size,
    described,
    notes,
    run_by,
    running_a_short_input,
    said_by_the_library,
)
from model.huggingface.config import spec_of
from model.huggingface.folder import Folder, Weights, name_of
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.network import NETWORKS, AnyForeign, ForeignTranslator, ForeignWriter
from model.huggingface.parts import parts, recorded_notes
from model.huggingface.places import named
from model.huggingface.recorded import loading as recorded
from model.huggingface.sizes import check_layers, check_sizes
from model.huggingface.tokenizer import notes as notes_of
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.report import Inspection
from model.spec.external import ForeignSpec
from model.spec.network import to_json
from model.tokenizers.chat import ReadsChats
from model.tokenizers.vocabulary import IdTokenizer
from model.transformer.attention import Run

QUESTIONS = (
    "What is the capital of France?",
    "Translate to German: The dog sleeps under the table.",
    "Name three animals that live in the sea.",
)
"""Examples for a model that chats."""


def load(folder: Folder, device: torch.device, in_float32: bool = False) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Args:
        in_float32: whether it runs in float32; else in the precision in which its weights are stored.

    Raises:
        CheckpointError, BadSetting: it cannot be used; the error says why.
    """
    folder, config = _as_saved(folder)
    if folder.family is None:
        return recorded.load(folder, device, in_float32)
    spec = _described(folder, config)
    with ThreadPoolExecutor(2) as beside:  # a process that starts and a hash of all files take as long as the rest
        cutting, hashing = beside.submit(tokenizers_of, folder, spec), beside.submit(folder.fingerprint)
        weights, network, left_over = _network(folder, config, spec, folder.weights, in_float32)
        _probe(network.to(device), folder, device)
    tokenizers, title = cutting.result(), name_of(folder.path)
    reader = tokenizers["source"]
    talks = isinstance(reader, ReadsChats) and reader.template is not None
    examples = (
        () if isinstance(reader, IdTokenizer) else QUESTIONS if talks else recorded.fitting(recorded.EXAMPLE, reader, network.spec)
    )
    info = ForeignInfo(
        title,
        title,
        phrase("Run by {program}.", program=network.spec.program),
        {strip: strip for strip in tokenizers},
        examples,
        network.spec,
        sampling=sampling_of(folder),
    )
    said = (run_by(network.library), *_about(folder), *notes(folder, weights.broken, left_over), *notes_of(folder, tokenizers))
    return Foreign(info, network, tokenizers, hashing.result(), said)


def inspect(folder: Folder) -> Inspection:
    """The inspection report of a folder, with what a run records.

    The network is built from shapes alone and not run, and the file is read once, one tensor after another.

    Raises:
        CheckpointError, BadSetting: as for `load`.
    """
    folder, config = _as_saved(folder)
    if folder.family is None:
        return recorded.inspect(folder)
    weights, network, left_over = _network(folder, config, _described(folder, config), folder.stored)
    tokenizers = tokenizers_of(folder, network.spec)
    tensors, same = described(folder, weights, left_over)
    broken = [tensor.name for tensor in tensors if tensor.nan or tensor.infinite]
    return Inspection(
        what=folder.what,
        spec=to_json(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tensors,
        missing=(),
        parts=parts(network),
        tied=same,
        prefix=weights.removed,
        notes=(
            run_by(network.library),
            *_about(folder),
            *notes(folder, broken, left_over),
            *notes_of(folder, tokenizers),
            *recorded_notes(network),
        ),
    )


def _as_saved(folder: Folder) -> tuple[Folder, Any]:
    """The folder and the library's config; without its row, where the class that saved it has other stacks than the row."""
    if folder.family is None:
        return folder, None
    check_sizes(folder)
    with said_by_the_library(folder):
        config = library.config_of(folder.model_type, folder.safe_config)
        fidelity.check_settings(folder, config)
        return (folder if library.kind_of(config) == folder.kind else replace(folder, family=None)), config


def _described(folder: Folder, config: Any) -> ForeignSpec:
    assert folder.family is not None, "an architecture without a row is opened by `recorded`"
    with said_by_the_library(folder):
        program = f"transformers {library.VERSION}, {library.class_name(folder.kind, config)}"
        return spec_of(folder, folder.family, config, program)


def _network(
    folder: Folder, config: Any, spec: ForeignSpec, read: Callable[[], Weights], in_float32: bool = False
) -> tuple[Weights, AnyForeign, dict[str, Phrase]]:
    """The weights as `read` reads them, the network with their shapes, and its unused tensors."""
    family, kind = folder.family, folder.kind
    assert family is not None
    weights = read()
    check_layers(folder, len(weights.shapes))
    dtype = torch.float32 if in_float32 else weights.dtype
    check_room(weights, dtype)
    with said_by_the_library(folder):
        outline = library.outline(kind, config)
        check_size(folder, outline, weights.shapes)
        weights = fidelity.without_wrappers(weights, outline)
        filled, report = library.filled(kind, config, weights.shapes, dtype)
    check_report(folder, spec.program, report)
    left_over = fidelity.left_over(folder, filled, set(report["unexpected_keys"]), weights.tensors)
    windowed = getattr(config, "sliding_window", None) is not None
    return weights, NETWORKS[kind](filled, named(filled, family), spec, lambda: library.new_past(kind), windowed), left_over


@torch.inference_mode()
def _probe(network: AnyForeign, folder: Folder, device: torch.device) -> None:
    """Runs two tokens, so that a network that cannot run or gives no attention is refused now, not on a page."""
    ids = torch.zeros(1, 2, dtype=torch.long, device=device)
    run = Run(cache=network.new_cache())
    with running_a_short_input(folder):
        if isinstance(network, ForeignWriter):
            network(ids, run)
            return
        mask = network.source_mask(ids, torch.tensor([2], device=device))
        memory = network.encode(ids, mask, run)
        if isinstance(network, ForeignTranslator):
            network.decode(ids, memory, mask, run)


def _about(folder: Folder) -> tuple[Words, ...]:
    """Notes on the architecture, a sentence each."""
    rotates = folder.family is not None and folder.family.positions == "rotary"
    return (
        (phrase("Queries and keys are shown after their rotation by position, as the network compared them."),) if rotates else ()
    )
