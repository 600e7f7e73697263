"""Loader for any checkpoint: a native folder, a folder of the transformers library, a GGUF file, or a file of a known layout."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeAlias

import torch

from model import known_models
from model.checkpoints import native
from model.checkpoints.hub import cache, names
from model.checkpoints.layouts import loading
from model.checkpoints.layouts.given_answers import TextsOf, raw_file, texts_of_a_path, weight_files
from model.checkpoints.native import Checkpoint
from model.errors import (
    BadSetting,
    DamagedFile,
    FolderAbove,
    MissingFile,
    MustNotBeSet,
    NotACheckpoint,
    NothingToOpen,
    OnlyAnAdapter,
    UnknownModel,
    phrase,
)
from model.huggingface import folder
from model.huggingface.gguf.folder import open_gguf
from model.huggingface.loaded import Foreign
from model.huggingface.network import AnyForeign, WholeNetwork
from model.inspection.leftovers import shortened
from model.inspection.report import Inspection
from model.requests.request import Precision
from model.requests.snapshots import at_step, without_step
from model.safe_loading.gguf_tensors import GgufFile, is_gguf, read_gguf
from model.trace.trace_files import is_trace_file
from model.transformer.build import Network

AnyNetwork: TypeAlias = Network | AnyForeign | WholeNetwork
Runner: TypeAlias = Checkpoint | Foreign


def locate(checkpoint: str, bundled: Path) -> Path:
    """The path of a checkpoint: a path, a name in `bundled` or of a known model that was fetched, NAME@STEP for a snapshot, or
    hub:ORG/NAME@REVISION for a model in the Hub's cache, which is found without `hub:` where nothing else has its name.

    The path of native weights means their folder.

    Raises:
        MissingFile: there is neither.
        NotFetched, HubOff: it is the name of a Hub's model that is not on this machine, or not allowed.
        UnknownModel: the model has snapshots, but none after that many steps.
    """
    # `hub:` is unmistakable; any other text is looked for as a path, in checkpoints/, among known models, then in the Hub's cache
    hub_name = names.parsed(checkpoint)
    if hub_name is not None and checkpoint.startswith(names.PREFIX):
        return cache.locate(hub_name)
    for path in (Path(checkpoint), bundled / checkpoint, *filter(None, [known_models.fetched().get(checkpoint)])):
        if path.exists():
            inside = path.name == native.WEIGHTS and path.with_name(native.TOKENIZER).is_file()
            return path.parent if inside else path
    # NAME@STEP is a snapshot of a training; a revision of the Hub looks the same and comes last
    name, step = without_step(checkpoint)
    for whole in (Path(name), bundled / name):
        if step is not None and (steps := native.snapshot_steps(whole)):
            if step not in steps:
                raise UnknownModel(asked=checkpoint, there=", ".join(at_step(name, existing) for existing in steps))
            return native.snapshot_path(whole, step)
    if hub_name is not None and names.mode() != "off" and (kept := cache.find(hub_name)) is not None:
        return kept
    raise MissingFile(
        path=checkpoint,
        needed=phrase(
            "{weights}, {spec} and {tokenizer}, or the files that the transformers library saves; a weight file needs "
            "the format of torch.save or safetensors; a name must be one in {folder}/, or of a model that was downloaded with "
            "python -m model fetch",
            weights=native.WEIGHTS,
            spec=native.SPEC,
            tokenizer=native.TOKENIZER,
            folder=bundled.name,
        ),
    )


def load(
    path: Path,
    settings: Mapping[str, str],
    device: torch.device,
    texts_of: TextsOf = texts_of_a_path,
    precision: Precision | None = None,
) -> Runner:
    """The network at `path`, ready to run.

    Args:
        settings: answers to the open questions of a raw weight file.
        texts_of: reads a vocabulary that `settings` name.
        precision: the one that a run asks for. A folder of the transformers library is opened in float32 for that one, else in
            the precision of its weights; anything else is opened in float32. See `lowered`.

    Raises:
        CheckpointError: it cannot be read or is incomplete.
        NoMemoryFor: a folder of the transformers library does not fit this machine's memory.
        OpenQuestions: `settings` leave a question open.
        BadSetting: an answer is not allowed.
    """
    refuse_what_is_no_checkpoint(path)
    if (whole := native.folder_of_snapshot(path)) is not None:
        _refuse_settings(settings)
        return native.load(whole, device, f"{native.SNAPSHOTS}/{path.name}")
    # a bare weight file is told by its content, whatever its name
    if (file := raw_weights(path)) is not None:
        if is_gguf(file):
            return _with_known_title(load_gguf(read_gguf(file), settings, device), path)
        return loading.load(file, settings, device, texts_of)
    _refuse_settings(settings)
    if not folder.is_here(path):
        return native.load(path, device)
    from model.huggingface import loading as huggingface  # imports the transformers library, which takes seconds

    opened, in_float32 = folder.open_folder(path), precision == "float32"
    cache.check_memory(opened)
    return _with_known_title(replace(huggingface.load(opened, device, in_float32), folder=path), path)


def _with_known_title(opened: Foreign, path: Path) -> Foreign:
    """A known model that was fetched, with its title; anything else is called as its file."""
    titles = {folder_of_model: known_models.catalogue()[name].title for name, folder_of_model in known_models.fetched().items()}
    title = titles.get(path, opened.info.title)
    return replace(opened, info=replace(opened.info, title=title))


def load_gguf(file: GgufFile, settings: Mapping[str, str], device: torch.device) -> Foreign:
    """The network of a GGUF file, ready to run.

    Raises:
        CheckpointError: it cannot be run.
        BadSetting: there are `settings`; the file holds all of them.
    """
    _refuse_settings(settings)
    from model.huggingface import loading as huggingface

    return huggingface.load(open_gguf(file), device)


def inspect(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> Inspection:
    """The inspection report of `path`, without running it. The arguments are those of `load`.

    Raises:
        CheckpointError: it cannot be read.
        BadSetting: an answer is not allowed.
    """
    refuse_what_is_no_checkpoint(path)
    if (whole := native.folder_of_snapshot(path)) is not None:
        _refuse_settings(settings)
        return native.inspect(whole, f"{native.SNAPSHOTS}/{path.name}")
    if (file := raw_weights(path)) is not None:
        return inspect_gguf(read_gguf(file), settings) if is_gguf(file) else loading.inspect(file, settings, texts_of)
    _refuse_settings(settings)
    if not folder.is_here(path):
        return native.inspect(path)
    from model.huggingface import loading as huggingface

    return huggingface.inspect(folder.open_folder(path))


def inspect_gguf(file: GgufFile, settings: Mapping[str, str]) -> Inspection:
    """The inspection report of a GGUF file, without running it.

    Raises:
        CheckpointError, BadSetting: as for `load_gguf`.
    """
    _refuse_settings(settings)
    from model.huggingface import loading as huggingface

    return huggingface.inspect(open_gguf(file))


def raw_weights(path: Path) -> Path | None:
    """The raw weight file of a path: itself, or the only one in a folder; None: the folder describes its own network."""
    if native.folder_of_snapshot(path) is not None:
        return None
    return raw_file(path) if path.is_dir() else path


def _refuse_settings(settings: Mapping[str, str]) -> None:
    """Refuses settings for folders and GGUF files, which need none."""
    for name in settings:
        raise MustNotBeSet(name=name, reason=phrase("the folder’s own files contain all settings"))


def own_precision(runner: Runner) -> Precision:
    """The precision in which a network was opened."""
    dtype = next(iter(runner.network.parameters())).dtype  # networks are opened in no other type than these
    return str(dtype).removeprefix("torch.")  # type: ignore[return-value]


def lowered(runner: Runner, precision: Precision | None) -> Runner:
    """A copy of the checkpoint with its weights in `precision`; itself for the precision in which it was opened.

    Args:
        precision: None: the one in which it was opened.

    Raises:
        BadSetting: another program runs the network; it may need some of its numbers in float32.
    """
    if precision is None or precision == (stored_precision := own_precision(runner)):
        return runner
    if isinstance(runner, Foreign):
        allowed = phrase("{own}, in which the weights of this model are stored, or float32", own=stored_precision)
        if stored_precision == "float32":
            allowed = phrase("float32 for a model that the transformers library runs")
        raise BadSetting(name="precision", found=precision, allowed=allowed)
    return replace(runner, network=deepcopy(runner.network).to(getattr(torch, precision)))


# --- Paths that hold no checkpoint themselves, and what to open instead ---------------------------------------------------

DEEPEST = 3
"""Levels below a folder at which others are looked for: a Hub's cache has models--ORG--NAME/snapshots/COMMIT."""

