"""Paths that hold no checkpoint themselves, and what to open instead: folders of folders, adapters, recordings."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from model.checkpoints import native
from model.checkpoints.layouts.given_answers import weight_files
from model.errors import DamagedFile, FolderAbove, MissingFile, NotACheckpoint, NothingToOpen, OnlyAnAdapter, phrase
from model.huggingface import folder
from model.trace.trace_files import is_trace_file

ADAPTER = "adapter_config.json"
"""What the library peft saves beside an adapter."""

DEEPEST = 3
"""Levels below a folder at which others are looked for: a Hub's cache has models--ORG--NAME/snapshots/COMMIT."""

MOST_ENTRIES, MOST_NAMED = 200, 3
"""Most entries of a folder that are looked at, and most folders that a sentence names."""

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
    if (path / ADAPTER).is_file():
        base = folder.read_json(path / ADAPTER).get("base_model_name_or_path")
        told = phrase("it belongs to {name}", name=str(base)) if base else phrase("it does not say which one it belongs to")
        raise OnlyAnAdapter(path=path, base=told)
    if _is_of_the_library(path):
        raise MissingFile(path=path / folder.CONFIG, needed=f"{folder.CONFIG}, {folder.WEIGHTS[0]} | {folder.WEIGHTS[2]}")
    if weight_files(path):
        return
    if inside := sorted(_inside(path, 1), key=_counted):
        more = f", … (+{len(inside) - MOST_NAMED})" if inside[MOST_NAMED:] else ""
        raise FolderAbove(path=path, there=", ".join(inside[:MOST_NAMED]) + more)
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
        below = [each for each in islice(path.iterdir(), MOST_ENTRIES) if each.is_dir()]
    except OSError:
        return
    for each in below:
        if (each / native.SPEC).is_file() or (folder.is_here(each) and any((each / name).is_file() for name in folder.WEIGHTS)):
            yield each.name
        elif level < DEEPEST:
            yield from (f"{each.name}/{name}" for name in _inside(each, level + 1))


def _counted(name: str) -> list[tuple[int, str]]:
    """A key that sorts checkpoint-500 before checkpoint-1000."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]
