"""Loads or inspects a Hugging Face folder."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import DamagedFile, HeadlightError, IncompleteWeights, UnsoundFile
from model.huggingface import fidelity, library
from model.huggingface.config import ignored, spec_of
from model.huggingface.folder import CONFIG, FOREIGN_CODE, Folder, open_folder
from model.huggingface.loaded import Foreign, ForeignInfo
from model.huggingface.network import NETWORKS, NO_SCORES, NO_STAGES, AnyForeign, ForeignTranslator, ForeignWriter
from model.huggingface.parts import parts
from model.huggingface.tokenizer import tokenizers_of
from model.inspection.diagnostics import tied
from model.inspection.leftovers import noted
from model.inspection.report import Inspection, TensorInfo
from model.inspection.tensor_stats import measured
from model.spec.external import ForeignSpec
from model.tokenizers.vocabulary import IdTokenizer
from model.transformer.attention import Run

SPARE = 1 << 22
"""Numbers by which a network may exceed its file: computed tables are not stored."""

EXAMPLE = "The animal did not cross the street because it was too tired."


def load(path: Path, device: torch.device) -> Foreign:
    """The network of a folder, ready to run. Nothing in the folder is executed.

    Raises:
        CheckpointError, BadSetting: it cannot be used; the error says why.
    """
    folder = open_folder(path)
    network, left_over, weights = _network(folder)
    tokenizers = tokenizers_of(folder, network.spec)
    _probe(network.to(device), folder, device)
    title = _name(path)
    examples = () if isinstance(tokenizers["source"], IdTokenizer) else (EXAMPLE,)
    info = ForeignInfo(
        title, title, f"Run by {network.spec.program}.", {strip: strip for strip in tokenizers}, examples, network.spec
    )
    return Foreign(info, network, tokenizers, folder.fingerprint(), _notes(folder, weights, left_over))


def inspect(path: Path) -> Inspection:
    """The inspection report of a folder, with what a run records.

    Raises:
        CheckpointError, BadSetting: as for `load`.
    """
    folder = open_folder(path)
    network, left_over, weights = _network(folder)
    tokenizers_of(folder, network.spec)
    return Inspection(
        what=f"{_name(path)}: a folder of the transformers library, architecture {folder.model_type}.",
        spec=asdict(network.spec),
        parameters=sum(parameter.numel() for parameter in network.parameters()),
        tensors=tuple(_described(name, tensor, left_over) for name, tensor in weights.items()),
        missing=(),
        parts=parts(network),
        tied=tied(weights),
        notes=(*_notes(folder, weights, left_over), *_recorded(network)),
    )


def _name(path: Path) -> str:
    """A folder's name, even if it is `.` or a symlink."""
    return path.name or path.resolve().name


def _network(folder: Folder) -> tuple[AnyForeign, dict[str, str], dict[str, Tensor]]:
    """The network, its unused tensors, and the weights as stored."""
    kind = folder.family.kind
    with _said_by_the_library(folder):
        config = library.config_of(folder.model_type, folder.safe_config)
        program = f"transformers {library.VERSION}, {library.class_name(kind, config)}"
        fidelity.check_settings(folder, config)
        spec = spec_of(folder, config, program)
    weights = folder.weights()
    with _said_by_the_library(folder):
        _check_size(folder, library.outline(kind, config), weights)
        filled, report = library.filled(kind, config, weights)
    _check_report(folder, spec, report)
    left_over = fidelity.left_over(folder, filled, set(report["unexpected_keys"]), weights)
    windowed = getattr(config, "sliding_window", None) is not None
    return NETWORKS[kind](filled, folder.family, spec, lambda: library.new_past(kind), windowed), left_over, weights


@contextmanager
def _said_by_the_library(folder: Folder) -> Iterator[None]:
    """Turns any exception of the library into one error.

    Raises:
        DamagedFile: the library raised an exception.
    """
    try:
        yield
    except HeadlightError:
        raise
    except Exception as error:
        first_words = " ".join(str(error).split()[:30])
        detail = f"the transformers library says: {type(error).__name__}: {first_words}"
        raise DamagedFile(path=folder.path / CONFIG, detail=detail) from error


