"""Settings of config.json that would make the library build an absurd network: they are refused before it builds anything."""

import re
from collections.abc import Iterator
from typing import Any

from model.errors import DamagedFile
from model.huggingface.folder import CONFIG, Folder

MOST_LAYERS = 1000
LARGEST = 2**24
"""Largest whole number of any other setting."""

_COUNTS = re.compile(r".*(layer|depth|block|stage|expert|group|stack).*", re.IGNORECASE)
"""Names of settings that may say how many modules there are."""

_FREE = re.compile(r".*(theta|base|seed|_id|_ids|size_in_bytes).*")
"""Names of settings by which nothing grows."""

DEEPEST = 8
"""Most levels of settings inside of settings."""


def check_sizes(folder: Folder) -> None:
    """Refuses absurd sizes.

    Raises:
        DamagedFile: a setting is too large, or nested too deeply.
    """
    for name, value in _numbers(folder, folder.config, 0):
        most = MOST_LAYERS if _COUNTS.fullmatch(name) else LARGEST
        if value > most and not _FREE.fullmatch(name):
            raise DamagedFile(path=folder.path / CONFIG, detail=f"{name} is {value}, not a whole number up to {most:,}")


def _numbers(folder: Folder, settings: Any, level: int, name: str = "") -> Iterator[tuple[str, int]]:
    """Every whole number in the settings, with its name."""
    if level > DEEPEST:
        raise DamagedFile(path=folder.path / CONFIG, detail=f"its settings are nested more than {DEEPEST} levels deep")
    if isinstance(settings, dict):
        for key, value in settings.items():
            yield from _numbers(folder, value, level + 1, str(key))
    elif isinstance(settings, list):
        yield f"the length of {name}", len(settings)
        for value in settings:
            yield from _numbers(folder, value, level + 1, name)
    elif type(settings) is int:
        yield name, settings
