"""Files of a raw checkpoint: the weights, and the JSON file beside them with answers."""

import json
from pathlib import Path

from model.errors import DamagedFile, SeveralFiles, phrase
from model.trace.trace_files import ENDING

WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".gguf")
"""Endings of weight files."""

ANSWERS = "spec.json"
"""Answers for the only weight file in a folder; those for one of several files, x.pt, are in x.spec.json."""

_NOT_RAW = ("config.json", "tokenizer.json")
"""Files of the folders that Headlight or another program saved; these describe themselves."""


def weight_files(folder: Path) -> list[Path]:
    """The weight files in a folder, sorted; traces hold none.

    Raises:
        DamagedFile: the folder cannot be read.
    """
    try:
        return sorted(
            path for path in folder.iterdir() if path.suffix in WEIGHT_FILES and not path.name.endswith(ENDING) and path.is_file()
        )
    except OSError as error:
        raise DamagedFile(path=folder, detail=f"{type(error).__name__}") from error


def raw_file(folder: Path) -> Path | None:
    """The weight file of a folder of raw weights, with or without answers.

    Returns:
        None: the folder has no weights, or describes its own network.

    Raises:
        SeveralFiles: it has several weight files.
        DamagedFile: the folder cannot be read.
    """
    found = weight_files(folder)
    if any((folder / name).is_file() for name in _NOT_RAW) or _describes_a_network(folder / ANSWERS):
        return None
    if len(found) > 1:
        raise SeveralFiles(path=folder, there=", ".join(path.name for path in found))
    return found[0] if found else None


def answers_file(weights: Path) -> Path | None:
    """The answers file of a weight file; None: there is none."""
    own, shared = weights.with_name(f"{weights.stem}.{ANSWERS}"), weights.with_name(ANSWERS)
    if own.is_file():
        return own
    return shared if shared.is_file() and weight_files(weights.parent) == [weights] else None


def answers_of(weights: Path) -> dict[str, str]:
    """The answers beside a weight file; empty if the JSON file is the spec of a native folder.

    Raises:
        DamagedFile: it is not a JSON object of names and plain values.
    """
    if (path := answers_file(weights)) is None:
        return {}
    data = _json(path)
    if isinstance(data, dict) and "format" in data:
        return {}
    if not isinstance(data, dict) or not all(isinstance(value, str | int | bool) for value in data.values()):
        raise DamagedFile(path=path, detail=phrase("it holds no JSON object of setting names and plain values"))
    return {name: json.dumps(value) if isinstance(value, bool) else str(value) for name, value in data.items()}


def _describes_a_network(path: Path) -> bool:
    """Whether a spec.json is that of a native folder; an unreadable one counts as native and is reported there."""
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
