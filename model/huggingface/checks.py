"""Checks of every Hugging Face folder: no network larger than its file, each tensor in its place, errors in one sentence."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from model.errors import (
    BadSetting,
    CheckpointError,
    DamagedFile,
    HeadlightError,
    OtherWeights,
    Phrase,
    RefusedByLibrary,
    RunFailed,
    UnsoundFile,
    Words,
    counted,
    phrase,
)
from model.huggingface import chat_templates
from model.huggingface.config import ignored
from model.huggingface.folder import ADAPTER, CONFIG, FOREIGN_CODE, Folder, Weights
from model.huggingface.gguf.folder import GgufFolder
from model.inspection.diagnostics import tied
from model.inspection.leftovers import noted, shortened
from model.inspection.report import TensorInfo
from model.inspection.tensor_stats import each_measured
from model.sharing.system_memory import free_bytes

SPARE = 1 << 22
"""Numbers by which a network may exceed its file: computed tables are not stored."""


@contextmanager
def library_errors(folder: Folder, kind: type[CheckpointError] = RefusedByLibrary) -> Iterator[None]:
    """Turns any exception of the library into one error.

    Args:
        folder: what the library reads.
        kind: of the error: RefusedByLibrary, or CannotRunHere for a short run of a folder whose files and settings are in order.

    Raises:
        RefusedByLibrary, CannotRunHere, UnsupportedGguf: the library raised an exception.
    """
    try:
        yield
    except RunFailed as error:  # a run has put the library's exception into words already
        raise _failed(folder, kind, str(error.fields["error"])) from error
    except HeadlightError:
        raise
    except Exception as error:
        raise _failed(folder, kind, f"{type(error).__name__}: {' '.join(str(error).split()[:30])}") from error


def _failed(folder: Folder, kind: type[CheckpointError], error: str) -> CheckpointError:
    """The error about what the library said; a GGUF file has no settings that could be corrected."""
    if isinstance(folder, GgufFolder):
        return folder.unsupported(phrase("the transformers library, which runs its network, says {error}", error=error))
    return kind(path=folder.path, version=version("transformers"), error=error)


def check_size(folder: Folder, outline: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Refuses a network that is larger than its weights, before memory is allocated. Tied weights may count twice.

    Raises:
        UnsoundFile: it is larger.
    """
    asked = sum(prod(tensor.shape) for tensor in (*outline.parameters(), *outline.buffers()))
    stored = sum(tensor.numel() for tensor in weights.values())
    # tied weights are stored once and counted twice, so twice the file is still honest
    if asked > 2 * stored + SPARE:
        detail = phrase(
            "it describes a network of {asked:,} parameters, but the weights beside it are only {there:,}",
            asked=asked,
            there=stored,
        )
        raise UnsoundFile(path=folder.settings, detail=detail)


def check_room(weights: Weights, dtype: torch.dtype) -> None:
    """Refuses float32 for weights that take less in their file, where it would not fit into memory.

    Raises:
        BadSetting: it does not fit.
    """
    # the file's own precision was read already; only float32 that somebody asked for can be too much
    needed = sum(tensor.numel() for tensor in weights.shapes.values()) * dtype.itemsize
    if dtype == weights.dtype or needed <= (free := free_bytes()):
        return
    stored_type = named(weights.dtype)
    allowed = phrase(
        "{own}, as its file has them: in float32 its weights take {needed:.1f} GB, and {free:.1f} GB of memory is free",
        own=stored_type,
        needed=needed / 1e9,
        free=free / 1e9,
    )
    raise BadSetting(name="precision", found="float32", allowed=allowed)


def run_by(network: nn.Module) -> Phrase:
    """A note on what runs a network, and in which precision."""
    return phrase(
        "The network is run by the transformers library, with its own eager attention, in {precision}.",
        precision=named(next(network.parameters()).dtype),
    )


def named(dtype: torch.dtype) -> str:
    """The name of a precision, as requests have it."""
    return str(dtype).removeprefix("torch.")


def check_report(folder: Folder, program: str, report: Mapping[str, Any]) -> None:
    """Refuses weights that would leave parameters randomly initialized.

    Raises:
        OtherWeights: a tensor is missing or of the wrong shape.
    """
    wrong: list[Words] = [phrase("it lacks {name}", name=name) for name in sorted(report["missing_keys"])]
    wrong += [
        phrase("{name} is {found}, not {needed}", name=name, found=list(shape), needed=list(needed))
        for name, shape, needed in sorted(report["mismatched_keys"])
    ]
    wrong += [str(message) for message in report["error_msgs"]]
    if wrong:
        # the first flaw is told, and how many there are beside it
        more: list[Words] = [f"… (+{len(wrong) - 1})"] if wrong[1:] else []
        if others := sorted(report["unexpected_keys"]):
            more.append(phrase("it has {names} instead", names=shortened(others)))
        raise OtherWeights(path=folder.path, layout=program, detail=(wrong[0], *more))