def _check_size(folder: Folder, outline: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Refuses a network that is larger than its weights, before memory is allocated. Tied weights may count twice.

    Raises:
        UnsoundFile: it is larger.
    """
    asked = sum(prod(tensor.shape) for tensor in (*outline.parameters(), *outline.buffers()))
    there = sum(tensor.numel() for tensor in weights.values())
    if asked > 2 * there + SPARE:
        detail = f"it describes a network of {asked:,} numbers, and the weights beside it are {there:,}"
        raise UnsoundFile(path=folder.path / CONFIG, detail=detail)


def _check_report(folder: Folder, spec: ForeignSpec, report: Mapping[str, Any]) -> None:
    """Refuses weights that would leave parameters randomly initialized.

    Raises:
        IncompleteWeights: a tensor is missing or of the wrong shape.
    """
    wrong = [f"it lacks {name}" for name in sorted(report["missing_keys"])]
    wrong += [f"{name} is {list(found)}, not {list(needed)}" for name, found, needed in sorted(report["mismatched_keys"])]
    wrong += [str(message) for message in report["error_msgs"]]
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if wrong[1:] else ""
        raise IncompleteWeights(path=folder.path, layout=spec.program, detail=wrong[0] + more)


@torch.inference_mode()
def _probe(network: AnyForeign, folder: Folder, device: torch.device) -> None:
    """Runs two tokens, so that a network that cannot run or gives no attention is refused now, not on a page."""
    ids = torch.zeros(1, 2, dtype=torch.long, device=device)
    run = Run(cache=network.past())
    with _said_by_the_library(folder):
        if isinstance(network, ForeignWriter):
            network(ids, run)
            return
        mask = network.source_mask(ids, torch.tensor([2], device=device))
        memory = network.encode(ids, mask, run)
        if isinstance(network, ForeignTranslator):
            network.decode(ids, memory, mask, run)


def _described(name: str, tensor: Tensor, left_over: Mapping[str, str]) -> TensorInfo:
    status = "unneeded" if name in left_over else "matched"
    return measured(TensorInfo(name, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), status), tensor)


def _notes(folder: Folder, weights: Mapping[str, Tensor], left_over: Mapping[str, str]) -> tuple[str, ...]:
    """Notes for viewers, a sentence each."""
    found = ["The network is run by the transformers library, with its own eager attention, in float32."]
    if folder.family.positions == "rotary":
        found.append("Queries and keys are shown as they were compared: after their rotation by position.")
    if FOREIGN_CODE in folder.config:
        found.append(f"{CONFIG} names Python code of its own ({FOREIGN_CODE}); it was not run, the library's class was.")
    if not folder.config.get("architectures"):
        found.append(
            f"{CONFIG} does not say which class saved it: that these weights were trained as {folder.model_type} is its word."
        )
    if left_out := ignored(folder):
        found.append(f"Decoding here does not do what its generation settings ask for besides: {', '.join(left_out)}.")
    if broken := [name for name, tensor in weights.items() if tensor.is_floating_point() and not tensor.isfinite().all()]:
        found.append(f"{len(broken)} tensors hold NaN or infinite numbers, the first is {broken[0]}.")
    return (*found, *noted(left_over))


def _recorded(network: AnyForeign) -> tuple[str, ...]:
    """What a run does and does not record, a sentence each."""
    kept = "weights, masks, queries, keys, values, context and output of each head, and the states after each layer"
    tables = ", ".join(network.tables())
    return (
        f"A run records {kept}" + (f", and {tables}." if tables else "."),
        f"A run records no scores: {NO_SCORES}.",
        f"A run records no stages: {NO_STAGES}.",
        *(f"A run records no {name}: {why}." for name, why in network.missing().items() if name.startswith("positions/")),
    )
