"""Loader for any checkpoint: a native folder, a folder of the transformers library, a GGUF file, or a file of a known layout."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import torch

from model import known_models
from model.checkpoints import native, other_places
from model.checkpoints.hub import cache, names
from model.checkpoints.layouts import loading
from model.checkpoints.layouts.given_answers import TextsOf, raw_file, texts_of_a_path
from model.checkpoints.native import Checkpoint
from model.errors import BadSetting, MissingFile, MustNotBeSet, UnknownModel, phrase
from model.huggingface import folder
from model.huggingface.gguf.folder import open_gguf
from model.huggingface.loaded import Foreign
from model.huggingface.network import AnyForeign, WholeNetwork
from model.inspection.report import Inspection
from model.safe_loading.gguf_tensors import GgufFile, is_gguf, read_gguf
from model.spec.request import Precision
from model.spec.snapshots import at_step, without_step
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
    hub_name = names.parsed(checkpoint)
    if hub_name is not None and checkpoint.startswith(names.PREFIX):
        return cache.locate(hub_name)
    for path in (Path(checkpoint), bundled / checkpoint, *filter(None, [known_models.fetched().get(checkpoint)])):
        if path.exists():
            inside = path.name == native.WEIGHTS and path.with_name(native.TOKENIZER).is_file()
            return path.parent if inside else path
    name, step = without_step(checkpoint)
    for whole in (Path(name), bundled / name):
        if step is not None and (there := native.snapshot_steps(whole)):
            if step not in there:
                raise UnknownModel(asked=checkpoint, there=", ".join(at_step(name, each) for each in there))
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
    other_places.refuse(path)
    if (whole := native.folder_of_snapshot(path)) is not None:
        _refuse(settings)
        return native.load(whole, device, f"{native.SNAPSHOTS}/{path.name}")
    if (file := raw_weights(path)) is not None:
        if is_gguf(file):
            return _called_as_its_authors_do(load_gguf(read_gguf(file), settings, device), path)
        return loading.load(file, settings, device, texts_of)
    _refuse(settings)
    if not folder.is_here(path):
        return native.load(path, device)
    from model.huggingface import loading as huggingface  # imports the transformers library, which takes seconds

    opened, in_float32 = folder.open_folder(path), precision == "float32"
    cache.check_memory(opened)
    return _called_as_its_authors_do(replace(huggingface.load(opened, device, in_float32), folder=path), path)


def _called_as_its_authors_do(found: Foreign, path: Path) -> Foreign:
    """A known model that was fetched, with its title; anything else is called as its file."""
    titles = {place: known_models.catalogue()[name].title for name, place in known_models.fetched().items()}
    title = titles.get(path, found.info.title)
    return replace(found, info=replace(found.info, title=title))


def load_gguf(file: GgufFile, settings: Mapping[str, str], device: torch.device) -> Foreign:
    """The network of a GGUF file, ready to run.

    Raises:
        CheckpointError: it cannot be run.
        BadSetting: there are `settings`; the file holds all of them.
    """
    _refuse(settings)
    from model.huggingface import loading as huggingface

    return huggingface.load(open_gguf(file), device)


def inspect(path: Path, settings: Mapping[str, str], texts_of: TextsOf = texts_of_a_path) -> Inspection:
    """The inspection report of `path`, without running it. The arguments are those of `load`.

    Raises:
        CheckpointError: it cannot be read.
        BadSetting: an answer is not allowed.
    """
    other_places.refuse(path)
    if (whole := native.folder_of_snapshot(path)) is not None:
        _refuse(settings)
        return native.inspect(whole, f"{native.SNAPSHOTS}/{path.name}")
    if (file := raw_weights(path)) is not None:
        return inspect_gguf(read_gguf(file), settings) if is_gguf(file) else loading.inspect(file, settings, texts_of)
    _refuse(settings)
    if not folder.is_here(path):
        return native.inspect(path)
    from model.huggingface import loading as huggingface

    return huggingface.inspect(folder.open_folder(path))


def inspect_gguf(file: GgufFile, settings: Mapping[str, str]) -> Inspection:
    """The inspection report of a GGUF file, without running it.

    Raises:
        CheckpointError, BadSetting: as for `load_gguf`.
    """
    _refuse(settings)
    from model.huggingface import loading as huggingface

    return huggingface.inspect(open_gguf(file))


def raw_weights(path: Path) -> Path | None:
    """The raw weight file of a path: itself, or the only one in a folder; None: the folder describes its own network."""
    if native.folder_of_snapshot(path) is not None:
        return None
    return raw_file(path) if path.is_dir() else path


def _refuse(settings: Mapping[str, str]) -> None:
    """Refuses settings for folders and GGUF files, which need none."""
    for name in settings:
        raise MustNotBeSet(name=name, reason=phrase("the folder’s own files contain all settings"))


def own_precision(found: Runner) -> Precision:
    """The precision in which a network was opened."""
    dtype = next(iter(found.network.parameters())).dtype  # networks are opened in no other type than these
    return str(dtype).removeprefix("torch.")  # type: ignore[return-value]


def lowered(found: Runner, precision: Precision | None) -> Runner:
    """A copy of the checkpoint with its weights in `precision`; itself for the precision in which it was opened.

    Args:
        precision: None: the one in which it was opened.

    Raises:
        BadSetting: another program runs the network; it may need some of its numbers in float32.
    """
    if precision is None or precision == (own := own_precision(found)):
        return found
    if isinstance(found, Foreign):
        allowed = phrase("{own}, in which the weights of this model are stored, or float32", own=own)
        if own == "float32":
            allowed = phrase("float32 for a model that the transformers library runs")
        raise BadSetting(name="precision", found=precision, allowed=allowed)
    return replace(found, network=deepcopy(found.network).to(getattr(torch, precision)))