def described(
    folder: Folder, weights: Weights, left_over: Mapping[str, Phrase]
) -> tuple[tuple[TensorInfo, ...], tuple[tuple[str, ...], ...]]:
    """The tensors of an inspection, by their names in the file, and the groups of names that hold the same numbers."""

    infos = {
        name: TensorInfo(
            name,
            tuple(tensor.shape),
            named(tensor.dtype),
            "unneeded" if name in left_over else "matched",
        )
        for name, tensor in weights.shapes.items()
    }
    measured = list(each_measured(infos, weights.tensors.__getitem__))
    stored = {info.name: folder.as_stored(info) for info in measured}
    same = tuple(tuple(stored[name].name for name in names) for names in tied(measured, weights.tensors))
    return tuple(stored.values()), same


def notes(folder: Folder, broken: Sequence[str], left_over: Mapping[str, Phrase]) -> tuple[Words, ...]:
    """Notes on the files for viewers, a sentence each.

    Args:
        broken: names of the tensors with numbers that are not finite.
    """
    sentences: list[Words] = [*folder.notes, *chat_templates.note(folder)]
    if FOREIGN_CODE in folder.config:
        sentences.append(
            phrase(
                "{config} refers to its own Python code ({foreign_code}), which was not run; the library’s class was used instead.",
                config=CONFIG,
                foreign_code=FOREIGN_CODE,
            )
        )
    if (folder.path / ADAPTER).is_file():
        sentences.append(
            phrase(
                "The adapter of {name} is not applied: what runs are the weights of this folder, which the library would change "
                "by it.",
                name=ADAPTER,
            )
        )
    if not folder.config.get("architectures"):
        sentences.append(
            phrase(
                "{config} does not name the class that saved it. It says only that the weights are of type {model_type}, "
                "and the files cannot confirm it.",
                config=CONFIG,
                model_type=folder.model_type,
            )
        )
    if left_out := ignored(folder):
        sentences.append(
            phrase("Decoding here ignores these of the folder’s generation settings: {names}.", names=", ".join(left_out))
        )
    if broken:
        sentences.append(
            counted(
                "{count:,} tensor contains NaN or infinite numbers: {name}.",
                "{count:,} tensors contain NaN or infinite numbers; the first is {name}.",
                len(broken),
                name=broken[0],
            )
        )
    return (*sentences, *noted(left_over))


# --- Settings that would make the library build an absurd network: refused before it builds anything ----------------------

LARGEST = 2**24
"""Largest whole number of a setting that MOST does not name."""

MOST = (
    (re.compile(r".*(theta|base|seed|_id|_ids|size_in_bytes|max_length|num_labels).*"), math.inf),
    (re.compile(r".*_(intermediate_size|hidden_size|dim)"), LARGEST),
    (re.compile(r".*(layer|depth|block|stage|expert|group|stack|repeat).*", re.IGNORECASE), 1000),
    (re.compile(r".*(radius|stride).*"), 1024),
)
"""The largest whole number by the name of a setting, the first that fits: those by which nothing grows, widths (such as
shared_expert_intermediate_size), those that may say how many modules there are, and those by which a run grows, however short its
input is."""

LAYERS = re.compile(r"(num|n|encoder|decoder)_(hidden_|encoder_|decoder_)?layers?|num_hidden_groups|depth")
"""Settings that say how many layers are built or run: each has tensors of its own, or shares those of others."""

DEEPEST = 8
"""Most levels of settings inside of settings."""


def check_sizes(folder: Folder) -> None:
    """Refuses absurd sizes.

    Raises:
        DamagedFile: a setting is too large, or nested too deeply.
    """
    for name, value in _numbers(folder, folder.config, 0):
        most = next((most for names, most in MOST if names.fullmatch(name)), LARGEST)
        if value > most:
            raise DamagedFile(
                path=folder.settings,
                detail=phrase("{name} is {value:,}, not a whole number up to {most:,}", name=name, value=value, most=most),
            )


def check_layers(folder: Folder, tensors: int) -> None:
    """Refuses more layers than the file has tensors: to build them, or to run shared ones again and again, would take minutes.

    Args:
        tensors: how many tensors the weight files hold.

    Raises:
        UnsoundFile: there are more.
    """
    for name, value in _numbers(folder, folder.config, 0):
        if LAYERS.fullmatch(name) and value > tensors:
            detail = phrase(
                "{name} is {value:,}, but its weight files hold only {tensors:,} tensors", name=name, value=value, tensors=tensors
            )
            raise UnsoundFile(path=folder.settings, detail=detail)


def _numbers(folder: Folder, settings: Any, level: int, name: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in the settings, with its name."""
    if level > DEEPEST:
        raise DamagedFile(
            path=folder.settings, detail=phrase("its settings are nested more than {deepest} levels deep", deepest=DEEPEST)
        )
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _numbers(folder, value, level + 1, str(key))
    elif isinstance(settings, list):
        yield f"len({name})", len(settings)
        for value in settings:
            yield from _numbers(folder, value, level + 1, name)
    elif type(settings) is int:
        yield name, settings