MOST_ENTRIES = 200
"""Most entries of a folder that are looked at."""

_OF_THE_LIBRARY = (*folder.WEIGHTS[1:], folder.GENERATION, *folder.VOCABULARY_FILES)
"""Files that lie in folders of the transformers library alone."""


def refuse_what_is_no_checkpoint(path: Path) -> None:
    """Refuses a path at which there is no checkpoint, if it is known what is there instead.

    Raises:
        NotACheckpoint: it is a trace.
        OnlyAnAdapter, FolderAbove, NothingToOpen: it is a folder of these.
        MissingFile: its files are those of a folder of the transformers library, without config.json.
    """
    if path.is_file() and is_trace_file(path):
        raise NotACheckpoint(path=path, found=phrase("a trace, the record of a finished run, which python -m model view shows"))
    if not path.is_dir() or folder.is_here(path) or (path / native.SPEC).is_file():
        return
    if (path / folder.ADAPTER).is_file():
        base = folder.read_json(path / folder.ADAPTER).get("base_model_name_or_path")
        owner = phrase("it belongs to {name}", name=str(base)) if base else phrase("it does not say which one it belongs to")
        raise OnlyAnAdapter(path=path, base=owner)
    if _is_of_the_library(path):
        raise MissingFile(path=path / folder.CONFIG, needed=f"{folder.CONFIG}, {folder.WEIGHTS[0]} | {folder.WEIGHTS[2]}")
    if weight_files(path):
        return
    # a folder of folders, as trainers and caches make them: which one is meant cannot be guessed
    if networks := sorted(_openable_below(path, 1), key=_numbers_in):
        raise FolderAbove(path=path, there=shortened(networks))
    if not (path / native.TOKENIZER).is_file():
        raise NothingToOpen(path=path)


def _is_of_the_library(path: Path) -> bool:
    """Whether files of the transformers library lie here with weights, or its tokenizer.json beside what may be anybody's."""
    if not any((path / name).is_file() for name in folder.WEIGHTS):
        return False
    if any((path / name).is_file() for name in _OF_THE_LIBRARY if name != folder.WEIGHTS[2]):
        return True
    try:
        return (path / folder.TOKENIZER).is_file() and "added_tokens" in folder.read_json(path / folder.TOKENIZER)
    except DamagedFile:
        return False


def _openable_below(path: Path, level: int) -> Iterator[str]:
    """Names, relative to `path`, of the folders below it that can be opened."""
    try:
        below = [entry for entry in islice(path.iterdir(), MOST_ENTRIES) if entry.is_dir()]
    except OSError:
        return
    for inner in below:
        if (inner / native.SPEC).is_file() or (folder.is_here(inner) and any((inner / name).is_file() for name in folder.WEIGHTS)):
            yield inner.name
        elif level < DEEPEST:
            yield from (f"{inner.name}/{name}" for name in _openable_below(inner, level + 1))


def _numbers_in(name: str) -> list[tuple[int, str]]:
    """A key that sorts checkpoint-500 before checkpoint-1000."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
