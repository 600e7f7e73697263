"""Paths that hold no checkpoint themselves, and what to open instead: folders of folders, adapters, recordings."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from model.checkpoints import native
from model.checkpoints.layouts.given_answers import weight_files
from model.errors import DamagedFile, FolderAbove, MissingFile, NotACheckpoint, NothingToOpen, OnlyAnAdapter, phrase
from model.huggingface import folder
from model.inspection.leftovers import shortened
from model.trace.trace_files import is_trace_file

DEEPEST = 3
"""Levels below a folder at which others are looked for: a Hub's cache has models--ORG--NAME/snapshots/COMMIT."""

MOST_ENTRIES = 200
"""Most entries of a folder that are looked at."""

_OF_THE_LIBRARY = (*folder.WEIGHTS[1:], folder.GENERATION, *folder.VOCABULARY_FILES)
"""Files that lie in folders of the transformers library alone."""


def refuse(path: Path) -> None:
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
    if networks := sorted(_inside(path, 1), key=_counted):
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


def _inside(path: Path, level: int) -> Iterator[str]:
    """Names, relative to `path`, of the folders below it that can be opened."""
    try:
        below = [entry for entry in islice(path.iterdir(), MOST_ENTRIES) if entry.is_dir()]
    except OSError:
        return
    for inner in below:
        if (inner / native.SPEC).is_file() or (folder.is_here(inner) and any((inner / name).is_file() for name in folder.WEIGHTS)):
            yield inner.name
        elif level < DEEPEST:
            yield from (f"{inner.name}/{name}" for name in _inside(inner, level + 1))


def _counted(name: str) -> list[tuple[int, str]]:
    """A key that sorts checkpoint-500 before checkpoint-1000."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
