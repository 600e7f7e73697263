"""The files of a raw checkpoint: the weights in a folder, and the JSON file beside them that holds their answers."""

import json
from pathlib import Path

from model.errors import DamagedFile, SeveralFiles

WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
"""Endings of files of weights."""

ANSWERS = "spec.json"
"""Answers of the only file of weights in a folder; those of one file among several, x.pt, are in x.spec.json."""

_NOT_RAW = ("config.json", "tokenizer.json")
"""Files of folders that another program or Headlight itself saved: such a folder describes itself."""


def weight_files(folder: Path) -> list[Path]:
    """The files of weights in a folder, in alphabetical order.

    Raises:
        DamagedFile: the folder cannot be read.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in WEIGHT_FILES and path.is_file())
    except OSError as error:
        raise DamagedFile(path=folder, detail=f"{type(error).__name__}") from error


def raw_file(folder: Path) -> Path | None:
    """The file of weights in a folder that holds raw weights, with or without answers.

    Returns:
        None: the folder holds no weights, or its own files describe its network.

    Raises:
        SeveralFiles: it holds several files of weights.
        DamagedFile: the folder cannot be read.
    """
    found = weight_files(folder)
    if any((folder / name).is_file() for name in _NOT_RAW) or _describes_a_network(folder / ANSWERS):
        return None
    if len(found) > 1:
        raise SeveralFiles(path=folder, there=", ".join(path.name for path in found))
    return found[0] if found else None


def answers_file(weights: Path) -> Path | None:
    """The file that holds the answers of a file of weights; None: there is none."""
    own, shared = weights.with_name(f"{weights.stem}.{ANSWERS}"), weights.with_name(ANSWERS)
    if own.is_file():
        return own
    return shared if shared.is_file() and weight_files(weights.parent) == [weights] else None


def answers_of(weights: Path) -> dict[str, str]:
    """The answers beside a file of weights; none where the JSON file is that of a folder of Headlight's own.

    Raises:
        DamagedFile: it is no JSON object of names and plain values.
    """
    if (path := answers_file(weights)) is None:
        return {}
    data = _json(path)
    if isinstance(data, dict) and "format" in data:
        return {}
    if not isinstance(data, dict) or not all(isinstance(value, str | int | bool) for value in data.values()):
        raise DamagedFile(path=path, detail="it holds no JSON object of setting names and plain values")
    return {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in data.items()}


def _describes_a_network(path: Path) -> bool:
    """Whether a spec.json is that of a folder of Headlight's own; one that cannot be read counts as such, and is reported there."""
    try:
        data = _json(path) if path.is_file() else {}
    except DamagedFile:
        return True
    return not isinstance(data, dict) or "format" in data


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedFile(path=path, detail=f"{type(error).__name__}") from error
