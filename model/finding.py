"""Any checkpoint by its path or name: a folder of our own, or a file of any known layout."""

from collections.abc import Mapping
from pathlib import Path

import torch

from model import checkpoints
from model.checkpoints import Checkpoint
from model.errors import BadSetting, MissingFile
from model.inspection import Inspection
from model.layouts import loading


def locate(checkpoint: str, bundled: Path) -> Path:
    """A path as it is, or a name in the folder `bundled`. The weights in a folder of our own stand for the folder.

    Raises:
        MissingFile: there is neither.
    """
    for path in (Path(checkpoint), bundled / checkpoint):
        if path.exists():
            whole = path.name == checkpoints.WEIGHTS and path.with_name(checkpoints.TOKENIZER).is_file()
            return path.parent if whole else path
    raise MissingFile(
        path=checkpoint,
        needed=f"to be a path or a name in {bundled.name}/, and to hold {checkpoints.WEIGHTS}, {checkpoints.SPEC} and "
        f"{checkpoints.TOKENIZER}; a file needs weights that torch.save or safetensors wrote",
    )


def load(path: Path, settings: Mapping[str, str], device: torch.device) -> Checkpoint:
    """The network at `path`, ready to run.

    Raises:
        CheckpointError: it cannot be read or is not whole.
        OpenQuestions: it leaves something open that was not told.
        BadSetting: an answer is not allowed.
    """
    if not path.is_dir():
        return loading.load(path, settings, device)
    _refuse(settings)
    return checkpoints.load(path, device)


def inspect(path: Path, settings: Mapping[str, str]) -> Inspection:
    """Says what is at `path` without running it.

    Raises:
        CheckpointError: it cannot be read.
        BadSetting: an answer is not allowed.
    """
    if not path.is_dir():
        return loading.inspect(path, settings)
    _refuse(settings)
    return checkpoints.inspect(path)


def _refuse(settings: Mapping[str, str]) -> None:
    """A folder of our own tells everything itself."""
    for name, value in settings.items():
        raise BadSetting(name=f"--set {name}", found=value, allowed="left out: this folder's spec.json tells everything")
