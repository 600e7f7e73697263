"""Settings of config.json that would make the library build an absurd network: they are refused before it builds anything."""

import math
import re
from collections.abc import Iterator
from typing import Any

from model.errors import DamagedFile, UnsoundFile, phrase
from model.huggingface.folder import Folder

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
